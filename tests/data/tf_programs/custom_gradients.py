import tensorflow as tf


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


x = tf.constant([0.0, 100.0])
with tf.GradientTape() as tape:
    tape.watch(x)
    y = log1pexp(x)
stopped = tf.constant(3.0)
with tf.GradientTape() as second:
    second.watch(stopped)
    z = tf.stop_gradient(stopped) * stopped
RESULT = {"derivative": tape.gradient(y, x), "stopped": second.gradient(z, stopped)}
