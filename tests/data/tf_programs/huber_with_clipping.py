import numpy as np
import tensorflow as tf

rng = np.random.RandomState(5)
states = rng.randn(6, 4).astype("float32")
actions = np.array([0, 1, 1, 0, 2, 2])
targets = rng.randn(6).astype("float32") * 5
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(8, "relu", kernel_initializer=tf.keras.initializers.Constant(0.1)),
        tf.keras.layers.Dense(3, kernel_initializer="ones"),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-2)
huber = tf.keras.losses.Huber()
for _ in range(4):
    with tf.GradientTape() as tape:
        q = tf.reduce_sum(model(states) * tf.one_hot(actions, 3), axis=1)
        loss = huber(targets, q)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
RESULT = {"loss": loss, "q": q}
