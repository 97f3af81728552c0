import os
import tempfile

import numpy as np
import tensorflow as tf

x, y = np.arange(8, dtype="float32").reshape(4, 2), np.ones((4, 1), "float32")
model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.compile(tf.keras.optimizers.SGD(0.001), "mse")
path = os.path.join(tempfile.mkdtemp(), "best.keras")
save = tf.keras.callbacks.ModelCheckpoint(path, monitor="loss", save_best_only=True)
model.fit(x, y, epochs=2, batch_size=4, callbacks=[save], verbose=0)
loaded = tf.keras.models.load_model(path)
RESULT = {
    "same": bool((loaded.predict(x, verbose=0) == model.predict(x, verbose=0)).all()),
    "predicted": loaded.predict(x, verbose=0),
    "iterations": int(loaded.optimizer.iterations),
}
