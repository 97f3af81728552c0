import tensorflow as tf
import numpy as np

F = tf.constant([[1.0, 1.0], [0.0, 1.0]])
H = tf.constant([[1.0, 0.0]])
Q, R = 0.01 * tf.eye(2), tf.constant([[0.5]])
zs = tf.constant(np.random.default_rng(0).normal(size=(8, 1, 1)).astype("float32").cumsum(0))


@tf.function
def filt(zs):
    x, P = tf.zeros((2, 1)), tf.eye(2)
    xs = tf.TensorArray(tf.float32, size=tf.shape(zs)[0])
    ll = tf.constant(0.0)
    for t in tf.range(tf.shape(zs)[0]):
        x, P = F @ x, F @ P @ tf.transpose(F) + Q
        v = zs[t] - H @ x
        S = H @ P @ tf.transpose(H) + R
        K = P @ tf.transpose(H) @ tf.linalg.inv(S)
        x = x + K @ v
        P = (tf.eye(2) - K @ H) @ P
        ll += -0.5 * (tf.squeeze(tf.transpose(v) @ tf.linalg.solve(S, v)) + tf.math.log(tf.linalg.det(S)))
        xs = xs.write(t, x)
    return xs.stack(), P, ll


xs, P, ll = filt(zs)
RESULT = {"xs": xs, "P": P, "ll": ll}
