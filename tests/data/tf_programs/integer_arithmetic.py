import tensorflow as tf

a, b = tf.constant([7, -7, 7, -7]), tf.constant([2, 2, -2, -2])
RESULT = {
    "floordiv": tf.math.floordiv(a, b),
    "mod": tf.math.mod(a, b),
    "truncatediv": tf.truncatediv(a, b),
    "truncatemod": tf.truncatemod(a, b),
    "divide": tf.divide(a, b),
    "divide_dtype": tf.divide(a, b).dtype.name,
    "mean": tf.reduce_mean([1, 2, 4]),
    "mean_negative": tf.reduce_mean([-1, -2, -4]),
    "mean_axis": tf.reduce_mean([[1, 2], [4, 9]], axis=1),
    "sum_dtype": tf.reduce_sum(a).dtype.name,
    "power": tf.pow(tf.constant([2, 3]), 3),
    "shift": tf.bitwise.left_shift(tf.constant([1, 2]), tf.constant([3, 1])),
    "xor": tf.bitwise.bitwise_xor(tf.constant([5]), tf.constant([3])),
}
