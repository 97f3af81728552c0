import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

tf.set_random_seed(3)
inp = tf.placeholder(tf.int32, [4])
lab = tf.placeholder(tf.int32, [4, 1])
emb = tf.Variable(tf.random_uniform([20, 8], -1.0, 1.0))
nw = tf.Variable(tf.truncated_normal([20, 8], stddev=0.3))
nb = tf.Variable(tf.zeros([20]))
loss = tf.reduce_mean(
    tf.nn.nce_loss(
        weights=nw, biases=nb, labels=lab, inputs=tf.nn.embedding_lookup(emb, inp), num_sampled=5, num_classes=20
    )
)
loss2 = tf.reduce_mean(
    tf.nn.sampled_softmax_loss(
        weights=nw, biases=nb, labels=lab, inputs=tf.nn.embedding_lookup(emb, inp), num_sampled=5, num_classes=20
    )
)
op = tf.train.GradientDescentOptimizer(1.0).minimize(loss + loss2)
norm = tf.sqrt(tf.reduce_sum(tf.square(emb), 1, keep_dims=True))
normalized = emb / norm
sim = tf.matmul(tf.nn.embedding_lookup(normalized, tf.constant([1, 2])), normalized, transpose_b=True)
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    first = np.mean([s.run(loss, {inp: [0, 1, 2, 3], lab: [[1], [2], [3], [4]]}) for _ in range(10)])
    for _ in range(60):
        s.run(op, {inp: [0, 1, 2, 3], lab: [[1], [2], [3], [4]]})
    last = np.mean([s.run(loss, {inp: [0, 1, 2, 3], lab: [[1], [2], [3], [4]]}) for _ in range(10)])
    print(last < first, s.run(sim).shape)
