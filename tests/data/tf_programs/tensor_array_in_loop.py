import tensorflow as tf


@tf.function
def squares(x):
    n = tf.shape(x)[0]
    ta = tf.TensorArray(tf.float32, size=n)
    for i in tf.range(n):
        ta = ta.write(i, tf.cast(i, tf.float32) ** 2)
    return ta.stack()


@tf.function
def rnn(x, w):
    outputs = tf.TensorArray(tf.float32, size=x.shape[0])
    state = tf.zeros([x.shape[1], w.shape[1]])
    for t in tf.range(x.shape[0]):
        state = tf.tanh(tf.matmul(x[t], w) + state)
        outputs = outputs.write(t, state)
    return tf.transpose(outputs.stack(), [1, 0, 2]), state


@tf.function
def fibonacci(n):
    ta = tf.TensorArray(dtype=tf.int32, size=0, dynamic_size=True, clear_after_read=False)
    ta = ta.write(0, 0)
    ta = ta.write(1, 1)
    for i in range(2, n):
        ta = ta.write(i, ta.read(i - 1) + ta.read(i - 2))
    return ta.stack()


def body(i, ta):
    return i + 1, ta.write(i, [i, i * 2])


@tf.function
def pairs():
    _, ta = tf.while_loop(lambda i, ta: i < 4, body, [tf.constant(0), tf.TensorArray(tf.int32, 4, element_shape=[2])])
    return ta.stack()


x = tf.reshape(tf.range(12, dtype=tf.float32), [3, 2, 2]) / 12
w = tf.ones([2, 3]) * 0.5
with tf.GradientTape() as tape:
    tape.watch(w)
    loss = tf.reduce_sum(rnn(x, w)[0])
RESULT = {
    "squares": squares(tf.zeros([5])),
    "rnn": rnn(x, w),
    "gradient": tape.gradient(loss, w),
    "fibonacci": fibonacci(8),
    "pairs": pairs(),
}
