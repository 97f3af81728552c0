"""A run in steps keeps what it has computed."""

import hybridflow.compat.v1 as tf

a = tf.placeholder(tf.float32, shape=[])
b = tf.placeholder(tf.float32, shape=[])
c = tf.placeholder(tf.float32, shape=[])
noise = tf.random_uniform([])
r1 = a + b + noise
r2 = r1 * c
with tf.Session() as sess:
    h = sess.partial_run_setup([r1, r2], [a, b, c])
    first = sess.partial_run(h, r1, feed_dict={a: 1, b: 2})
    assert 3 <= first < 4
    assert sess.partial_run(h, r2, feed_dict={c: 10}) == first * 10
    try:
        sess.partial_run(h, r2, feed_dict={c: 10})
    except RuntimeError:
        pass
    else:
        raise AssertionError("fed twice")
