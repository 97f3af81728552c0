"""Names and arguments of TensorFlow before 1.0 and since, side by side."""

import numpy as np

import hybridflow.compat.v1 as tf

x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
pairs = [
    (tf.reduce_mean(x, reduction_indices=[0]), [2.5, 3.5, 4.5]),
    (tf.reduce_sum(x, 1, keep_dims=True), [[6.0], [15.0]]),
    (tf.argmax(x, dimension=1), [2, 2]),
    (tf.nn.softmax(tf.zeros([2, 2]), dim=0), [[0.5, 0.5], [0.5, 0.5]]),
    (tf.to_int32(tf.constant([1.7, -1.7])), [1, -1]),
    (tf.expand_dims(tf.constant([1, 2]), dim=1), [[1], [2]]),
    (tf.squeeze(tf.ones([1, 2, 1]), squeeze_dims=[0]), [[1.0], [1.0]]),
    (tf.transpose(x, perm=[1, 0])[0], [1.0, 4.0]),
    (tf.concat([x, x], axis=0)[2:, ::2], [[1.0, 3.0], [4.0, 6.0]]),
    (tf.div(tf.constant(7), tf.constant(2)), 3),
    (tf.constant(7) / tf.constant(2), 3.5),
    (tf.slice(x, [0, 1], [-1, 2]), [[2.0, 3.0], [5.0, 6.0]]),
    (tf.gather(x, [1])[0], [4.0, 5.0, 6.0]),
    (tf.split(x, 3, axis=1)[1], [[2.0], [5.0]]),
    (tf.split(x, [1, -1], 1)[1], [[2.0, 3.0], [5.0, 6.0]]),
    (tf.one_hot([0, 2], 3, on_value=5.0, off_value=1.0), [[5.0, 1.0, 1.0], [1.0, 1.0, 5.0]]),
    (tf.tile(tf.constant([[1, 2]]), [2, 1]), [[1, 2], [1, 2]]),
    (tf.pad(tf.constant([[1]]), [[1, 0], [0, 1]]), [[0, 0], [1, 0]]),
    (tf.cumsum([1, 2, 3], exclusive=True), [0, 1, 3]),
    (tf.where(tf.constant([True, False]), x, -x), [[1.0, 2.0, 3.0], [-4.0, -5.0, -6.0]]),
    (
        tf.nn.top_k(x, 2).values if hasattr(tf.nn.top_k(x, 2), "values") else tf.nn.top_k(x, 2)[0],
        [[3.0, 2.0], [6.0, 5.0]],
    ),
    (tf.nn.in_top_k(x, [2, 0], 1), [True, False]),
    (tf.clip_by_value(x, 2.0, 5.0)[0], [2.0, 2.0, 3.0]),
    (tf.matmul(x, x, transpose_b=True), [[14.0, 32.0], [32.0, 77.0]]),
    (tf.add_n([x, x, x])[1], [12.0, 15.0, 18.0]),
    (x + np.array([1.0, 2.0, 3.0]), [[2.0, 4.0, 6.0], [5.0, 7.0, 9.0]]),
    (tf.nn.l2_loss(x), 45.5),
    (tf.range(3, 18, 3), [3, 6, 9, 12, 15]),
    (tf.random_uniform([2, 2], 5.0, 5.0), [[5.0, 5.0], [5.0, 5.0]]),
]
with tf.Session() as sess:
    for k, (tensor, expected) in enumerate(pairs):
        np.testing.assert_allclose(sess.run(tensor), expected, rtol=1e-6, err_msg=str(k))
    assert sess.run(pairs[-4][0]).dtype == np.float32
