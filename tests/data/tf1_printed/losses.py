import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

rng = np.random.RandomState(0)
a = tf.constant(rng.rand(3, 4).astype(np.float32))
b = tf.constant(rng.rand(3, 4).astype(np.float32))
w = tf.constant([[1.0], [0.0], [2.0]])
L = tf.losses
r = [
    L.mean_squared_error(a, b),
    L.mean_squared_error(a, b, weights=w),
    L.absolute_difference(a, b, weights=0.5),
    L.huber_loss(a, b, delta=0.3),
    L.log_loss(a, b),
    L.hinge_loss(tf.round(a), b),
    L.sigmoid_cross_entropy(tf.round(a), b, label_smoothing=0.1),
    L.softmax_cross_entropy(tf.one_hot([0, 1, 3], 4), b, label_smoothing=0.1),
    L.sparse_softmax_cross_entropy([0, 1, 3], b, weights=[1.0, 0.0, 3.0]),
    L.cosine_distance(tf.nn.l2_normalize(a, 1), tf.nn.l2_normalize(b, 1), axis=1),
    L.mean_pairwise_squared_error(a, b),
    L.mean_squared_error(a, b, reduction=tf.losses.Reduction.SUM),
    L.compute_weighted_loss(a, w),
]
n = L.mean_squared_error(a, b, reduction=tf.losses.Reduction.NONE, loss_collection=None)
m = [
    tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.one_hot([0, 1, 3], 4), logits=b),
    tf.nn.sigmoid_cross_entropy_with_logits(labels=a, logits=b),
    tf.nn.weighted_cross_entropy_with_logits(labels=a, logits=b, pos_weight=2.0),
    tf.nn.l2_loss(a),
    tf.nn.log_softmax(a),
    tf.nn.softplus(a),
    tf.nn.elu(-a),
    tf.nn.leaky_relu(-a),
    tf.nn.lrn(tf.reshape(a, [1, 1, 3, 4])),
    tf.nn.moments(a, [0]),
    tf.nn.l2_normalize(a, dim=1),
    tf.nn.zero_fraction(tf.round(a)),
    tf.nn.bias_add(a, tf.ones([4])),
    tf.nn.relu6(a * 10),
    tf.nn.crelu(a),
    tf.nn.selu(a),
    tf.nn.batch_normalization(a, tf.zeros([4]), tf.ones([4]), None, None, 0.001),
]
with tf.Session() as s:
    print(s.run(r))
    print(s.run(n))
    print(s.run(m))
    print(s.run(L.get_total_loss()), len(L.get_losses()))
