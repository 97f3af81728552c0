"""Cells by themselves, on top of each other, and unrolled; they share variables in each step."""

import numpy as np

import hybridflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [2, 3, 4])
cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(5), tf.nn.rnn_cell.BasicRNNCell(3)])
state = cells.zero_state(2, tf.float32)
for step in tf.unstack(x, axis=1):
    output, state = cells(step, state)
names = [v.name for v in tf.trainable_variables()]
assert len(names) == 6 and all(name.startswith("multi_rnn_cell/cell_") for name in names)
with tf.variable_scope("second"):
    outputs, last = tf.nn.static_rnn(tf.nn.rnn_cell.BasicRNNCell(3), tf.unstack(x, axis=1), dtype=tf.float32)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    data = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    found, (_, top) = sess.run([output, state], {x: data})
    np.testing.assert_array_equal(found, top)
    kernel, bias = sess.run(tf.trainable_variables("second"))
    h = np.zeros((2, 3))
    for t in range(3):
        h = np.tanh(np.concatenate([data[:, t], h], 1) @ kernel + bias)
    np.testing.assert_allclose(sess.run(last, {x: data}), h, rtol=1e-5)
