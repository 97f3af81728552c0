import tensorflow as tf


@tf.function
def squares(n):
    found = tf.TensorArray(tf.int32, size=5, element_shape=[])
    for i in tf.range(n):
        found = found.write(i, i * i)
    return found.stack()


dynamic = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
for k in range(3):
    dynamic = dynamic.write(k, tf.constant([float(k), 1.0]))
unstacked = tf.TensorArray(tf.float32, size=2, element_shape=[2], clear_after_read=False).unstack(
    tf.constant([[1.0, 2.0], [3.0, 4.0]])
)
RESULT = {
    "squares": squares(tf.constant(5)),
    "dynamic": dynamic.stack(),
    "size": int(dynamic.size()),
    "read": unstacked.read(1),
    "gather": unstacked.gather([1, 0]),
    "concat": unstacked.concat(),
}
