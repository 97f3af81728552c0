import numpy as np
import tensorflow as tf

x = (np.arange(24).reshape(2, 3, 4) / 10).astype("float32")
L = tf.keras.layers
RESULT = {
    "layer_norm": L.LayerNormalization()(x),
    "reshape": L.Reshape((4, 3))(x),
    "permute": L.Permute((2, 1))(x),
    "repeat": L.RepeatVector(2)(x[:, 0]),
    "lambda": L.Lambda(lambda t: t * 2)(x),
    "relu": L.ReLU(max_value=1.0)(x),
    "leaky": L.LeakyReLU()(x - 1),
    "softmax": L.Softmax()(x),
    "activation": L.Activation("sigmoid")(x),
    "dropout": L.Dropout(0.5)(x, training=False),
    "max1d": L.MaxPooling1D(3)(x),
    "average1d": L.GlobalAveragePooling1D()(x),
    "conv1d": L.Conv1D(2, 2, kernel_initializer="ones")(x),
    "pad": L.ZeroPadding1D(1)(x),
    "up": L.UpSampling1D(2)(x),
    "dot": L.Dot(axes=1)([x[:, 0], x[:, 1]]),
    "multiply": L.Multiply()([x, x]),
    "masked": L.Masking(mask_value=0.0)(x),
    "crop": L.Cropping1D(1)(x),
    "average": L.Average()([x, x + 1]),
    "maximum": L.Maximum()([x, 1 - x]),
}
