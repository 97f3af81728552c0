import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow import keras

x = np.linspace(-1, 1, 12).reshape(4, 3).astype("float32")
RESULT = {}


class Scale(keras.layers.Layer):
    def __init__(self, by, **options):
        super().__init__(**options)
        self.by = by

    def call(self, inputs):
        return inputs * self.by

    def get_config(self):
        return {**super().get_config(), "by": self.by}


inputs = keras.Input((3,))
model = keras.Model(inputs, keras.layers.Dense(2)(Scale(3.0)(inputs)))
model.compile("sgd", "mse")
with tempfile.TemporaryDirectory() as folder:
    for name in ("whole.keras", "whole.h5"):
        path = os.path.join(folder, name)
        model.save(path)
        found = keras.models.load_model(path, custom_objects={"Scale": Scale}, compile=False)
        RESULT[name] = bool((found(x).numpy() == model(x).numpy()).all())
    path = os.path.join(folder, "only.weights.h5")
    model.save_weights(path)
    before = model(x).numpy()
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    model.load_weights(path)
    RESULT["weights"] = bool((model(x).numpy() == before).all())
    path = os.path.join(folder, "kept.weights.h5")
    keep = keras.callbacks.ModelCheckpoint(path, save_weights_only=True, monitor="loss")
    model.fit(x, np.ones((4, 2)), callbacks=[keep], verbose=0)
    before = model(x).numpy()
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    model.load_weights(path)
    RESULT["kept"] = bool((model(x).numpy() == before).all())

again = keras.Model.from_config(model.get_config(), custom_objects={"Scale": Scale})
again.set_weights(model.get_weights())
RESULT["config"] = bool((again(x).numpy() == model(x).numpy()).all())
with keras.utils.custom_object_scope({"Scale": Scale}):
    RESULT["scope"] = len(keras.Model.from_config(model.get_config()).weights)
