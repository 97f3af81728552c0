import numpy as np
import tensorflow as tf

rng = np.random.RandomState(3)
E = tf.Variable(rng.randn(10, 4).astype("float32"))
optimizer = tf.keras.optimizers.SGD(0.5)
centers, contexts = tf.constant([1, 2, 1, 7]), tf.constant([3, 4, 4, 0])


@tf.function
def step():
    with tf.GradientTape() as tape:
        a, b = tf.nn.embedding_lookup(E, centers), tf.gather(E, contexts)
        loss = -tf.reduce_mean(tf.math.log_sigmoid(tf.reduce_sum(a * b, axis=1)))
    optimizer.apply_gradients([(tape.gradient(loss, E), E)])
    return loss


RESULT = {"losses": [step() for _ in range(3)], "E": E}
