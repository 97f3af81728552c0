import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

# A loop by hand over the steps of a sequence, and its derivative.
x = tf.constant(np.arange(12, dtype="f").reshape(3, 2, 2) / 10)
w = tf.Variable(np.full((2, 2), 0.3, "f"))
rows = tf.TensorArray(tf.float32, size=3).unstack(x)
found = tf.TensorArray(tf.float32, size=3)


def step(t, h, outputs):
    h = tf.tanh(rows.read(t) + tf.matmul(h, w))
    return t + 1, h, outputs.write(t, h)


_, last, found = tf.while_loop(lambda t, *_: t < 3, step, (0, tf.zeros([2, 2]), found))
states = found.stack()
gradient = tf.gradients(tf.reduce_sum(states), w)[0]
print(states.shape)

# As many elements as are fed.
n = tf.placeholder(tf.int32, [])
_, squares = tf.while_loop(
    lambda i, _: i < n, lambda i, a: (i + 1, a.write(i, i * i)), [0, tf.TensorArray(tf.int32, n)]
)
# Without a loop, and in a branch.
plain = tf.TensorArray(tf.int32, 3).write(0, [1, 2]).write(2, [5, 6]).write(1, [0, 9])
scattered = tf.TensorArray(tf.float32, 3).scatter([2, 0, 1], [[1.0], [2.0], [3.0]])
which = tf.placeholder(tf.bool, [])
pair = tf.TensorArray(tf.float32, 2, element_shape=[]).write(0, 1.0)
pair = tf.cond(which, lambda: pair.write(1, 5.0), lambda: pair.write(1, 6.0))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(states))
    print(sess.run(gradient))
    for count in (0, 1, 4):
        print(sess.run(squares.stack(), {n: count}))
    print(sess.run([plain.read(0), plain.stack(), plain.concat(), plain.gather([2, 0]), plain.size()]))
    print(sess.run(scattered.stack()).ravel())
    print(sess.run(pair.stack(), {which: True}), sess.run(pair.stack(), {which: False}))
try:
    tf.TensorArray(tf.float32, 2).write(0, [1.0]).write(1, [1.0, 2.0])
except ValueError:
    print("another shape")
