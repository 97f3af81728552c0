import tensorflow as tf
import numpy as np


class Log(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.events = []

    def on_train_begin(self, logs=None):
        self.events.append(("begin", self.params["epochs"], self.params["steps"]))

    def on_train_batch_end(self, batch, logs=None):
        self.events.append((batch, sorted(logs)))

    def on_epoch_end(self, epoch, logs=None):
        keys = sorted(logs)
        self.events.append((epoch, keys, float(self.model.optimizer.learning_rate)))
        self.model.optimizer.learning_rate.assign(0.05 / (epoch + 1))
        if epoch == 2:
            self.model.stop_training = True

    def on_test_end(self, logs=None):
        self.events.append("test")


x = np.linspace(0, 1, 16).reshape(-1, 1).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")])
model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
log = Log()
h = model.fit(
    x,
    3 * x,
    epochs=9,
    batch_size=8,
    verbose=0,
    callbacks=[log, tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda e, l: log.events.append("lb"))],
    validation_split=0.25,
    shuffle=False,
)
RESULT = {"events": log.events, "loss": h.history["val_loss"], "epochs": h.epoch}
