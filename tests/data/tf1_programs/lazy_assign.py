"""Assignments are operations: nothing happens before they run, or without what depends on them."""

import hybridflow.compat.v1 as tf

state = tf.Variable(0, name="counter")
one = tf.constant(1)
new_value = tf.add(state, one)
update = tf.assign(state, new_value)
both = tf.group(update)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(state) == 0
    seen = []
    for _ in range(3):
        sess.run(update)
        seen.append(int(sess.run(state)))
    assert seen == [1, 2, 3]
    assert sess.run(both) is None and sess.run(state) == 4
    sess.run(new_value)
    assert sess.run(state) == 4
rows = tf.Variable([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
with tf.Session() as sess:
    sess.run(rows.initializer)
    assert sess.run(tf.scatter_add(rows, [0, 2], [[10.0, 10.0], [20.0, 20.0]])).tolist() == [[11, 11], [2, 2], [23, 23]]
    assert sess.run(tf.scatter_update(rows, [1], [[5.0, 6.0]])).tolist() == [[11, 11], [5, 6], [23, 23]]
    try:
        rows.assign(tf.zeros([2, 2]))
    except ValueError:
        pass
    else:
        raise AssertionError("another shape")
