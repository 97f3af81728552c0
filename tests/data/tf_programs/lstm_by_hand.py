import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
W = tf.Variable((rng.randn(5, 8) * 0.3).astype("float32"))
b = tf.Variable(tf.zeros([8]))
xs = tf.constant(rng.randn(6, 3, 3).astype("float32"))


@tf.function
def run(xs):
    h = c = tf.zeros([3, 2])
    for x in xs:
        z = tf.concat([x, h], axis=1) @ W + b
        i, f, g, o = tf.split(z, 4, axis=1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
    return tf.reduce_mean(h**2)


with tf.GradientTape() as tape:
    loss = run(xs)
dW, db = tape.gradient(loss, [W, b])
RESULT = {"loss": loss, "dW": dW, "db": db}
