import tensorflow as tf
import numpy as np

rng = np.random.default_rng(0)
X = tf.constant(np.c_[np.ones(20), rng.normal(size=20)])
y = tf.constant(rng.normal(size=(20, 1)))
alpha, beta = tf.Variable(1.0, dtype=tf.float64), tf.Variable(2.0, dtype=tf.float64)
A = alpha * tf.eye(2, dtype=tf.float64) + beta * tf.matmul(X, X, transpose_a=True)
chol = tf.linalg.cholesky(A)
mean = beta * tf.linalg.cholesky_solve(chol, tf.matmul(X, y, transpose_a=True))
cov = tf.linalg.inv(A)
with tf.GradientTape() as tape:
    A = tf.linalg.diag(tf.fill([2], alpha)) + beta * tf.transpose(X) @ X
    m = beta * tf.linalg.solve(A, tf.transpose(X) @ y)
    err = tf.reduce_sum(tf.square(y - X @ m))
    ev = 0.5 * (
        2 * tf.math.log(alpha) + 20 * tf.math.log(beta) - beta * err - alpha * tf.reduce_sum(m**2) - tf.linalg.logdet(A)
    )
RESULT = {
    "mean": mean,
    "cov": cov,
    "ev": ev,
    "g": tape.gradient(ev, [alpha, beta]),
    "slogdet": [*tf.linalg.slogdet(A)],
    "lgamma": tf.math.lgamma(tf.constant([0.5, 3.0])),
    "student": tf.math.lgamma(2.5) - tf.math.lgamma(2.0),
    "digamma": tf.math.digamma(tf.constant([1.0, 4.0])),
}
