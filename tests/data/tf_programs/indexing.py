import tensorflow as tf

x = tf.reshape(tf.range(24), [2, 3, 4])
RESULT = {
    "plain": x[1],
    "ellipsis": x[..., 0],
    "new_axis": tf.shape(x[:, tf.newaxis]),
    "steps": x[0, ::2, 1::2],
    "negative": x[-1, -1, -2:],
    "reversed": x[0, 0, ::-1],
    "by_tensor": x[tf.constant(1), 2],
}
