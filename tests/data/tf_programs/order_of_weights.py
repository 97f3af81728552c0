import tensorflow as tf


class Scaled(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(2)

    def build(self, input_shape):
        self.count = self.add_weight(shape=(1,), name="count", trainable=False)
        self.scale = self.add_weight(shape=(2,), name="scale")
        self.shift = self.add_weight(shape=(3,), name="shift")
        self.dense.build(input_shape)

    def call(self, x):
        return self.dense(x) * self.scale


class Model(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.last = tf.keras.layers.Dense(2, name="first")
        self.first = tf.keras.layers.Dense(3, name="second")
        self.scaled = Scaled()

    def call(self, x):
        return self.scaled(self.first(self.last(x)))


layer, model = Scaled(), Model()
layer(tf.ones([1, 3]))
model(tf.ones([1, 3]))
RESULT = {
    "all": [v.name for v in layer.variables],
    "trained": [v.name for v in layer.trainable_variables],
    "shapes": [list(w.shape) for w in layer.get_weights()],
    "model": [v.name for v in model.weights],
    "paths": [v.path.rpartition("/")[0].split("/")[1] for v in model.weights][:4],
}
