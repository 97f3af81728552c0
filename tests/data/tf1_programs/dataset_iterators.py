"""tf.data: one-shot and initializable iterators, fed data sets, an iterator for two of them."""

import numpy as np

import hybridflow.compat.v1 as tf

dataset = tf.data.Dataset.range(6).map(lambda v: v * 10).batch(2)
value = dataset.make_one_shot_iterator().get_next()
features = tf.placeholder(tf.float32, [None, 2])
labels = tf.placeholder(tf.int64, [None])
fed = tf.data.Dataset.from_tensor_slices((features, labels)).map(lambda f, n: (f * 2, tf.cast(n, tf.float32))).repeat(2)
iterator = tf.data.make_initializable_iterator(fed)
row, number = iterator.get_next()
assert row.shape.as_list() == [2] and number.dtype == tf.float32
product = tf.reduce_sum(row) * number
with tf.Session() as sess:
    assert [sess.run(value + 1).tolist() for _ in range(3)] == [[1, 11], [21, 31], [41, 51]]
    try:
        sess.run(value)
    except tf.errors.OutOfRangeError:
        pass
    else:
        raise AssertionError("the end")
    try:
        sess.run(product)
    except tf.errors.FailedPreconditionError:
        pass
    else:
        raise AssertionError("not initialized")
    for factor in (1, 3):
        data = np.array([[1, 2], [3, 4]]) * factor
        sess.run(iterator.initializer, {features: data, labels: [1, 2]})
        found = []
        while True:
            try:
                found.append(float(sess.run(product)))
            except tf.errors.OutOfRangeError:
                break
        assert found == [6.0 * factor, 28.0 * factor] * 2
training, testing = tf.data.Dataset.range(3), tf.data.Dataset.range(100, 102)
either = tf.data.Iterator.from_structure(tf.int64, [])
element = either.get_next()
begin, test = either.make_initializer(training), either.make_initializer(testing)
with tf.Session() as sess:
    sess.run(begin)
    assert [int(sess.run(element)) for _ in range(3)] == [0, 1, 2]
    sess.run(test)
    assert [int(sess.run(element)) for _ in range(2)] == [100, 101]
