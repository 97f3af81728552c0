"""py_func, Print and Assert while a session runs."""

import contextlib
import io

import numpy as np

import hybridflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [None])
calls = []


def unusual(a):
    calls.append(a.shape)
    return np.sort(a)[::-1].astype(np.float32)


y = tf.py_func(unusual, [x], tf.float32)
known = tf.py_func(lambda a: np.float32(a.sum()), [x], tf.float32)
known.set_shape([])
shown = tf.Print(x, [x, tf.shape(x)], "x is ", first_n=2)
positive = tf.Assert(tf.reduce_all(x > 0), ["not positive:", x])
with tf.control_dependencies([positive]):
    root = tf.sqrt(x)
with tf.Session() as sess:
    for _ in range(3):
        assert sess.run(y * 2, {x: [1, 3, 2]}).tolist() == [6, 4, 2]
        assert sess.run(known * 2, {x: [1, 3, 2]}) == 12
    assert calls == [(3,)] * 3
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        for _ in range(3):
            assert sess.run(shown + 1, {x: [1, 2]}).tolist() == [2, 3]
    assert printed.getvalue() == "x is [1 2][2]\n" * 2
    for _ in range(3):
        assert sess.run(root, {x: [4, 9]}).tolist() == [2, 3]
        try:
            sess.run(root, {x: [4, -9]})
        except tf.errors.InvalidArgumentError as error:
            assert "not positive:" in str(error)
        else:
            raise AssertionError("not positive")
    try:
        sess.run(tf.assert_equal(x, [1.0]), {x: [2.0]})
    except tf.errors.InvalidArgumentError:
        pass
    else:
        raise AssertionError("not equal")
