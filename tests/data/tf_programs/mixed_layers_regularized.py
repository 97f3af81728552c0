import numpy as np
import tensorflow as tf
from tensorflow.keras import regularizers


class ActivityL1(tf.keras.layers.Layer):
    def call(self, inputs):
        self.add_loss(1e-1 * tf.reduce_sum(tf.abs(inputs)))
        return inputs


model = tf.keras.Sequential(
    [
        tf.keras.Input((3,)),
        tf.keras.layers.Dense(
            4,
            kernel_initializer=tf.keras.initializers.Constant(0.5),
            kernel_regularizer=regularizers.l2(0.01),
            bias_regularizer="l1",
            activity_regularizer=regularizers.L1(0.001),
        ),
        ActivityL1(),
        tf.keras.layers.Dense(
            1,
            kernel_initializer="ones",
            kernel_regularizer=regularizers.L1L2(l1=1e-3, l2=1e-3),
            kernel_constraint=tf.keras.constraints.NonNeg(),
        ),
    ]
)
x, y = np.ones((2, 3), "float32"), np.zeros((2, 1), "float32")
losses = model.losses
model(x)
after = [float(l) for l in model.losses]
optimizer = tf.keras.optimizers.SGD(0.01)
history = []
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y)) + sum(model.losses)
    history.append(float(loss))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_weights), model.trainable_weights))
RESULT = {"after": sorted(round(v, 6) for v in after), "history": history}
