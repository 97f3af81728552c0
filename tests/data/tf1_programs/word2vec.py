"""Skip-gram with noise-contrastive estimation: words of one kind come to lie together."""

import numpy as np

import hybridflow.compat.v1 as tf

tf.set_random_seed(3)
rng = np.random.RandomState(0)
vocabulary, size = 10, 8
train_inputs = tf.placeholder(tf.int32, shape=[None])
train_labels = tf.placeholder(tf.int32, shape=[None, 1])
embeddings = tf.Variable(tf.random_uniform([vocabulary, size], -1.0, 1.0))
embed = tf.nn.embedding_lookup(embeddings, train_inputs)
nce_weights = tf.Variable(tf.truncated_normal([vocabulary, size], stddev=0.35))
nce_biases = tf.Variable(tf.zeros([vocabulary]))
loss = tf.reduce_mean(
    tf.nn.nce_loss(
        weights=nce_weights, biases=nce_biases, labels=train_labels, inputs=embed, num_sampled=4, num_classes=vocabulary
    )
)
optimizer = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
similarity = tf.matmul(embeddings / norm, embeddings / norm, transpose_b=True)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(300):
        words = rng.randint(0, vocabulary, 64)
        others = (words // 5) * 5 + rng.randint(0, 5, 64)
        sess.run(optimizer, {train_inputs: words, train_labels: others[:, None]})
    found = sess.run(similarity)
    assert found[:5, :5].mean() > found[:5, 5:].mean() + 0.3
