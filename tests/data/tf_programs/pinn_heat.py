import tensorflow as tf
import numpy as np

init = tf.keras.initializers.Constant
net = tf.keras.Sequential(
    [
        tf.keras.Input((2,)),
        tf.keras.layers.Dense(8, "tanh", kernel_initializer=init(0.3), bias_initializer=init(0.1)),
        tf.keras.layers.Dense(8, "tanh", kernel_initializer=init(0.2)),
        tf.keras.layers.Dense(1, kernel_initializer=init(0.1)),
    ]
)
rng = np.random.default_rng(0)
tc, xc = (tf.constant(rng.random((12, 1)), tf.float32) for _ in range(2))
x0 = tf.constant(rng.random((6, 1)), tf.float32)
u0 = tf.sin(np.pi * x0)


def residual(t, x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(t)
        tape.watch(x)
        u = net(tf.stack([t[:, 0], x[:, 0]], axis=1))
        u_x = tape.gradient(u, x)
    u_t = tape.gradient(u, t)
    u_xx = tape.gradient(u_x, x)
    del tape
    return u_t + u * u_x - (0.01 / np.pi) * u_xx


opt = tf.keras.optimizers.Adam(0.01)


@tf.function
def step():
    with tf.GradientTape(persistent=True) as tape:
        r = residual(tc, xc)
        phi = tf.reduce_mean(tf.square(r))
        loss = phi + tf.reduce_mean(tf.square(u0 - net(tf.concat([tf.zeros_like(x0), x0], 1))))
    g = tape.gradient(loss, net.trainable_variables)
    del tape
    opt.apply_gradients(zip(g, net.trainable_variables))
    return loss


RESULT = {"losses": [float(step()) for _ in range(5)]}
