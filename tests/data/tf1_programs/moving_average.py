"""ExponentialMovingAverage by its formula, and the averages as a saver takes them."""

import numpy as np

import hybridflow.compat.v1 as tf

w = tf.Variable(10.0, name="w")
step = tf.Variable(0, trainable=False, name="step")
ema = tf.train.ExponentialMovingAverage(0.9)
move = ema.apply([w])
change = tf.assign(w, 20.0)
average = ema.average(w)
assert average.name == "w/ExponentialMovingAverage:0"
assert "w/ExponentialMovingAverage" in ema.variables_to_restore()
fast = tf.train.ExponentialMovingAverage(0.99, num_updates=step)
move_fast = fast.apply([w])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(average) == 10
    sess.run(change)
    sess.run(move)
    np.testing.assert_allclose(sess.run(average), 11.0, rtol=1e-6)
    sess.run(move)
    np.testing.assert_allclose(sess.run(average), 11.9, rtol=1e-6)
    sess.run(move_fast)
    np.testing.assert_allclose(sess.run(fast.average(w)), 10 * 0.1 + 20 * 0.9, rtol=1e-6)
