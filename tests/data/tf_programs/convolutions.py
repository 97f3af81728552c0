import numpy as np
import tensorflow as tf

image = tf.constant(np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2) / 10)
kernel = tf.constant(np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3) / 10)
RESULT = {
    "same": tf.nn.conv2d(image, kernel, strides=[1, 2, 2, 1], padding="SAME"),
    "valid": tf.nn.conv2d(image, kernel, strides=1, padding="VALID"),
    "dilated": tf.nn.conv2d(image, kernel, strides=1, padding="VALID", dilations=2),
    "conv1d": tf.nn.conv1d(image[:, 0], kernel[0], stride=1, padding="SAME"),
    "depthwise": tf.nn.depthwise_conv2d(image, kernel[..., :1], strides=[1, 1, 1, 1], padding="VALID"),
    "transposed": tf.nn.conv2d_transpose(
        image, tf.transpose(kernel, [0, 1, 3, 2]), output_shape=[1, 8, 8, 3], strides=2, padding="SAME"
    ),
    "max_pool": tf.nn.max_pool2d(image, ksize=2, strides=2, padding="VALID"),
    "max_pool_list": tf.nn.max_pool(image, ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="SAME"),
    "avg_pool": tf.nn.avg_pool2d(image, 2, 2, "SAME"),
    "bias_add": tf.nn.bias_add(image, [1.0, -1.0])[0, 0, 0],
    "depth": tf.nn.space_to_depth(image, 2),
    "space": tf.nn.depth_to_space(tf.nn.space_to_depth(image, 2), 2),
    "lrn": tf.nn.local_response_normalization(image, depth_radius=1),
}
