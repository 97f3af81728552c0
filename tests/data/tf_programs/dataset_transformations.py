"""Transformations of tf.data.experimental, given to apply."""

import tensorflow as tf

numbers = tf.data.Dataset.range(10)
more = tf.data.experimental


def listed(data):
    return [[v.tolist() for v in x] if isinstance(x, tuple) else x.tolist() for x in data.as_numpy_iterator()]


def even(x):
    return tf.cast(x % 2, tf.int64)


RESULT = {
    "counted": listed(numbers.filter(lambda x: x < 4).apply(more.assert_cardinality(4))),
    "buckets": listed(
        tf.data.Dataset.from_tensor_slices([1, 4, 2, 5])
        .map(lambda n: tf.ones([n]))
        .apply(more.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3], [2, 2]))
    ),
    "numbered": listed(numbers.take(3).apply(more.enumerate_dataset(start=5))),
    "grouped": listed(numbers.apply(more.group_by_window(even, lambda key, window: window.batch(3), 3))),
    "mapped": listed(numbers.apply(more.map_and_batch(lambda x: x + 1, 4, drop_remainder=True))),
    "interleaved": listed(
        numbers.take(4).apply(more.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(3), 2))
    ),
    "sums": listed(numbers.apply(more.scan(tf.constant(0, tf.int64), lambda total, x: (total + x, total + x)))),
    "repeated": sorted(listed(numbers.apply(more.shuffle_and_repeat(4, 2, seed=1)))),
    "begins": listed(numbers.apply(more.take_while(lambda x: x < 5))),
    "apart": listed(numbers.batch(4).apply(more.unbatch())),
    "once": listed(tf.data.Dataset.from_tensor_slices([3, 1, 3]).apply(more.unique())),
    "single": more.get_single_element(numbers.batch(10)).numpy().tolist(),
    "known": int(more.cardinality(numbers.repeat()).numpy() == more.INFINITE_CARDINALITY),
}
