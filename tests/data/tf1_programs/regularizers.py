"""Losses of regularizers and of tf.losses gather in collections."""

import numpy as np

import hybridflow.compat.v1 as tf

regularizer = tf.contrib.layers.l2_regularizer(0.1)
x = tf.constant([[1.0, 2.0]])
with tf.variable_scope("net", regularizer=regularizer):
    w = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer(3.0))
y = tf.matmul(x, w)
loss = tf.losses.mean_squared_error(labels=[[8.0]], predictions=y)
other = tf.layers.dense(x, 2, kernel_initializer=tf.ones_initializer(), kernel_regularizer=regularizer)
tf.add_to_collection("mine", loss)
assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == tf.losses.get_regularization_losses()
assert len(tf.losses.get_regularization_losses()) == 2 and tf.get_collection("mine") == tf.losses.get_losses() == [loss]
total = tf.losses.get_total_loss()
by_hand = loss + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    np.testing.assert_allclose(sess.run([loss, total, by_hand]), [1.0, 1.0 + 0.9 + 0.2, 2.1], rtol=1e-6)
    assert sess.run(other).tolist() == [[3, 3]]
