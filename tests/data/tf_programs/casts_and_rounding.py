import tensorflow as tf

x = tf.constant([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
RESULT = {
    "round": tf.round(x),
    "cast": tf.cast(x, tf.int32),
    "bool": tf.cast([0, 2, -1], tf.bool),
    "saturate": tf.saturate_cast([300.0, -5.0, 7.2], tf.uint8),
    "floor": tf.floor(x),
    "ceil": tf.math.ceil(x),
    "rint": tf.math.rint(x),
}
