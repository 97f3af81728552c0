import tensorflow as tf

RESULT = {
    "limit": tf.range(5),
    "steps": tf.range(10, 1, -3),
    "floats": tf.range(0.0, 1.0, 0.25),
    "dtype": tf.range(3).dtype.name,
    "int64": tf.range(tf.constant(4, tf.int64)).dtype.name,
    "linspace": tf.linspace(0.0, 1.0, 5),
    "fill": tf.fill([2, 3], 9),
    "fill_dtype": tf.fill([1], 2.5).dtype.name,
    "eye": tf.eye(2, 3, batch_shape=[2]),
    "zeros_like": tf.zeros_like([1, 2]),
    "ones": tf.ones([2], tf.int64).dtype.name,
}
