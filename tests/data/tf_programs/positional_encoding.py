import numpy as np
import tensorflow as tf


def angles(position, d_model):
    i = np.arange(d_model)[np.newaxis, :]
    rates = 1 / np.power(10000, (2 * (i // 2)) / np.float32(d_model))
    found = np.arange(position)[:, np.newaxis] * rates
    found[:, 0::2] = np.sin(found[:, 0::2])
    found[:, 1::2] = np.cos(found[:, 1::2])
    return tf.cast(found[np.newaxis, ...], dtype=tf.float32)


x = tf.ones((1, 3, 6))
x *= tf.math.sqrt(tf.cast(6, tf.float32))
x += angles(10, 6)[:, : tf.shape(x)[1], :]
RESULT = {"x": x}
