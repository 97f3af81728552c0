"""Effects happen in the order that control dependencies say."""

import hybridflow.compat.v1 as tf

x = tf.Variable(1.0)
y = tf.Variable(0.0)
first = tf.assign(x, 5.0)
with tf.control_dependencies([first]):
    second = tf.assign(y, x.read_value() * 2)
    with tf.control_dependencies([second]):
        third = tf.assign_add(x, y)
        last = tf.no_op()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(third) == 15
    assert sess.run([x, y]) == [15, 10]
    sess.run(tf.global_variables_initializer())
    sess.run(last)
    assert sess.run([x, y]) == [5, 10]
    assert [op.name for op in third.op.control_inputs] == ["Assign", "Assign_1"]
    with tf.control_dependencies([tf.assign_add(y, 1.0)]):
        same = tf.identity(y)
    assert sess.run(same) == 11
    waits = tf.tuple([tf.constant(1.0), tf.constant(2.0)], control_inputs=[tf.assign(y, 0.0)])
    assert sess.run(waits[1]) == 2 and sess.run(y) == 0
