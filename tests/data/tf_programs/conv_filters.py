import tensorflow as tf
import numpy as np

x = tf.constant(np.arange(25.0).reshape(1, 5, 5, 1), tf.float32)
g = tf.constant([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
blur = tf.nn.conv2d(x, g[:, :, None, None], strides=1, padding="SAME")
lap = tf.nn.conv2d(x**2, tf.reshape(tf.constant([0.0, 1, 0, 1, -4, 1, 0, 1, 0]), [3, 3, 1, 1]), [1, 1, 1, 1], "VALID")
m, idx = tf.nn.max_pool_with_argmax(x, 2, 2, "VALID")
RESULT = {
    "blur": blur[0, :, :, 0],
    "lap": lap[0, :, :, 0],
    "m": m,
    "idx": idx,
    "atrous": tf.nn.conv2d(x, g[:, :, None, None], 1, "VALID", dilations=2),
    "dw": tf.nn.depthwise_conv2d(
        tf.concat([x, x], -1), tf.tile(g[:, :, None, None], [1, 1, 2, 1]), [1, 2, 2, 1], "SAME"
    )[0, :, :, 1],
    "t": tf.nn.conv2d_transpose(x, g[:, :, None, None], [1, 10, 10, 1], 2)[0, ::3, ::3, 0],
    "pad": tf.pad(x[0, :, :, 0], [[1, 1], [2, 0]], "REFLECT"),
    "d2s": tf.nn.depth_to_space(tf.reshape(tf.range(16.0), [1, 2, 2, 4]), 2)[0, :, :, 0],
    "c1": tf.nn.conv1d(tf.reshape(tf.range(6.0), [1, 6, 1]), tf.ones([3, 1, 1]), 1, "SAME"),
}
