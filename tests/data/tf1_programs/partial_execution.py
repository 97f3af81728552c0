"""Only what fetches need runs; any tensor may be fed; fetches nest."""

import collections

import numpy as np

import hybridflow.compat.v1 as tf

a = tf.placeholder(tf.float32, name="a")
b = tf.placeholder(tf.float32, name="b")
doubled = 2 * a
total = doubled + b
unused = tf.Variable(1.0)
Pair = collections.namedtuple("Pair", "left right")
with tf.Session() as sess:
    assert sess.run(doubled, {a: 4}) == 8  # b is not fed, and the variable is not initialized
    assert sess.run(total, {doubled: 10.0, b: 1.0}) == 11  # a is not needed
    found = sess.run({"t": total, "p": Pair(a, [b, tf.no_op()])}, {a: 1, b: [2, 3]})
    assert found["t"].tolist() == [4, 5] and found["p"].left == 1
    assert found["p"].right[0].tolist() == [2, 3] and found["p"].right[1] is None
    assert sess.run("add:0", {"a:0": 1.0, "b:0": 2.0}) == 4
    try:
        sess.run(total, {a: 1.0})
    except tf.errors.InvalidArgumentError as error:
        assert "You must feed a value for placeholder tensor 'b'" in str(error)
    else:
        raise AssertionError("b was not fed")
    for wrong in (None, 3, "nothing:0"):
        try:
            sess.run(wrong)
        except (TypeError, ValueError):
            continue
        raise AssertionError(wrong)
    callable_ = sess.make_callable(total, [a, b])
    np.testing.assert_array_equal(callable_(1.0, 2.0), 4.0)
