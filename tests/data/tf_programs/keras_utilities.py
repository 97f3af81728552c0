import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(3)
a = tf.random.normal([3])
tf.keras.utils.set_random_seed(3)
b = tf.random.normal([3])
RESULT = {
    "categorical": tf.keras.utils.to_categorical([0, 2, 1]),
    "classes": tf.keras.utils.to_categorical(np.array([[1], [0]]), num_classes=3),
    "normalized": tf.keras.utils.normalize(np.array([[3.0, 4.0], [0.0, 0.0]])),
    "same": bool(tf.reduce_all(a == b)),
    "epsilon": tf.keras.backend.epsilon(),
    "floatx": tf.keras.backend.floatx(),
    "format": tf.keras.backend.image_data_format(),
}
