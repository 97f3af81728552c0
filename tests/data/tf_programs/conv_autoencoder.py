import numpy as np
import tensorflow as tf
from tensorflow.keras import Model, layers


class Denoise(Model):
    def __init__(self):
        super().__init__()
        ones = tf.keras.initializers.Constant(0.05)
        self.encoder = tf.keras.Sequential(
            [
                layers.Input(shape=(8, 8, 1)),
                layers.Conv2D(4, (3, 3), activation="relu", padding="same", strides=2, kernel_initializer=ones),
                layers.Conv2D(2, (3, 3), activation="relu", padding="same", strides=2, kernel_initializer=ones),
            ]
        )
        self.decoder = tf.keras.Sequential(
            [
                layers.Conv2DTranspose(
                    2, kernel_size=3, strides=2, activation="relu", padding="same", kernel_initializer=ones
                ),
                layers.Conv2DTranspose(
                    4, kernel_size=3, strides=2, activation="relu", padding="same", kernel_initializer=ones
                ),
                layers.Conv2D(1, kernel_size=(3, 3), activation="sigmoid", padding="same", kernel_initializer=ones),
            ]
        )

    def call(self, x):
        encoded = self.encoder(x)
        return self.decoder(encoded)


x = (np.arange(4 * 64).reshape(4, 8, 8, 1) % 7 / 7).astype("float32")
model = Denoise()
model.compile(optimizer="adam", loss=tf.keras.losses.MeanSquaredError())
h = model.fit(x, x, epochs=2, batch_size=2, shuffle=False, verbose=0)
RESULT = {
    "loss": h.history["loss"],
    "code": model.encoder(x).numpy().sum(),
    "shape": model.encoder(x).shape.as_list(),
    "out": model.predict(x, verbose=0)[0, :2, :2, 0],
    "eval": model.evaluate(x, x, verbose=0),
}
