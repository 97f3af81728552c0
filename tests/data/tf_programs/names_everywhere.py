import tensorflow as tf

with tf.name_scope("block"):
    a = tf.constant([1.0, 2.0], name="a")
    b = tf.add(a, 1.0, name="b")
    c = tf.reduce_sum(b, name="c")
    d = tf.nn.relu(a, name="d")
    e = tf.reshape(a, [2, 1], name="e")
    f = tf.matmul(e, [[1.0, 2.0]], name="f")
    g = tf.Variable(1.0, name="g")
    h = tf.keras.layers.Dense(1, name="h", kernel_initializer="ones")(e)
    i = tf.math.log(a, name="i")
    j = tf.one_hot([1], 2, name="j")
with tf.control_dependencies([c]):
    k = tf.identity(c, name="k")
RESULT = {"all": [a, b, c, d, e, f, g, h, i, j, k]}
