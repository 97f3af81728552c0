import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)
rng = np.random.RandomState(0)
weights, biases = rng.randn(6, 3).astype("f"), rng.randn(6).astype("f")
x = tf.constant(rng.randn(2, 3).astype("f"))
one, two = tf.constant([[0], [2]], tf.int64), tf.constant([[0, 1], [2, 3]], tf.int64)
drawn = (tf.constant([2, 5], tf.int64), tf.constant([[0.5], [0.25]]), tf.constant([0.1, 0.2]))
drawn_two = (tf.constant([4, 1], tf.int64), tf.constant([[0.5, 0.4], [0.25, 0.3]]), tf.constant([0.1, 0.2]))
w = tf.Variable(weights)
b = tf.Variable(biases)
losses = [
    tf.nn.nce_loss(w, b, one, x, 2, 6, sampled_values=drawn),
    tf.nn.nce_loss(w, b, one, x, 2, 6, sampled_values=drawn, remove_accidental_hits=True),
    tf.nn.sampled_softmax_loss(w, b, one, x, 2, 6, sampled_values=drawn),
    tf.nn.sampled_softmax_loss(w, b, one, x, 2, 6, sampled_values=drawn, remove_accidental_hits=False),
    tf.nn.nce_loss(w, b, two, x, 2, 6, num_true=2, sampled_values=drawn_two),
    tf.nn.sampled_softmax_loss(w, b, two, x, 2, 6, num_true=2, sampled_values=drawn_two),
]
first, second = tf.constant([[0.0], [2.0], [4.0]]), tf.constant([[1.0], [3.0]])
rows = [
    tf.nn.embedding_lookup([first, second], [0, 1, 2, 4]),
    tf.nn.embedding_lookup([first, second], [0, 1, 2, 4], partition_strategy="div"),
    tf.nn.embedding_lookup(tf.constant([[3.0, 4.0], [0.3, 0.4]]), [[0, 1]], max_norm=1.0),
]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for loss in losses:
        print(loss.shape, sess.run(loss))
    for row in rows:
        print(sess.run(row))
