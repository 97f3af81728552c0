"""Metrics are a value and the operation that sees more; local variables start them anew."""

import numpy as np

import hybridflow.compat.v1 as tf

labels = tf.placeholder(tf.int64, [None])
predictions = tf.placeholder(tf.int64, [None])
accuracy, update = tf.metrics.accuracy(labels, predictions)
precision = tf.metrics.precision(labels, predictions)
recall = tf.metrics.recall(labels, predictions)
mean, more = tf.metrics.mean(tf.cast(labels, tf.float32), weights=tf.cast(predictions, tf.float32))
assert tf.trainable_variables() == [] and tf.global_variables() == [] and len(tf.local_variables()) == 8
with tf.Session() as sess:
    sess.run(tf.local_variables_initializer())
    assert sess.run(accuracy) == 0
    assert sess.run(update, {labels: [1, 0, 1, 1], predictions: [1, 1, 1, 0]}) == 0.5
    assert sess.run(update, {labels: [1, 0], predictions: [1, 0]}) == np.float32(4 / 6)
    assert sess.run(accuracy) == np.float32(4 / 6)
    found = sess.run([precision[1], recall[1], more], {labels: [1, 0, 1, 1], predictions: [1, 1, 1, 0]})
    np.testing.assert_allclose(found, [2 / 3, 2 / 3, 2 / 3], rtol=1e-6)
    sess.run(tf.local_variables_initializer())
    assert sess.run(accuracy) == 0
