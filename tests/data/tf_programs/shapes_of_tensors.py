import tensorflow as tf

x = tf.reshape(tf.range(24), [2, 3, 4])
RESULT = {
    "shape": tf.shape(x),
    "shape_dtype": tf.shape(x).dtype.name,
    "rank": tf.rank(x),
    "size": tf.size(x),
    "as_list": x.get_shape().as_list(),
    "get_shape": x.get_shape().as_list(),
    "ndims": x.get_shape().rank,
    "elements": x.get_shape().num_elements(),
    "known": x.get_shape().is_fully_defined(),
    "slice": list(x.shape[1:]),
    "concatenated": tf.TensorShape(x.shape).concatenate([5]).as_list(),
    "transpose": tf.transpose(x, perm=[2, 0, 1]),
    "plain_transpose": tf.shape(tf.transpose(x)),
    "expand": tf.shape(tf.expand_dims(x, -1)),
    "squeeze": tf.shape(tf.squeeze(tf.ones([1, 3, 1]))),
    "squeeze_axis": tf.shape(tf.squeeze(tf.ones([1, 3, 1]), axis=[2])),
    "flat": tf.reshape(x, [-1])[:3],
    "broadcast": tf.broadcast_to([1, 2], [2, 2]),
    "tensor_shape": tf.TensorShape([None, 3]).as_list(),
    "compatible": tf.TensorShape([None, 3]).is_compatible_with([7, 3]),
}
