import tensorflow as tf
import numpy as np, tempfile, os

d = tempfile.mkdtemp()
x = np.linspace(0, 1, 32).reshape(-1, 1).astype("float32")


def make():
    m = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")])
    m.compile(tf.keras.optimizers.SGD(0.5), "mse")
    return m


K = tf.keras.callbacks
m = make()
h = m.fit(
    x,
    2 * x,
    epochs=12,
    batch_size=32,
    verbose=0,
    shuffle=False,
    callbacks=[
        K.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=2, min_delta=0.1),
        K.ModelCheckpoint(
            os.path.join(d, "best.weights.h5"), monitor="loss", save_best_only=True, save_weights_only=True
        ),
        K.CSVLogger(os.path.join(d, "log.csv")),
        K.TerminateOnNaN(),
        K.EarlyStopping(monitor="loss", patience=3, min_delta=0.01, restore_best_weights=True),
    ],
)
RESULT = {
    "loss": h.history["loss"],
    "lr": [float(v) for v in h.history["learning_rate"]],
    "files": len(os.listdir(d)),
    "w": m.get_weights()[0],
    "lines": len(open(os.path.join(d, "log.csv")).readlines()),
}
m = make()
h = m.fit(
    x,
    2 * x,
    epochs=4,
    verbose=0,
    shuffle=False,
    callbacks=[K.LearningRateScheduler(lambda e, lr: lr if e < 2 else lr * 0.1)],
)
RESULT["sched"] = [float(v) for v in h.history["learning_rate"]]
cl = K.CallbackList([K.History()], model=m, epochs=1, verbose=0)
cl.on_train_begin()
cl.on_epoch_begin(0)
cl.on_epoch_end(0, {"loss": 0.5})
cl.on_train_end()
RESULT["cl"] = cl.callbacks[0].history
