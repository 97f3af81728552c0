import numpy as np
import tensorflow as tf

layers = tf.keras.layers
x = (np.arange(2 * 5 * 6 * 2) % 37).reshape(2, 5, 6, 2).astype("float32")
moving = {
    "turned": layers.RandomRotation((0.1, 0.1)),
    "turned back": layers.RandomRotation((-0.3, -0.3), fill_mode="constant", fill_value=-5.0),
    "larger": layers.RandomZoom((-0.3, -0.3), (0.2, 0.2)),
    "smaller": layers.RandomZoom((0.7, 0.7), fill_mode="nearest"),
    "moved": layers.RandomTranslation((0.25, 0.25), (-0.3, -0.3)),
    "moved far": layers.RandomTranslation((0.9, 0.9), (-1.0, -1.0), fill_mode="reflect"),
    "moved nearest": layers.RandomTranslation((0.25, 0.25), (-0.3, -0.3), fill_mode="nearest", interpolation="nearest"),
}
sizing = {
    "middle": layers.CenterCrop(2, 3),
    "wide middle": layers.CenterCrop(3, 9),
    "small": layers.Resizing(3, 4),
    "large": layers.Resizing(7, 9, interpolation="nearest"),
    "square": layers.Resizing(4, 4, crop_to_aspect_ratio=True),
}
prepare = tf.keras.Sequential([layers.Resizing(3, 4), layers.Rescaling(1.0 / 255)])
RESULT = {name: layer(x, training=True) for name, layer in moving.items()}
RESULT |= {name: layer(x) for name, layer in sizing.items()}
RESULT["one"] = moving["turned"](x[0], training=True)
RESULT["not training"] = bool(np.all(moving["turned"](x, training=False) == x))
RESULT["prepared"] = prepare(x)
