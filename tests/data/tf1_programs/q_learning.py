"""A table by gradient steps on a corridor: the greedy way leads to the end."""

import numpy as np

import hybridflow.compat.v1 as tf

rng = np.random.RandomState(0)
states, goal = 5, 4
inputs = tf.placeholder(shape=[1, states], dtype=tf.float32)
W = tf.Variable(tf.random_uniform([states, 2], 0, 0.01))
q_out = tf.matmul(inputs, W)
predict = tf.argmax(q_out, 1)
next_q = tf.placeholder(shape=[1, 2], dtype=tf.float32)
loss = tf.reduce_sum(tf.square(next_q - q_out))
update = tf.train.GradientDescentOptimizer(learning_rate=0.2).minimize(loss)
eye = np.identity(states)
with tf.Session() as sess:
    sess.run(tf.initialize_all_variables())
    for _ in range(60):
        s = 0
        while s != goal:
            a, q = sess.run([predict, q_out], {inputs: eye[s : s + 1]})
            if rng.rand() < 0.3:
                a[0] = rng.randint(2)
            after = max(0, s + (1 if a[0] else -1))
            best = np.max(sess.run(q_out, {inputs: eye[after : after + 1]}))
            q[0, a[0]] = 1.0 if after == goal else 0.9 * best
            sess.run(update, {inputs: eye[s : s + 1], next_q: q})
            s = after
    found = sess.run(W)
    assert np.all(found[:4].argmax(1) == 1)
    np.testing.assert_allclose(found[3, 1], 1.0, atol=0.05)
