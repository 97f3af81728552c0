import numpy as np
import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.Input(shape=(3,)),
        tf.keras.layers.Dense(4, activation="relu", kernel_initializer="ones", bias_initializer="zeros"),
        tf.keras.layers.Dropout(0.5),
        tf.keras.layers.Dense(2, kernel_initializer=tf.keras.initializers.Constant(0.1), name="out"),
    ]
)
RESULT = {
    "y": model(np.array([[1.0, 2.0, -1.0]], "float32")),
    "predict": model.predict(np.ones((2, 3), "float32"), verbose=0),
    "parameters": model.count_params(),
    "weights": [w.shape for w in model.get_weights()],
    "layers": len(model.layers),
    "by_name": model.get_layer("out").units,
}
