import tensorflow as tf


@tf.function
def rk4(f, y, t, dt):
    k1 = f(t, y)
    k2 = f(t + dt / 2, y + dt / 2 * k1)
    k3 = f(t + dt / 2, y + dt / 2 * k2)
    k4 = f(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz(t, s):
    x, y, z = tf.unstack(s)
    return tf.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])


s = tf.constant([1.0, 1.0, 1.0])
path = []
for i in range(10):
    s = rk4(lorenz, s, i * 0.01, 0.01)
    path.append(s)
_, y = tf.while_loop(lambda i, y: i < 50, lambda i, y: (i + 1, y + 0.1 * (-y)), [tf.constant(0), tf.constant(1.0)])
with tf.GradientTape() as tape:
    k = tf.Variable(0.5)
    z = tf.constant(1.0)
    for _ in tf.range(20):
        z = z - 0.1 * k * z
RESULT = {
    "path": tf.stack(path),
    "y": y,
    "dz": tape.gradient(z, k),
    "cond": tf.cond(y < 1.0, lambda: y * 2, lambda: y),
    "case": tf.case([(y > 1, lambda: 1), (y > 0, lambda: 2)], default=lambda: 3),
    "sw": tf.switch_case(tf.constant(1), [lambda: 10, lambda: 20]),
}
