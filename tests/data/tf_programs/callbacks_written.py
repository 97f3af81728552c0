import numpy as np
import tensorflow as tf


class Log(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.lines = []

    def on_train_begin(self, logs=None):
        self.lines.append("begin")

    def on_epoch_begin(self, epoch, logs=None):
        self.lines.append(f"epoch {epoch}")

    def on_train_batch_end(self, batch, logs=None):
        self.lines.append(f"batch {batch} {sorted(logs)}")

    def on_epoch_end(self, epoch, logs=None):
        self.lines.append(f"{logs['loss']:.4f}")
        if logs["loss"] < 0.05:
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self.lines.append("end")


x = np.linspace(0, 1, 12, dtype=np.float32).reshape(12, 1)
model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")])
model.compile(optimizer=tf.keras.optimizers.SGD(0.3), loss="mse", metrics=["mae"])
log = Log()
rates = []
h = model.fit(
    x,
    2 * x,
    epochs=30,
    batch_size=6,
    shuffle=False,
    verbose=0,
    callbacks=[
        log,
        tf.keras.callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.95 if epoch else lr),
        tf.keras.callbacks.LambdaCallback(
            on_epoch_end=lambda e, logs: rates.append(round(float(model.optimizer.learning_rate), 5))
        ),
        tf.keras.callbacks.EarlyStopping(monitor="loss", patience=3),
    ],
)
RESULT = {"lines": log.lines, "rates": rates, "loss": h.history["loss"], "epochs": h.epoch}
