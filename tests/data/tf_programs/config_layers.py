import tensorflow as tf


@tf.keras.utils.register_keras_serializable(package="Mine")
class Scale(tf.keras.layers.Layer):
    def __init__(self, units, factor=2.0, activation=None, kernel_regularizer=None, **kwargs):
        super().__init__(**kwargs)
        self.units, self.factor = units, factor
        self.activation = tf.keras.activations.get(activation)
        self.kernel_regularizer = tf.keras.regularizers.get(kernel_regularizer)

    def build(self, input_shape):
        self.w = self.add_weight(
            shape=(input_shape[-1], self.units),
            initializer="ones",
            trainable=True,
            name="w",
            regularizer=self.kernel_regularizer,
        )
        self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=False, name="b")
        super().build(input_shape)

    def call(self, inputs, training=False):
        if training:
            inputs = inputs * 0.5
        return self.activation(self.factor * tf.matmul(inputs, self.w) + self.b)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def get_config(self):
        config = super().get_config()
        config.update(
            {
                "units": self.units,
                "factor": self.factor,
                "activation": tf.keras.activations.serialize(self.activation),
                "kernel_regularizer": tf.keras.regularizers.serialize(self.kernel_regularizer)
                if self.kernel_regularizer
                else None,
            }
        )
        return config


layer = Scale(3, factor=0.1, activation="relu", kernel_regularizer=tf.keras.regularizers.L2(0.01), name="sc")
out = layer(tf.ones([2, 4]))
again = Scale.from_config(layer.get_config())
RESULT = {
    "out": out,
    "train": layer(tf.ones([1, 4]), training=True),
    "losses": layer.losses,
    "n": [len(layer.trainable_weights), len(layer.non_trainable_weights), len(layer.weights)],
    "again": again(tf.ones([1, 4])),
    "name": again.name,
    "shape": layer.compute_output_shape((None, 4)),
}
model = tf.keras.Sequential([tf.keras.Input((4,)), layer, tf.keras.layers.Dense(1, kernel_initializer="ones")])
RESULT["count"] = model.count_params()
model.compile("sgd", "mse")
RESULT["eval"] = model.evaluate(tf.ones([4, 4]), tf.zeros([4, 1]), verbose=0)
