"""Feeds that do not fit are refused with TensorFlow's words."""

import numpy as np

import hybridflow.compat.v1 as tf

x = tf.placeholder(tf.float32, shape=(None, 3), name="x")
mean = tf.reduce_mean(x, reduction_indices=[1], keep_dims=True)
free = tf.placeholder(tf.float32)
default = tf.placeholder_with_default(tf.constant([1.0, 2.0]), [None])
with tf.Session() as sess:
    assert sess.run(mean, {x: [[1, 2, 3], [4, 5, 9]]}).tolist() == [[2], [6]]
    try:
        sess.run(mean, {x: np.ones((2, 4))})
    except ValueError as error:
        assert "Cannot feed value of shape (2, 4) for Tensor 'x:0', which has shape '(?, 3)'" in str(error)
    else:
        raise AssertionError("a shape")
    assert sess.run(tf.reduce_sum(free), {free: np.ones((2, 2, 2))}) == 8
    assert sess.run(tf.reduce_sum(free), {free: 3}) == 3
    assert sess.run(tf.reduce_sum(default)) == 3
    assert sess.run(tf.reduce_sum(default), {default: [5, 6, 7]}) == 18
    for rows in (1, 2, 5, 7):
        assert sess.run(mean, {x: np.full((rows, 3), 2.0)}).shape == (rows, 1)
