import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)
x = tf.constant([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
y, p = tf.constant([[1.0, 0.0], [0.0, 1.0]]), tf.constant([[0.8, 0.3], [0.1, 0.6]])
losses = tf.losses
told = {
    "norms": [tf.norm(x), tf.norm(x, 3), tf.norm(x, 3, axis=1), tf.norm(x, np.inf, axis=0), tf.norm(x, 1)],
    "of matrices": [tf.norm(x, 1, axis=[0, 1]), tf.norm(x, "fro", axis=[0, 1]), tf.norm(x, 2, axis=[0, 1])],
    "kept": tf.norm(x, axis=[0, 1], keepdims=True),
    "scattered": tf.scatter_nd([[0, 1], [2, 0], [0, 1]], [1.0, 2.0, 3.0], [3, 2]),
    "rows": tf.scatter_nd([[1], [1]], [[1, 2], [3, 4]], [3, 2]),
    "clipped": tf.clip_by_global_norm([tf.constant([3.0, 4.0])], 1.0, use_norm=tf.constant(2.0)),
    "no nan": tf.div_no_nan(tf.constant([1.0, 0.0, np.inf]), tf.constant([0.0, 0.0, 2.0])),
    "pairs": losses.mean_pairwise_squared_error(y, p),
    "weighted pairs": losses.mean_pairwise_squared_error(y, p, weights=[[1.0], [2.0]]),
    "weights of rows": losses.mean_squared_error(y, p, weights=[[1.0], [0.0]]),
    "with an axis too many": losses.sparse_softmax_cross_entropy([0, 1], p, weights=tf.constant([[1.0], [0.5]])),
    "cross entropy": tf.nn.weighted_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[0.5, -0.5], pos_weight=2.0),
    "lrn": tf.nn.lrn(tf.reshape(x, [1, 1, 2, 3]), 1, bias=2.0, alpha=0.5, beta=0.75),
}
with tf.Session() as sess:
    for name, value in told.items():
        print(name, sess.run(value))
for shape in ([2], [3], [2, 2, 1, 1], [1, 3]):
    try:
        losses.mean_squared_error(y, p, weights=tf.ones(shape))
    except ValueError:
        print("no weights of", shape)
average = tf.train.ExponentialMovingAverage(0.9, zero_debias=True)
v = tf.Variable(1.0)
moved = average.apply([doubled := v * 2])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for value in (1.0, 5.0, 2.0):
        v.load(value, sess)
        sess.run(moved)
        print(sess.run(average.average(doubled)))
