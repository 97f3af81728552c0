import tensorflow as tf

v = tf.Variable([1.0, 2.0], name="weights")
n = tf.Variable(5)
v.assign_add([1.0, 1.0])
before = tf.identity(v)
v.assign_sub([0.5, 0.5])
n.assign(7)
frozen = tf.Variable(1.0, trainable=False)
made = tf.Variable(lambda: tf.zeros([2]), dtype=tf.float32)
RESULT = {
    "v": v.numpy(),
    "before": before,
    "n": n,
    "dtype": n.dtype.name,
    "trainable": [v.trainable, frozen.trainable],
    "value": v.value(),
    "read": v.read_value(),
    "made": made,
    "is": [isinstance(v, tf.Variable), isinstance(before, tf.Variable), isinstance(before, tf.Tensor)],
    "is_tensor": [tf.is_tensor(v), tf.is_tensor(before), tf.is_tensor([1.0])],
    "arithmetic": v * 2.0 + 1.0,
}
