import tensorflow as tf


@tf.function
def positions(x, count):
    drawn = tf.random.uniform([64], minval=0, maxval=tf.shape(x)[0], dtype=tf.int32)
    others = tf.random.uniform([64], maxval=count, dtype=tf.int64)
    return tf.reduce_max(drawn) < 5, tf.reduce_min(drawn) >= 0, others


top, bottom, drawn = positions(tf.range(5), tf.constant(3, tf.int64))
low, high = tf.constant(3), tf.constant(5)
between = tf.random.uniform([50], minval=low, maxval=high, dtype=tf.int32).numpy()
floats = tf.random.uniform([50], tf.constant(2.0), tf.constant(2.5)).numpy()
RESULT = {
    "range": [bool(top), bool(bottom)],
    "drawn": sorted(set(drawn.numpy().tolist())),
    "between": sorted(set(between.tolist())),
    "floats": bool((floats >= 2).all() and (floats < 2.5).all()),
    "near": bool(abs(tf.random.normal([4], mean=tf.constant(5.0), stddev=tf.constant(1e-4)).numpy() - 5).max() < 1e-2),
}
