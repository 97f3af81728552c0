import numpy as np
import tensorflow as tf

rng = np.random.RandomState(1)
q, k, v = (tf.constant(rng.randn(2, 3, 5, 4).astype("float32")) for _ in range(3))


def attention(q, k, v, mask=None):
    logits = tf.matmul(q, k, transpose_b=True) / tf.math.sqrt(tf.cast(tf.shape(k)[-1], tf.float32))
    if mask is not None:
        logits += mask * -1e9
    weights = tf.nn.softmax(logits, axis=-1)
    return tf.matmul(weights, v), weights


mask = 1 - tf.linalg.band_part(tf.ones((5, 5)), -1, 0)
output, weights = tf.function(attention)(q, k, v, mask)
RESULT = {"output": output, "weights": weights[0, 0]}
