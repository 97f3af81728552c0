import tensorflow as tf

x = tf.constant([[1, 2, 3], [4, 5, 6]])
RESULT = {
    "plain": tf.cumsum(x),
    "axis": tf.cumsum(x, axis=1),
    "exclusive": tf.cumsum(x, axis=1, exclusive=True),
    "reverse": tf.cumsum(x, axis=1, reverse=True),
    "both": tf.cumsum(x, axis=-1, exclusive=True, reverse=True),
    "product": tf.math.cumprod([1.0, 2.0, 3.0, 4.0]),
}
