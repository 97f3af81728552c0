import numpy as np
import tensorflow as tf


def make():
    return tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])


model, other = make(), make()
x = np.ones((2, 2), "float32")
other.set_weights([w * 2 for w in model.get_weights()])
RESULT = {
    "doubled": bool(np.allclose(other(x), 4 * model(x).numpy(), atol=1e-5)),
    "shapes": [w.shape for w in other.get_weights()],
}
