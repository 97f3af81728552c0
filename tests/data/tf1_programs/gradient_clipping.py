"""compute_gradients, changed, and applied; a learning rate that decays with the global step."""

import numpy as np

import hybridflow.compat.v1 as tf

w = tf.Variable([3.0, 4.0])
unused = tf.Variable(1.0)
global_step = tf.Variable(0, trainable=False, name="global_step")
rate = tf.train.exponential_decay(1.0, global_step, 2, 0.5, staircase=True)
optimizer = tf.train.GradientDescentOptimizer(rate)
pairs = optimizer.compute_gradients(tf.reduce_sum(w * w) / 2)
assert [g is None for g, _ in pairs] == [False, True]
clipped = [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs if g is not None]
train = optimizer.apply_gradients(clipped, global_step=global_step)
both, norm = tf.clip_by_global_norm([pairs[0][0]], 2.5)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    np.testing.assert_allclose(sess.run(norm), 5.0)
    np.testing.assert_allclose(sess.run(both[0]), [1.5, 2.0])
    rates = []
    for _ in range(4):
        rates.append(float(sess.run(rate)))
        sess.run(train)
    assert rates == [1.0, 1.0, 0.5, 0.5]
    np.testing.assert_allclose(sess.run(w), np.array([0.6, 0.8]) * 2, rtol=1e-6)
    assert tf.train.global_step(sess, global_step) == 4
try:
    optimizer.minimize(tf.constant(1.0))
except ValueError as error:
    assert "No gradients provided for any variable" in str(error)
else:
    raise AssertionError("nothing to train")
