import numpy as np
import tensorflow as tf
from tensorflow.keras import backend as K

x = tf.constant([[1.0, 2.0], [3.0, 4.0]])


def dice(y_true, y_pred, smooth=1.0):
    y_true, y_pred = tf.reshape(y_true, [-1]), tf.reshape(y_pred, [-1])
    overlap = tf.reduce_sum(y_true * y_pred)
    return (2 * overlap + smooth) / (tf.reduce_sum(y_true) + tf.reduce_sum(y_pred) + smooth)


K.clear_session()
RESULT = {"dice": dice(x, x / 4), "epsilon": K.epsilon(), "floatx": K.floatx()}
