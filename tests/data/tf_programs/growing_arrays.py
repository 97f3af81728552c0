import tensorflow as tf


@tf.function
def scaled(x):
    ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(tf.shape(x)[0]):
        ta = ta.write(i, x[i] * tf.cast(i, tf.float32))
    return ta.stack(), ta.size()


@tf.function
def returns(rewards):
    total, found = tf.constant(0.0), tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    rewards = rewards[::-1]
    for i in tf.range(len(rewards)):
        total = rewards[i] + 0.5 * total
        found = found.write(i, total)
    return found.stack()[::-1]


with tf.GradientTape() as tape:
    x = tf.Variable([1.0, 2.0, 3.0])
    loss = tf.reduce_sum(scaled(x)[0] ** 2)
RESULT = {
    "few": scaled(tf.constant([1.0, 2.0, 3.0])),
    "many": scaled(tf.range(12.0)),
    "returns": returns(tf.constant([1.0, 2.0, 3.0, 4.0])),
    "gradient": tape.gradient(loss, x),
}
