"""tf.compat.v1 of TensorFlow 2's names: both kinds of functions build one graph."""

import numpy as np

import hybridflow.compat.tf as tf

tf.compat.v1.disable_eager_execution()
x = tf.compat.v1.placeholder(tf.float32, [None, 3], name="x")
w = tf.compat.v1.get_variable("w", [3, 2], initializer=tf.compat.v1.ones_initializer())
y = tf.nn.relu(tf.matmul(x, w))
loss = tf.reduce_mean(tf.square(y - tf.constant([1.0, 2.0])))
assert loss.op.type == "Mean" and y.shape.as_list() == [None, 2]
train = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.compat.v1.Session() as sess:
    sess.run(tf.compat.v1.global_variables_initializer())
    data = np.array([[1.0, 0.0, 0.0]])
    assert sess.run(loss, {x: data}) == 0.5
    sess.run(train, {x: data})
    np.testing.assert_allclose(sess.run(w), [[1.0, 1.1], [1, 1], [1, 1]], rtol=1e-6)
tf.compat.v1.enable_eager_execution()
assert tf.reduce_sum(tf.constant([1.0, 2.0])).numpy() == 3
with tf.compat.v1.Graph().as_default():
    assert tf.constant(1.0).graph is tf.compat.v1.get_default_graph()
