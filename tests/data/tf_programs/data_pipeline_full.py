import tensorflow as tf
import numpy as np

ds = tf.data.Dataset.from_tensor_slices({"x": np.arange(12, dtype="float32").reshape(6, 2), "y": np.arange(6)})
ds = ds.filter(lambda d: d["y"] != 3).map(
    lambda d: (d["x"] * 2, tf.one_hot(d["y"] % 3, 3)), num_parallel_calls=tf.data.AUTOTUNE
)
ds = (
    ds.enumerate()
    .map(lambda i, d: (tf.cast(i, tf.float32), *d))
    .padded_batch(2, padded_shapes=([], [3], [3]))
    .prefetch(tf.data.AUTOTUNE)
)
RESULT = {"batches": [[p.numpy() for p in b] for b in ds], "spec": [list(s.shape) for s in ds.element_spec]}
w = tf.data.Dataset.range(7).window(3, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(3))
RESULT["windows"] = [v.numpy() for v in w]
z = tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13))).concatenate(
    tf.data.Dataset.zip((tf.data.Dataset.range(2), tf.data.Dataset.range(2)))
)
RESULT["zip"] = [(int(a), int(b)) for a, b in z]
RESULT["reduce"] = tf.data.Dataset.range(5).reduce(np.int64(0), lambda s, x: s + x)
RESULT["interleave"] = [
    int(v)
    for v in tf.data.Dataset.range(1, 4).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2
    )
]
RESULT["card"] = int(ds.cardinality())
