"""dynamic_rnn over a sequence: one step by hand in NumPy, lengths, and training."""

import numpy as np

import hybridflow.compat.v1 as tf

tf.set_random_seed(1)
rng = np.random.RandomState(0)
units, steps = 6, 5
x = tf.placeholder(tf.float32, [None, steps, 2])
y = tf.placeholder(tf.float32, [None])
lengths = tf.placeholder(tf.int32, [None])
cell = tf.nn.rnn_cell.BasicLSTMCell(units)
outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32)
assert [v.name for v in tf.trainable_variables()] == ["rnn/basic_lstm_cell/kernel:0", "rnn/basic_lstm_cell/bias:0"]
prediction = tf.squeeze(tf.layers.dense(state.h, 1), axis=1)
loss = tf.losses.mean_squared_error(y, prediction)
train = tf.train.AdamOptimizer(0.03).minimize(loss)


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    data = rng.randn(16, steps, 2).astype(np.float32)
    told = np.array([steps] * 15 + [2])
    kernel, bias = sess.run(tf.trainable_variables()[:2])
    found, last = sess.run([outputs, state], {x: data, lengths: told})
    c = h = np.zeros((16, units))
    for t in range(steps):
        i, j, f, o = np.split(np.concatenate([data[:, t], h], 1) @ kernel + bias, 4, axis=1)
        goes_on = (t < told)[:, None]
        c = np.where(goes_on, sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), c)
        h = np.where(goes_on, sigmoid(o) * np.tanh(c), h)
        np.testing.assert_allclose(found[:, t], np.where(goes_on, h, 0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(last.c, c, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(last.h, h, rtol=1e-4, atol=1e-6)
    feed = {x: data, y: data[:, :, 0].mean(1), lengths: told}
    losses = [sess.run([train, loss], feed)[1] for _ in range(30)]
    assert losses[-1] < losses[0] / 3
