import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers


class Sampling(layers.Layer):
    def call(self, inputs):
        z_mean, z_log_var = inputs
        batch, dim = tf.shape(z_mean)[0], tf.shape(z_mean)[1]
        epsilon = tf.zeros(shape=(batch, dim)) + 0.5
        return z_mean + tf.exp(0.5 * z_log_var) * epsilon


class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.decoder = encoder, decoder
        self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
        self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self):
        return [self.total_loss_tracker, self.kl_loss_tracker]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            z_mean, z_log_var, z = self.encoder(data)
            reconstruction = self.decoder(z)
            reconstruction_loss = tf.reduce_mean(
                tf.reduce_sum(keras.losses.binary_crossentropy(data, reconstruction), axis=-1)
            )
            kl_loss = -0.5 * (1 + z_log_var - tf.square(z_mean) - tf.exp(z_log_var))
            kl_loss = tf.reduce_mean(tf.reduce_sum(kl_loss, axis=1))
            total_loss = reconstruction_loss + kl_loss
        grads = tape.gradient(total_loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total_loss_tracker.update_state(total_loss)
        self.kl_loss_tracker.update_state(kl_loss)
        return {"loss": self.total_loss_tracker.result(), "kl_loss": self.kl_loss_tracker.result()}


c = keras.initializers.Constant
inputs = keras.Input(shape=(6,))
h = layers.Dense(4, activation="relu", kernel_initializer=c(0.2))(inputs)
z_mean = layers.Dense(2, name="z_mean", kernel_initializer=c(0.1))(h)
z_log_var = layers.Dense(2, name="z_log_var", kernel_initializer=c(-0.1))(h)
encoder = keras.Model(inputs, [z_mean, z_log_var, Sampling()([z_mean, z_log_var])], name="encoder")
latent = keras.Input(shape=(2,))
decoder = keras.Model(latent, layers.Dense(6, activation="sigmoid", kernel_initializer=c(0.3))(latent), name="decoder")
vae = VAE(encoder, decoder)
vae.compile(optimizer=keras.optimizers.Adam(0.01))
x = ((np.arange(48).reshape(8, 6) * 7 % 11) / 11).astype("float32")
h = vae.fit(x, epochs=3, batch_size=4, shuffle=False, verbose=0)
RESULT = {"history": h.history, "encoded": encoder.predict(x[:2], verbose=0)[2], "names": [encoder.name, decoder.name]}
