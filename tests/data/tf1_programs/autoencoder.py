"""Tied weights: one variable in two places, its gradient from both."""

import numpy as np

import hybridflow.compat.v1 as tf

rng = np.random.RandomState(0)
data = rng.randn(8, 4).astype(np.float32)
start = rng.randn(4, 2).astype(np.float32)
x = tf.placeholder(tf.float32, [None, 4])
w = tf.Variable(start)
code = tf.matmul(x, w)
out = tf.matmul(code, w, transpose_b=True)
loss = tf.reduce_sum(tf.square(out - x))
gradient = tf.gradients(loss, w)[0]
with tf.Session() as sess:
    sess.run(w.initializer)
    e = data @ start @ start.T - data
    expected = 2 * (data.T @ e @ start + e.T @ data @ start)
    np.testing.assert_allclose(sess.run(gradient, {x: data}), expected, rtol=1e-4)
