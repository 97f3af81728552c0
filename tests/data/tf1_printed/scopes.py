import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def l2(scale):
    return lambda w: scale * tf.nn.l2_loss(w)


def my_image_filter(x):
    with tf.variable_scope("conv1"):
        w = tf.get_variable("weights", [2, 2], initializer=tf.constant_initializer(0.5), regularizer=l2(0.1))
        b = tf.get_variable("biases", [2], initializer=tf.zeros_initializer)
        return tf.nn.relu(tf.matmul(x, w) + b)


x1 = tf.constant([[1.0, 2.0]])
x2 = tf.constant([[3.0, -4.0]])
with tf.variable_scope("filters") as scope:
    r1 = my_image_filter(x1)
    scope.reuse_variables()
    r2 = my_image_filter(x2)
print([v.name for v in tf.global_variables()])
print(r1.name, r2.name)
print([t.name for t in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)])
try:
    with tf.variable_scope("filters"):
        my_image_filter(x1)
except ValueError as e:
    print("ValueError", str(e)[:60])
try:
    with tf.variable_scope("nothing", reuse=True):
        tf.get_variable("v", [1])
except ValueError as e:
    print("ValueError", str(e)[:60])
with tf.variable_scope("foo"):
    with tf.variable_scope("bar"):
        v = tf.get_variable("v", [1])
        assert v.name == "foo/bar/v:0"
    with tf.name_scope("ns"):
        v2 = tf.get_variable("v2", [1])
        a = tf.add(1.0, v2)
        v3 = tf.Variable(2.0, name="v3")
    print(v2.name, a.name, v3.name)
with tf.variable_scope("foo", reuse=tf.AUTO_REUSE):
    v4 = tf.get_variable("v2", [1])
    print(v4 is v2, tf.get_variable_scope().name)
with tf.variable_scope(None, default_name="unit"):
    print(tf.get_variable("w", [1]).name)
with tf.variable_scope(None, default_name="unit"):
    print(tf.get_variable("w", [1]).name)
with tf.variable_scope("init", initializer=tf.constant_initializer(0.4), regularizer=l2(2.0)):
    q = tf.get_variable("q", [3])
    r = tf.get_variable("r", [3], initializer=tf.ones_initializer(), trainable=False)
print(
    [v.name for v in tf.trainable_variables("init")],
    [v.name for v in tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="foo")],
)
with tf.Session() as sess:
    tf.global_variables_initializer().run()
    print(sess.run([r1, r2, q, r]))
    print(sess.run(tf.losses.get_regularization_loss()))
    print(sess.run(tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))))
    print(sess.run(tf.get_collection("regularization_losses")))
with tf.variable_scope("outer") as outer:
    with tf.variable_scope("inner"):
        with tf.variable_scope(outer):
            print(tf.get_variable("z", []).name)
tf.add_to_collection("mine", r1)
print(len(tf.get_collection("mine")), tf.get_collection("none"))
print(sorted(tf.get_default_graph().get_all_collection_keys()))
