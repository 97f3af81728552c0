"""Sizes that are known when a session runs, in shapes of what is made there."""

import numpy as np

import hybridflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [None, None, 4])
n = tf.shape(x)[0]
flat = tf.reshape(x, [-1, 4])
back = tf.reshape(flat * 2, tf.shape(x))
split = tf.reshape(x, tf.stack([n, -1, 2]))
blank = tf.zeros([n, 3])
filled = tf.fill(tf.stack([n, 2]), 7.0)
numbers = tf.range(n)
joined = tf.concat([tf.shape(x)[:1], [2, 2]], 0)
boxes = tf.ones(joined)
size, rank = tf.size(x), tf.rank(x)
mean = tf.reduce_sum(x) / tf.cast(n * tf.shape(x)[1], tf.float32)
assert flat.shape.as_list() == [None, 4] and blank.shape.as_list() == [None, 3]
assert boxes.shape.as_list() == [None, 2, 2] and split.shape.as_list()[2] == 2
assert x.shape[2].value == 4 and int(x.shape[2]) == 4 and x.shape[0].value is None
assert x.get_shape().ndims == 3 and not x.shape.is_fully_defined()
with tf.Session() as sess:
    for rows, columns in ((2, 3), (5, 1), (3, 3), (1, 6)):
        data = np.random.RandomState(rows).rand(rows, columns, 4).astype(np.float32)
        feed = {x: data}
        np.testing.assert_array_equal(sess.run(back, feed), data * 2)
        found = sess.run([split, blank, filled, numbers, boxes, joined], feed)
        assert [v.shape for v in found] == [
            (rows, columns * 2, 2),
            (rows, 3),
            (rows, 2),
            (rows,),
            (rows, 2, 2),
            (3,),
        ]
        assert found[3].tolist() == list(range(rows)) and found[3].dtype == np.int32
        assert sess.run([size, rank], feed) == [data.size, 3]
        np.testing.assert_allclose(sess.run(mean, feed), data.sum() / (rows * columns), rtol=1e-5)
