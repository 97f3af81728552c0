import tensorflow as tf


@tf.function
def rnn(xs, h):
    ta = tf.TensorArray(tf.float32, size=tf.shape(xs)[0], element_shape=[2])
    xa = tf.TensorArray(tf.float32, size=tf.shape(xs)[0]).unstack(xs)
    for t in tf.range(tf.shape(xs)[0]):
        h = tf.tanh(xa.read(t) + 0.5 * h)
        ta = ta.write(t, h)
    return ta.stack(), h


out, h = rnn(tf.reshape(tf.range(8, dtype=tf.float32), [4, 2]) / 8, tf.zeros([2]))
fib = tf.scan(lambda a, _: (a[1], a[0] + a[1]), tf.range(8), initializer=(tf.constant(0), tf.constant(1)))
ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
ta = ta.write(0, [1.0, 2.0]).write(1, [3.0, 4.0]).write(2, [5.0, 6.0])
RESULT = {"out": out, "h": h, "fib": fib[0], "concat": ta.concat(), "gather": ta.gather([2, 0]), "size": ta.size()}
