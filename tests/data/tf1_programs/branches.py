"""tf.cond runs what is inside of one branch alone; tf.case; assignments in branches."""

import hybridflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [])
y = tf.placeholder(tf.float32, [])
count = tf.Variable(0)
larger = tf.cond(x > y, lambda: x - y, lambda: y - x)
counted = tf.cond(x > 0, lambda: tf.assign_add(count, 1), lambda: tf.assign_add(count, 10))
kind = tf.case([(x < 0, lambda: tf.constant(-1)), (x > 0, lambda: tf.constant(1))], default=lambda: tf.constant(0))
slope = tf.gradients(larger, [x, y])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(larger, {x: 5, y: 3}) == 2 and sess.run(larger, {x: 1, y: 4}) == 3
    assert sess.run(slope, {x: 5, y: 3}) == [1, -1]
    assert [int(sess.run(kind, {x: v})) for v in (-2, 0, 3)] == [-1, 0, 1]
    assert sess.run(counted, {x: 1}) == 1 and sess.run(counted, {x: -1}) == 11
    assert sess.run(counted, {x: 1}) == 12 and sess.run(count) == 12
