import numpy as np
import tensorflow as tf


class Scaled(tf.keras.layers.Dense):
    def build(self, input_shape):
        super().build(input_shape)
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def call(self, inputs):
        return self.scale * super().call(inputs)


RESULT = {}
for name, layer in (("dense", tf.keras.layers.Dense(2)), ("scaled", Scaled(2))):
    layer.build((None, 3))
    RESULT[name] = [layer.built, [list(w.shape) for w in layer.weights]]
    layer.set_weights([np.full((3, 2), 2.0), np.ones(2), np.array(3.0)][: len(layer.weights)])
    RESULT[name] += [layer(tf.ones([1, 3])), len(layer.weights)]
x = tf.constant([[-1.0, 0.3, 2.0, 4.0]])
names = ["celu", "glu", "hard_shrink", "hard_silu", "hard_tanh", "mish", "soft_shrink", "sparse_plus", "sparsemax"]
for name in names + ["sparse_sigmoid", "squareplus", "tanh_shrink"]:
    RESULT[name] = tf.keras.layers.Activation(name)(x)
config = tf.keras.layers.Dense(2, activation="mish").get_config()
RESULT["again"] = [config["activation"], tf.keras.layers.Dense.from_config(config).activation(x)]
