import numpy as np
import tensorflow as tf

x = np.linspace(0, 3, 12)[:, None]
y = np.sin(x)
length = tf.Variable(0.8, dtype=tf.float64)


@tf.function
def negative_log_likelihood():
    d = tf.math.squared_difference(x, tf.transpose(tf.constant(x)))
    K = tf.exp(-d / (2 * length**2)) + 0.1 * tf.eye(12, dtype=tf.float64)
    L = tf.linalg.cholesky(K)
    a = tf.linalg.cholesky_solve(L, y)
    return 0.5 * tf.reduce_sum(y * a) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(L)))


with tf.GradientTape() as tape:
    loss = negative_log_likelihood()
RESULT = {"loss": loss, "gradient": tape.gradient(loss, length)}
