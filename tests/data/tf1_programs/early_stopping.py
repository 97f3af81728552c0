"""Softmax regression with a validation set, the best weights kept by a saver."""

import os
import tempfile

import numpy as np

import hybridflow.compat.v1 as tf

rng = np.random.RandomState(0)
data = rng.randn(200, 3).astype(np.float32)
target = (data @ [1.0, -2.0, 0.5] > 0).astype(np.int32)
x = tf.placeholder(tf.float32, [None, 3])
t = tf.placeholder(tf.int32, [None])
W = tf.get_variable("W", [3, 2], initializer=tf.zeros_initializer)
b = tf.get_variable("b", [2], initializer=tf.zeros_initializer)
logits = tf.nn.xw_plus_b(x, W, b)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=logits))
step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
right = tf.reduce_mean(tf.to_float(tf.nn.in_top_k(logits, t, 1)))
saver = tf.train.Saver()
path = os.path.join(tempfile.mkdtemp(), "best")
config = tf.ConfigProto(allow_soft_placement=True)
config.gpu_options.allow_growth = True
with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    best = np.inf
    for _ in range(20):
        for begin in range(0, 150, 50):
            sess.run(step, {x: data[begin : begin + 50], t: target[begin : begin + 50]})
        now = sess.run(loss, {x: data[150:], t: target[150:]})
        if now < best:
            best = now
            saver.save(sess, path)
    sess.run(W.assign(tf.zeros([3, 2])))
    saver.restore(sess, path)
    assert sess.run(loss, {x: data[150:], t: target[150:]}) == best < 0.3
    assert sess.run(right, {x: data[150:], t: target[150:]}) > 0.9
