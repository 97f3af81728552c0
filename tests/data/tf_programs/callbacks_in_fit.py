import numpy as np
import tensorflow as tf


class Recorder(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.events = []

    def on_train_begin(self, logs=None):
        self.events.append("begin")

    def on_epoch_end(self, epoch, logs=None):
        self.events.append((epoch, sorted(logs)))


x, y = np.ones((8, 1), "float32"), np.ones((8, 1), "float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.compile(loss="mse", optimizer="sgd")
recorder = Recorder()
stop = tf.keras.callbacks.EarlyStopping(monitor="loss", patience=1)
history = model.fit(x, y, epochs=10, verbose=0, callbacks=[recorder, stop])
model.compile(loss="mse", optimizer=tf.keras.optimizers.SGD(1.0))
rate = tf.keras.callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.5)
second = model.fit(x, 0 * y, epochs=2, verbose=0, callbacks=[rate])
RESULT = {
    "events": recorder.events,
    "epochs": len(history.history["loss"]),
    "rate": float(model.optimizer.learning_rate),
}
