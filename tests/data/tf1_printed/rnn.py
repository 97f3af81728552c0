import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

rng = np.random.RandomState(0)
X = tf.placeholder(tf.float32, [None, 4, 3])
L = tf.placeholder(tf.int32, [None])
init = tf.constant_initializer(0.1)
with tf.variable_scope("lstm", initializer=init):
    cell = tf.nn.rnn_cell.LSTMCell(5, forget_bias=1.0, initializer=init)
    out, st = tf.nn.dynamic_rnn(cell, X, dtype=tf.float32, sequence_length=L)
with tf.variable_scope("basic", initializer=init):
    bc = tf.nn.rnn_cell.BasicLSTMCell(2)
    bo, bs = tf.nn.dynamic_rnn(bc, X, dtype=tf.float32)
with tf.variable_scope("gru", initializer=init):
    gc = tf.nn.rnn_cell.GRUCell(3, kernel_initializer=init)
    go, gs = tf.nn.dynamic_rnn(gc, X, initial_state=gc.zero_state(tf.shape(X)[0], tf.float32))
with tf.variable_scope("multi", initializer=init):
    mc = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(n) for n in (4, 3)])
    mo, ms = tf.nn.dynamic_rnn(mc, X, dtype=tf.float32)
with tf.variable_scope("rnn", initializer=init):
    rc = tf.nn.rnn_cell.BasicRNNCell(3, activation=tf.nn.relu)
    ro, rs = tf.nn.static_rnn(rc, tf.unstack(X, 4, 1), dtype=tf.float32)
with tf.variable_scope("bi", initializer=init):
    (fw, bw), bst = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(2), tf.nn.rnn_cell.GRUCell(2), X, dtype=tf.float32, sequence_length=L
    )
drop = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(2, name="dw", initializer=init), output_keep_prob=1.0)
do, ds = tf.nn.dynamic_rnn(drop, X, dtype=tf.float32)
with tf.variable_scope("tm", initializer=init):
    to, ts = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), tf.transpose(X, [1, 0, 2]), dtype=tf.float32, time_major=True)
for v in tf.trainable_variables():
    print(v.name, v.shape)
loss = tf.reduce_sum(out) + tf.reduce_sum(mo)
gr = tf.gradients(loss, X)[0]
print(cell.state_size, gc.output_size, mc.state_size, out.shape, len(ro))
x = rng.randn(2, 4, 3)
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    f = {X: x, L: [4, 2]}
    print(s.run([out, st.c, st.h], f))
    print(s.run([bo[:, -1], bs.h], f))
    print(s.run([go[:, -1], gs], f))
    print(s.run(ms[-1].h, f))
    print(s.run(ro[-1], f), s.run(rs, f))
    print(s.run([fw, bw], f))
    print(s.run(to, f)[-1])
    print(s.run(gr, f))
    print(s.run(do, f)[:, -1])
