import tensorflow as tf
import numpy as np

L = tf.keras.layers
data = np.random.default_rng(0).normal(3, 2, (20, 3)).astype("float32")
n = L.Normalization()
n.adapt(data)
d = L.Discretization(num_bins=4)
d.adapt(data[:, :1])
RESULT = {
    "norm": n(data[:2]),
    "inv": L.Normalization(mean=1.0, variance=4.0, invert=True)(data[:1]),
    "disc": L.Discretization([0.0, 2.0, 4.0])(data[:4]),
    "cat": L.CategoryEncoding(4, output_mode="multi_hot")([[0, 1], [3, 3]]),
    "oh": L.CategoryEncoding(3, output_mode="one_hot")([0, 2]),
    "resc": L.Rescaling(1 / 127.5, -1)(tf.constant([[0.0, 255.0]])),
    "resz": L.Resizing(2, 3)(tf.reshape(tf.range(24.0), [1, 4, 6, 1]))[0, :, :, 0],
    "bic": L.Resizing(8, 12, interpolation="bicubic")(tf.reshape(tf.range(24.0), [1, 4, 6, 1]))[0, ::3, ::3, 0],
    "center": L.CenterCrop(2, 2)(tf.reshape(tf.range(16.0), [1, 4, 4, 1]))[0, :, :, 0],
    "flip": L.RandomFlip()(tf.ones([1, 4, 4, 1]), training=False).shape.as_list(),
    "zoom": L.RandomZoom(0.2)(tf.ones([1, 4, 4, 1]), training=True).shape.as_list(),
    "int": L.IntegerLookup(vocabulary=[10, 20, 30])(tf.constant([[10, 30, 99]])) if False else 0,
}
inp = tf.keras.Input((3,))
m = tf.keras.Model(inp, L.Dense(1, kernel_initializer="ones")(n(inp)))
RESULT["m"] = m.predict(data[:2], verbose=0)
