import numpy as np
import tensorflow as tf
from tensorflow.keras import Model
from tensorflow.keras.layers import Dense, Flatten, Layer


class Scale(Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="ones", trainable=True, name="w")

    def call(self, inputs):
        return tf.matmul(inputs, self.w) * 0.5


class MyModel(Model):
    def __init__(self):
        super().__init__()
        self.flatten = Flatten()
        self.scale = Scale(3)
        self.d = Dense(2, kernel_initializer="ones")

    def call(self, x, training=False):
        x = self.flatten(x)
        x = self.scale(x)
        return self.d(x)


model = MyModel()
y = model(np.ones((2, 2, 2), "float32"))
model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
model.fit(np.ones((4, 2, 2), "float32"), np.zeros((4, 2), "float32"), epochs=1, verbose=0, batch_size=4)
RESULT = {"y": y, "variables": len(model.trainable_variables), "after": model(np.ones((1, 2, 2), "float32"))}
