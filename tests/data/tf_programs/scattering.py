import tensorflow as tf

base = tf.zeros([2, 3])
RESULT = {
    "scatter_nd": tf.scatter_nd([[0], [3], [0]], [1.0, 2.0, 5.0], [4]),
    "scatter_rows": tf.scatter_nd([[1]], [[7, 8]], [3, 2]),
    "update": tf.tensor_scatter_nd_update(base, [[0, 1], [1, 2]], [5.0, 6.0]),
    "update_rows": tf.tensor_scatter_nd_update(base, [[1]], [[1.0, 2.0, 3.0]]),
    "add": tf.tensor_scatter_nd_add(base, [[0, 0], [0, 0]], [1.0, 2.0]),
    "sub": tf.tensor_scatter_nd_sub(base, [[1, 1]], [4.0]),
    "segment_sum": tf.math.segment_sum([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 2]),
    "segment_mean": tf.math.segment_mean([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]], [0, 0, 1]),
    "unsorted": tf.math.unsorted_segment_sum([1, 2, 3], [2, 0, 2], num_segments=3),
    "bincount": tf.math.bincount([1, 1, 3]),
    "bincount_minimum": tf.math.bincount([0, 2], minlength=5),
    "confusion": tf.math.confusion_matrix([0, 1, 1, 2], [0, 2, 1, 2]),
}
