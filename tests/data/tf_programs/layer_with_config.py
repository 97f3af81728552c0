import tensorflow as tf


class Linear(tf.keras.layers.Layer):
    def __init__(self, units=32, scale=1.0, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.scale = scale

    def build(self, input_shape):
        self.w = self.add_weight(name="w", shape=(input_shape[-1], self.units), initializer="ones", trainable=True)
        self.b = self.add_weight(name="b", shape=(self.units,), initializer="zeros", trainable=True)

    def call(self, inputs):
        return self.scale * (tf.matmul(inputs, self.w) + self.b)

    def get_config(self):
        config = super().get_config()
        config.update({"units": self.units, "scale": self.scale})
        return config


layer = Linear(4, scale=0.5, name="lin")
y = layer(tf.ones((2, 3)))
again = Linear.from_config(layer.get_config())
config = layer.get_config()
model = tf.keras.Sequential([tf.keras.Input((3,)), Linear(2), tf.keras.layers.ReLU()])
RESULT = {
    "y": y,
    "again": again(tf.ones((1, 3))),
    "config": [config["name"], config["units"], config["scale"], config["trainable"]],
    "weights": [tuple(w.shape) for w in layer.weights],
    "count": layer.count_params(),
    "model": model.predict(tf.ones((2, 3)), verbose=0),
}
