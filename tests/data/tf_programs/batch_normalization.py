import tensorflow as tf

x = tf.constant([[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]])
mean, variance = tf.nn.moments(x, axes=[0])
RESULT = {
    "mean": mean,
    "variance": variance,
    "normalized": tf.nn.batch_normalization(x, mean, variance, offset=1.0, scale=2.0, variance_epsilon=1e-3),
    "plain": tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3),
    "kept": tf.nn.moments(x, axes=1, keepdims=True)[0],
}
