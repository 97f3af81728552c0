import tensorflow as tf

x = tf.constant([[3, 1, 2], [9, 8, 10]])
found = tf.math.top_k(x, k=2)
RESULT = {
    "argmax": tf.argmax(x),
    "argmax_dtype": tf.argmax(x).dtype.name,
    "argmax1": tf.argmax(x, axis=1, output_type=tf.int32),
    "argmin": tf.argmin(x, axis=-1),
    "sort": tf.sort(x),
    "descending": tf.sort(x, axis=0, direction="DESCENDING"),
    "argsort": tf.argsort(x, direction="DESCENDING"),
    "argsort_dtype": tf.argsort(x).dtype.name,
    "values": found.values,
    "indices": found.indices,
    "in_top_k": tf.math.in_top_k([1, 2], [[0.1, 0.8, 0.1], [0.5, 0.3, 0.2]], k=1),
    "searchsorted": tf.searchsorted([1.0, 3.0, 5.0], [0.0, 3.0, 6.0]),
    "right": tf.searchsorted([[1, 3, 5], [2, 4, 6]], [[3], [4]], side="right"),
}
