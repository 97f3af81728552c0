import tensorflow as tf
import numpy as np, tempfile, os

d = tempfile.mkdtemp()


class Block(tf.keras.layers.Layer):
    def __init__(self, n, **kw):
        super().__init__(**kw)
        self.n = n
        self.d = tf.keras.layers.Dense(n, kernel_initializer="ones")

    def call(self, x):
        return tf.nn.relu(self.d(x))

    def get_config(self):
        return {**super().get_config(), "n": self.n}


inp = tf.keras.Input((3,))
model = tf.keras.Model(inp, tf.keras.layers.Dense(1, kernel_initializer="ones")(Block(4)(inp)))
model.compile("adam", "mse", metrics=["mae"])
x = np.ones((8, 3), "float32")
model.fit(x, x[:, :1], epochs=2, verbose=0)
path = os.path.join(d, "m.keras")
model.save(path)
again = tf.keras.models.load_model(path, custom_objects={"Block": Block})
RESULT = {
    "same": bool(np.allclose(model.predict(x, verbose=0), again.predict(x, verbose=0))),
    "eval": again.evaluate(x, x[:, :1], verbose=0),
}
h1 = model.fit(x, x[:, :1], epochs=1, verbose=0).history["loss"]
h2 = again.fit(x, x[:, :1], epochs=1, verbose=0).history["loss"]
RESULT["resume"] = [h1, h2]
RESULT["iters"] = int(again.optimizer.iterations)
j = tf.keras.models.clone_model(tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2)]))
RESULT["clone"] = [list(w.shape) for w in j.weights]
