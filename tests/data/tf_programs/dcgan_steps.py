import tensorflow as tf
import numpy as np

C = tf.keras.initializers.Constant
L = tf.keras.layers
gen = tf.keras.Sequential(
    [
        tf.keras.Input((5,)),
        L.Dense(2 * 2 * 4, use_bias=False, kernel_initializer=C(0.1)),
        L.BatchNormalization(),
        L.LeakyReLU(),
        L.Reshape((2, 2, 4)),
        L.Conv2DTranspose(2, 5, strides=2, padding="same", use_bias=False, kernel_initializer=C(0.05)),
        L.BatchNormalization(),
        L.LeakyReLU(),
        L.Conv2DTranspose(
            1, 5, strides=2, padding="same", use_bias=False, activation="tanh", kernel_initializer=C(0.1)
        ),
    ]
)
disc = tf.keras.Sequential(
    [
        tf.keras.Input((8, 8, 1)),
        L.Conv2D(4, 5, strides=2, padding="same", kernel_initializer=C(0.03)),
        L.LeakyReLU(),
        L.Dropout(0.0),
        L.Flatten(),
        L.Dense(1, kernel_initializer=C(0.05)),
    ]
)
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)
go, do = tf.keras.optimizers.Adam(1e-2), tf.keras.optimizers.Adam(1e-2)
rng = np.random.default_rng(0)


@tf.function
def train_step(images, noise):
    with tf.GradientTape() as gt, tf.GradientTape() as dt:
        fake = gen(noise, training=True)
        ro, fo = disc(images, training=True), disc(fake, training=True)
        gl = bce(tf.ones_like(fo), fo)
        dl = bce(tf.ones_like(ro), ro) + bce(tf.zeros_like(fo), fo)
    go.apply_gradients(zip(gt.gradient(gl, gen.trainable_variables), gen.trainable_variables))
    do.apply_gradients(zip(dt.gradient(dl, disc.trainable_variables), disc.trainable_variables))
    return gl, dl


losses = []
for _ in range(3):
    losses.append(
        [
            float(v)
            for v in train_step(
                tf.constant(rng.random((4, 8, 8, 1)), tf.float32), tf.constant(rng.normal(size=(4, 5)), tf.float32)
            )
        ]
    )
RESULT = {
    "losses": losses,
    "shape": list(gen(tf.ones([1, 5]), training=False).shape),
    "moving": gen.layers[1].moving_variance[:2] if hasattr(gen.layers[1], "moving_variance") else 0,
}
