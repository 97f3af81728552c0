import tensorflow as tf


class Dense(tf.Module):
    def __init__(self, inputs, outputs, name=None):
        super().__init__(name=name)
        self.w = tf.Variable(tf.ones([inputs, outputs]), name="w")
        self.b = tf.Variable(tf.zeros([outputs]), name="b")

    def __call__(self, x):
        return tf.nn.relu(x @ self.w + self.b)


class Network(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        self.layers = [Dense(3, 2), Dense(2, 1)]
        self.scale = tf.Variable(2.0, trainable=False)

    @tf.function
    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.scale


model = Network(name="net")
RESULT = {
    "y": model(tf.constant([[1.0, 2.0, 3.0]])),
    "name": model.name,
    "variables": len(model.variables),
    "trainable": len(model.trainable_variables),
    "submodules": len(model.submodules),
}
