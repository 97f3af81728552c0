import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

inputs = keras.Input(shape=(4,), name="features")
a = layers.Dense(3, activation="relu", kernel_initializer="ones")(inputs)
b = layers.Dense(3, kernel_initializer="ones")(inputs)
merged = layers.concatenate([a, b]) if hasattr(layers, "concatenate") else layers.Concatenate()([a, b])
added = layers.Add()([a, b])
outputs = layers.Dense(1, kernel_initializer="ones")(layers.Concatenate()([merged, added]))
model = keras.Model(inputs=inputs, outputs=outputs, name="two_ways")
RESULT = {
    "y": model(np.array([[1, 2, 3, 4], [-1, -2, -3, -4]], "float32")),
    "name": model.name,
    "parameters": model.count_params(),
}
