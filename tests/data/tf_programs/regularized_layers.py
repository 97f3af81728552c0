import numpy as np
import tensorflow as tf

layer = tf.keras.layers.Dense(
    2, kernel_initializer="ones", kernel_regularizer=tf.keras.regularizers.l2(0.1), bias_regularizer="l1"
)
layer(np.ones((1, 3), "float32"))
bound = tf.keras.layers.Dense(1, kernel_constraint=tf.keras.constraints.NonNeg(), kernel_initializer="ones")
model = tf.keras.Sequential([bound])
model.compile(loss="mse", optimizer=tf.keras.optimizers.SGD(10.0))
model.fit(np.ones((2, 2), "float32"), -np.ones((2, 1), "float32"), verbose=0)
RESULT = {
    "losses": layer.losses,
    "l1": tf.keras.regularizers.l1(0.01)(tf.constant([1.0, -2.0])),
    "l1_l2": tf.keras.regularizers.L1L2(l1=0.1, l2=0.1)(tf.constant([1.0, -2.0])),
    "kernel": bound.kernel,
    "max_norm": tf.keras.constraints.MaxNorm(1.0)(tf.constant([[3.0], [4.0]])),
}
