import numpy as np
import tensorflow as tf

a = tf.constant([1, 2, 3])
b = tf.constant(1.5)
c = tf.constant([[1, 2], [3, 4]], dtype=tf.float64)
d = tf.constant(np.arange(3))
e = tf.constant(7, shape=[2, 2])
f = tf.convert_to_tensor([1.0, 2.0], dtype_hint=tf.float64)
RESULT = {
    "dtypes": [t.dtype.name for t in (a, b, c, d, e, f)],
    "big": tf.constant(2**40).dtype.name,
    "e": e,
    "float_max": tf.float32.max,
    "int_min": tf.int16.min,
    "numpy_type": tf.float32.as_numpy_dtype is np.float32,
    "floating": [tf.float16.is_floating, tf.int32.is_integer, tf.as_dtype("float64").size],
    "equal": [a.dtype == tf.int32, a.dtype == "int32", tf.float32 == np.float32, tf.int32 != tf.int64],
}
