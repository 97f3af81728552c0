import tensorflow as tf

x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]])
RESULT = {
    "sum": tf.reduce_sum(x),
    "sum0": tf.reduce_sum(x, 0),
    "kept": tf.reduce_sum(x, axis=1, keepdims=True),
    "both": tf.reduce_sum(x, axis=[0, 1]),
    "mean": tf.reduce_mean(x, axis=-1),
    "max": tf.reduce_max(x, 1),
    "min": tf.reduce_min(x, 1),
    "prod": tf.reduce_prod(x, 0),
    "std": tf.math.reduce_std(x),
    "variance": tf.math.reduce_variance(x, axis=0),
    "logsumexp": tf.reduce_logsumexp(x, axis=1),
    "norm": tf.math.reduce_euclidean_norm(x),
    "all": tf.reduce_all(x > 0),
    "any": tf.reduce_any(x > 4, axis=1),
    "nonzero": tf.math.count_nonzero([[0, 1], [2, 0]], axis=1),
    "zero_fraction": tf.math.zero_fraction([0.0, 1.0, 0.0, 3.0]),
}
