import numpy as np
import tensorflow as tf

x = np.linspace(-1, 1, 50).astype(np.float32)
y = 3.0 * x + 2.0
w, b = tf.Variable(0.0), tf.Variable(0.0)
optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(w * x + b - y))
    gradients = tape.gradient(loss, [w, b])
    optimizer.apply_gradients(zip(gradients, [w, b]))
    return loss


losses = [float(train_step(x, y)) for _ in range(60)]
RESULT = {"w": w, "b": b, "first": losses[0], "last": losses[-1], "steps": int(optimizer.iterations)}
