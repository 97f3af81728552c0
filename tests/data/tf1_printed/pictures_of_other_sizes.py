import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
found = [
    tf.image.resize_bilinear(x, [3, 6]),
    tf.image.resize_bilinear(x, [3, 6], align_corners=True),
    tf.image.resize_bilinear(x, [3, 6], half_pixel_centers=True),
    tf.image.resize_nearest_neighbor(x, [3, 6]),
    tf.image.resize_nearest_neighbor(x, [3, 6], align_corners=True),
    tf.image.resize_images(x, [3, 6]),
    tf.image.resize(x, [2, 2], method=tf.image.ResizeMethod.NEAREST_NEIGHBOR),
    tf.image.resize_images(x, [2, 2], method=tf.image.ResizeMethod.AREA),
    tf.extract_image_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    tf.space_to_batch(x, [[0, 0], [0, 0]], 2),
    tf.batch_to_space(tf.reshape(tf.range(4.0), [4, 1, 1, 1]), [[0, 0], [0, 0]], 2),
    tf.sparse_to_dense([0, 2], [4], [5, 6], -1),
    tf.sparse_to_dense([[0, 1], [1, 0]], [2, 2], 1.0),
    tf.segment_max([1.0, 3.0, 2.0], [0, 0, 1]),
    tf.segment_sum([1.0, 3.0, 2.0], [0, 0, 1]),
    tf.diag([1.0, 2.0]),
]
with tf.Session() as sess:
    for value in sess.run(found):
        print(value.shape, np.round(value, 4).ravel().tolist())
