"""Moving averages move when the update operations run, and are used in testing."""

import numpy as np

import hybridflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [None, 2])
training = tf.placeholder(tf.bool, [])
y = tf.layers.batch_normalization(x, training=training, momentum=0.5, epsilon=0.0)
updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
assert len(updates) == 2
w = tf.Variable(1.0)
loss = tf.reduce_mean(y * w)
with tf.control_dependencies(updates):
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
mean, variance = [v for v in tf.global_variables() if "moving" in v.name]
assert [v.name for v in tf.trainable_variables()][:2] == ["batch_normalization/gamma:0", "batch_normalization/beta:0"]
data = np.array([[0.0, 1.0], [2.0, 5.0]], np.float32)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    np.testing.assert_allclose(sess.run(y, {x: data, training: True}), [[-1, -1], [1, 1]], rtol=1e-6)
    assert sess.run(mean).tolist() == [0, 0]
    sess.run(train, {x: data, training: True})
    np.testing.assert_allclose(sess.run([mean, variance]), [[0.5, 1.5], [1.0, 2.5]])
    sess.run(updates, {x: data, training: False})
    np.testing.assert_allclose(sess.run([mean, variance]), [[0.5, 1.5], [1.0, 2.5]])
    gamma, beta = sess.run(tf.trainable_variables()[:2])
    expected = (data - [0.5, 1.5]) / np.sqrt([1.0, 2.5]) * gamma + beta
    np.testing.assert_allclose(sess.run(y, {x: data, training: False}), expected, rtol=1e-5)
