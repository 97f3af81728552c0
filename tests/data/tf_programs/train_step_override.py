import numpy as np
import tensorflow as tf


class Custom(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
        self.tracker = tf.keras.metrics.Mean(name="loss")

    def call(self, x):
        return self.dense(x)

    @property
    def metrics(self):
        return [self.tracker]

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(self(x, training=True) - y))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


model = Custom()
model.compile(optimizer=tf.keras.optimizers.SGD(0.1))
x = np.arange(8, dtype="float32").reshape(4, 2)
history = model.fit(x, np.zeros((4, 1), "float32"), batch_size=2, epochs=2, shuffle=False, verbose=0)
RESULT = {"loss": history.history["loss"], "weights": model.get_weights()}
