import tensorflow as tf

w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
with tf.GradientTape() as tape:
    tape.watch(w)
    y = tf.reduce_sum(tf.nn.relu(w - 2.5)) + tf.reduce_max(w) + tf.norm(w)
with tf.GradientTape() as second:
    z = tf.reduce_sum(tf.math.reduce_std(w, axis=0) * tf.reduce_prod(w, axis=1))
with tf.GradientTape() as third:
    q = tf.reduce_sum(tf.gather(w, [0, 0]) * tf.constant([[1.0, 2.0], [3.0, 4.0]])) + tf.reduce_sum(tf.sort(w)[:, 0])
with tf.GradientTape() as fourth:
    with fourth.stop_recording():
        ignored = w * 100.0
    u = tf.reduce_sum(tf.where(w > 2.0, w * w, ignored))
RESULT = {
    "first": tape.gradient(y, w),
    "second": second.gradient(z, w),
    "third": third.gradient(q, w),
    "fourth": fourth.gradient(u, w),
}
