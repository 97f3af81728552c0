"""Any tensor is fed in the place of what computes it: constants, results of loops, shapes, readings."""

import hybridflow.compat.v1 as tf

c = tf.constant([2, 3], name="c")
made = tf.ones(c)
n = tf.constant(4)
total = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), [0, 0])[1]
after = total * 10
w = tf.Variable(5.0)
scaled = w.value() * 2 if False else tf.identity(w) * 2
with tf.Session() as sess:
    sess.run(w.initializer)
    assert sess.run(made).shape == (2, 3) and sess.run(made, {c: [4, 1]}).shape == (4, 1)
    assert sess.run(after) == 60 and sess.run(after, {n: 3}) == 30 and sess.run(after, {total: 1}) == 10
    assert sess.run(scaled) == 10 and sess.run(scaled, {scaled.op.inputs[0]: 7.0}) == 14
