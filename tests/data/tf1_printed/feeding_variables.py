import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
w, u = tf.Variable(3.0), tf.Variable(1.0)
y = w * 2 + u
gradient = tf.gradients(y * w, w)[0]
n, x = tf.placeholder(tf.int32, []), tf.Variable([1.0, 2.0])
turns, grown = tf.while_loop(
    lambda i, a: i < n,
    lambda i, a: (i + 1, tf.concat([a, [x[0] * tf.cast(i, tf.float32)]], 0)),
    [0, tf.constant([7.0])],
    shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
)
of_grown = tf.gradients(tf.reduce_sum(grown), x)[0]
others = tf.setdiff1d(tf.placeholder(tf.int32, [None], name="given"), [1, 3, 5])
with tf.Session() as sess:
    print(sess.run(tf.identity(w), {w: 10.0}))
    sess.run(tf.global_variables_initializer())
    print(*sess.run([y, w, gradient], {w: 10.0}), sess.run(y), *sess.run([y, w, u], {w: 1.0, u: 5.0}))
    print(sess.run(turns, {n: 4}), sess.run(grown, {n: 4}), sess.run(grown, {n: 0}), sess.run(of_grown, {n: 3}))
    print(*sess.run(others, {"given:0": [2, 2, 9, 3]}))
