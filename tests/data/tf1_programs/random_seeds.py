"""A seed of the graph gives the same numbers in each session, and other numbers in each run of it."""

import numpy as np

import hybridflow.compat.v1 as tf

tf.set_random_seed(1234)
u = tf.random_uniform([3])
n = tf.random_normal([3], mean=5.0, stddev=0.001)
w = tf.Variable(tf.truncated_normal([4], seed=7))
g = tf.get_variable("g", [3, 3])
seen = []
for _ in range(2):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        seen.append([sess.run(u) for _ in range(4)] + [sess.run(n), sess.run(w), sess.run(g)])
for a, b in zip(*seen):
    np.testing.assert_array_equal(a, b)
assert len({a.tobytes() for a in seen[0][:4]}) == 4
assert np.all(np.abs(seen[0][4] - 5) < 0.1) and np.all(np.abs(seen[0][5]) <= 2)
shuffled = tf.random_shuffle(tf.range(10))
with tf.Session() as sess:
    assert sorted(sess.run(shuffled)) == list(range(10))
