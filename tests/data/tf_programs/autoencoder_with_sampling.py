import numpy as np
import tensorflow as tf


class Sampling(tf.keras.layers.Layer):
    def call(self, inputs):
        mean, log_var = inputs
        eps = tf.random.normal(tf.shape(mean))
        return mean + tf.exp(0.5 * log_var) * eps


inputs = tf.keras.Input((4,))
h = tf.keras.layers.Dense(3, activation="relu", kernel_initializer="ones")(inputs)
mean = tf.keras.layers.Dense(2, kernel_initializer="ones")(h)
log_var = tf.keras.layers.Dense(2, kernel_initializer="zeros")(h)
z = Sampling()([mean, log_var])
encoder = tf.keras.Model(inputs, [mean, log_var, z])
x = np.ones((500, 4), "float32")
m, v, sample = encoder(x)
kl = -0.5 * tf.reduce_mean(tf.reduce_sum(1 + v - tf.square(m) - tf.exp(v), axis=1))
RESULT = {
    "kl": kl,
    "spread": abs(float(tf.math.reduce_std(sample - m)) - 1.0) < 0.1,
    "shape": list(sample.shape),
}
