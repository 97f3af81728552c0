import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models

model = models.Sequential()
model.add(layers.Conv2D(2, (3, 3), activation="relu", input_shape=(8, 8, 1), kernel_initializer="ones"))
model.add(layers.MaxPooling2D((2, 2)))
model.add(layers.BatchNormalization())
model.add(layers.Conv2D(3, 2, padding="same", kernel_initializer="ones"))
model.add(layers.GlobalAveragePooling2D())
model.add(layers.Flatten())
model.add(layers.Dense(2, kernel_initializer="ones"))
x = (np.arange(128).reshape(2, 8, 8, 1) / 100).astype("float32")
model.compile(optimizer="rmsprop", loss="categorical_crossentropy")
RESULT = {
    "y": model(x, training=False),
    "shapes": [list(layer.output.shape) for layer in model.layers],
    "parameters": model.count_params(),
}
