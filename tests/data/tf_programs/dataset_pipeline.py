import tensorflow as tf

data = (
    tf.data.Dataset.from_tensor_slices(([1, 2, 3, 4, 5], [10.0, 20.0, 30.0, 40.0, 50.0]))
    .filter(lambda x, y: x != 3)
    .map(lambda x, y: (x * 2, y + 1), num_parallel_calls=tf.data.AUTOTUNE)
    .batch(3)
    .prefetch(tf.data.AUTOTUNE)
)
RESULT = {
    "batches": [(x, y) for x, y in data],
    "dtypes": [data.element_spec[0].dtype.name, data.element_spec[1].dtype.name],
    "range": list(tf.data.Dataset.range(2, 9, 3).as_numpy_iterator()),
    "range_dtype": tf.data.Dataset.range(3).element_spec.dtype.name,
    "repeat": list(tf.data.Dataset.range(2).repeat(2).as_numpy_iterator()),
    "enumerate": [(int(i), int(x)) for i, x in tf.data.Dataset.range(5, 7).enumerate()],
    "zip": [(int(a), int(b)) for a, b in tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.range(3, 6)))],
    "windows": [list(w.as_numpy_iterator()) for w in tf.data.Dataset.range(5).window(3, shift=2, drop_remainder=True)],
    "flat_map": list(tf.data.Dataset.range(3).flat_map(lambda x: tf.data.Dataset.range(x)).as_numpy_iterator()),
    "reduce": tf.data.Dataset.range(5).reduce(tf.constant(0, tf.int64), lambda a, x: a + x),
    "take_skip": list(tf.data.Dataset.range(10).skip(2).take(3).as_numpy_iterator()),
    "concatenate": list(tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(7, 9)).as_numpy_iterator()),
    "shuffled": sorted(tf.data.Dataset.range(8).shuffle(4, seed=1).as_numpy_iterator()),
    "cardinality": int(tf.data.Dataset.range(7).cardinality()),
    "length": len(tf.data.Dataset.range(7).batch(2)),
    "dict": [{k: int(v) for k, v in e.items()} for e in tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [3, 4]})],
    "unbatch": list(tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch().as_numpy_iterator()),
    "cache": list(tf.data.Dataset.range(3).cache().as_numpy_iterator()),
    "interleave": list(
        tf.data.Dataset.range(3)
        .interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2, block_length=1)
        .as_numpy_iterator()
    ),
}
