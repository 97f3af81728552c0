import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

text = "hello world, hello graph"
chars = sorted(set(text))
index = {c: k for k, c in enumerate(chars)}
ids = np.array([index[c] for c in text])
n = len(chars)
inputs, targets = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, None])
rng = np.random.RandomState(0)
emb = tf.get_variable("emb", initializer=tf.constant(rng.randn(n, 6).astype("f") * 0.3))
wx = tf.get_variable("wx", initializer=tf.constant(rng.randn(6, 8).astype("f") * 0.3))
wh = tf.get_variable("wh", initializer=tf.constant(rng.randn(8, 8).astype("f") * 0.3))
wy = tf.get_variable("wy", initializer=tf.constant(rng.randn(8, n).astype("f") * 0.3))
steps = tf.transpose(tf.nn.embedding_lookup(emb, inputs), [1, 0, 2])
start = tf.zeros([tf.shape(inputs)[0], 8])
states = tf.scan(lambda h, x: tf.tanh(tf.matmul(x, wx) + tf.matmul(h, wh)), steps, initializer=start)
logits = tf.tensordot(tf.transpose(states, [1, 0, 2]), wy, [[2], [0]])
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
loss = tf.reduce_mean(losses)
optimizer = tf.train.AdamOptimizer(0.02)
pairs = [(tf.clip_by_norm(g, 1.0), v) for g, v in optimizer.compute_gradients(loss)]
train = optimizer.apply_gradients(pairs)
hits = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, -1, output_type=tf.int32), targets), tf.float32))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    feed = {inputs: ids[:-1].reshape(1, -1), targets: ids[1:].reshape(1, -1)}
    for k in range(21):
        value, accuracy, _ = sess.run([loss, hits, train], feed)
        if k % 5 == 0:
            print("step %d loss %.4f accuracy %.3f" % (k, value, accuracy))
    print(sess.run(tf.exp(loss), feed), sess.run(losses, feed).shape)
