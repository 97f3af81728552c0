"""Derivatives of fetched graphs: weights, constants, second order, hessians, what is not connected."""

import numpy as np

import hybridflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [3])
w = tf.Variable([1.0, 2.0, 3.0])
y = tf.reduce_sum(w * x * x)
z = tf.square(x)
q = tf.reduce_sum(z * x)
(dx, dw) = tf.gradients(y, [x, w])
weighted = tf.gradients(z, x, grad_ys=tf.constant([1.0, 10.0, 100.0]))[0]
second = tf.gradients(dx, x)[0]
partial = tf.gradients(q, x, stop_gradients=[z])[0]
through = tf.gradients(q, [x, z])
hessian = tf.hessians(q, x)[0]
assert tf.gradients(y, tf.constant(1.0)) == [None]
assert tf.gradients(tf.argmax(x, 0), x) == [None]
assert tf.gradients(tf.stop_gradient(z), x) == [None]
v = np.array([1.0, 2.0, 4.0], np.float32)
with tf.Session() as sess:
    sess.run(w.initializer)
    feed = {x: v}
    np.testing.assert_array_equal(sess.run(dx, feed), 2 * np.array([1, 2, 3]) * v)
    np.testing.assert_array_equal(sess.run(dw, feed), v * v)
    np.testing.assert_array_equal(sess.run(weighted, feed), 2 * v * [1, 10, 100])
    np.testing.assert_array_equal(sess.run(second, feed), [2, 4, 6])
    np.testing.assert_array_equal(sess.run(partial, feed), v * v)
    np.testing.assert_array_equal(sess.run(through, feed), [3 * v * v, v])
    np.testing.assert_array_equal(sess.run(hessian, feed), np.diag(6 * v))
