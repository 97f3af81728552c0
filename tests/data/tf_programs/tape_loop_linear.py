import numpy as np
import tensorflow as tf

x = np.linspace(-1, 1, 40).astype(np.float32)
y = 3 * x + 2
w, b = tf.Variable(0.0), tf.Variable(0.0)
history = []
for epoch in range(5):
    with tf.GradientTape() as t:
        loss = tf.reduce_mean((w * x + b - y) ** 2)
    dw, db = t.gradient(loss, [w, b])
    w.assign_sub(0.3 * dw)
    b.assign_sub(0.3 * db)
    history.append(loss.numpy())
RESULT = {"history": history, "w": w.numpy(), "b": b.numpy(), "names": [w.shape.rank, w.dtype.name]}
