"""Loops in graphs: a factorial, a sum over a data-dependent number of turns, and its derivative."""

import hybridflow.compat.v1 as tf

n = tf.placeholder(tf.int32, [])
i, product = tf.while_loop(lambda i, p: i <= n, lambda i, p: (i + 1, p * i), [tf.constant(1), tf.constant(1)])
x = tf.placeholder(tf.float32, [])
_, power = tf.while_loop(lambda k, y: k < n, lambda k, y: [k + 1, y * x], [0, 1.0])
slope = tf.gradients(power, x)[0]
single = tf.while_loop(lambda k: tf.less(k, 10), lambda k: tf.add(k, 3), [tf.constant(0)])
with tf.Session() as sess:
    assert [int(sess.run(product, {n: k})) for k in (0, 1, 5, 7)] == [1, 1, 120, 5040]
    assert sess.run(i, {n: 5}) == 6
    assert sess.run([power, slope], {n: 3, x: 2.0}) == [8.0, 12.0]
    assert sess.run(single) == 12
