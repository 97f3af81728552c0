import numpy as np
import tensorflow as tf

c = tf.keras.initializers.Constant
generator = tf.keras.Sequential(
    [
        tf.keras.Input((2,)),
        tf.keras.layers.Dense(8, use_bias=False, kernel_initializer=c(0.1)),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.LeakyReLU(),
        tf.keras.layers.Reshape((2, 2, 2)),
        tf.keras.layers.Conv2DTranspose(
            1, (3, 3), strides=(2, 2), padding="same", activation="tanh", kernel_initializer=c(0.1)
        ),
    ]
)
discriminator = tf.keras.Sequential(
    [
        tf.keras.Input((4, 4, 1)),
        tf.keras.layers.Conv2D(2, (3, 3), strides=(2, 2), padding="same", kernel_initializer=c(0.2)),
        tf.keras.layers.LeakyReLU(),
        tf.keras.layers.Dropout(0.0),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(1, kernel_initializer=c(0.3)),
    ]
)
cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
g_opt, d_opt = tf.keras.optimizers.Adam(1e-2, beta_1=0.5), tf.keras.optimizers.Adam(1e-2)


def discriminator_loss(real_output, fake_output):
    return cross_entropy(tf.ones_like(real_output), real_output) + cross_entropy(
        tf.zeros_like(fake_output), fake_output
    )


@tf.function
def train_step(images, noise):
    with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
        generated = generator(noise, training=True)
        real, fake = discriminator(images, training=True), discriminator(generated, training=True)
        gen_loss = cross_entropy(tf.ones_like(fake), fake)
        disc_loss = discriminator_loss(real, fake)
    g = gen_tape.gradient(gen_loss, generator.trainable_variables)
    d = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
    g_opt.apply_gradients(zip(g, generator.trainable_variables))
    d_opt.apply_gradients(zip(d, discriminator.trainable_variables))
    return gen_loss, disc_loss


images = tf.constant(np.cos(np.arange(64)).reshape(4, 4, 4, 1), tf.float32)
noise = tf.constant(np.sin(np.arange(8)).reshape(4, 2), tf.float32)
RESULT = {
    "losses": [[float(l) for l in train_step(images, noise)] for _ in range(3)],
    "sum": float(tf.reduce_sum(tf.abs(generator(noise)))),
}
