import tensorflow as tf

t = tf.constant([3.0, 4.0])
clipped, norm = tf.clip_by_global_norm([t, tf.constant([12.0])], 6.5)
RESULT = {
    "value": tf.clip_by_value(t, 3.5, 10.0),
    "norm": tf.clip_by_norm(t, 1.0),
    "global": clipped,
    "global_norm": norm,
    "total": tf.linalg.global_norm([t, t]),
}
