import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
features = rng.randn(80, 3).astype("float32")
labels = (features @ np.array([1.0, -2.0, 0.5], "float32") > 0).astype("float32")
weights = tf.Variable(tf.zeros([3, 1]))
bias = tf.Variable(tf.zeros([1]))
for _ in range(25):
    with tf.GradientTape() as tape:
        logits = tf.matmul(features, weights) + bias
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels[:, None], logits=logits))
    dw, db = tape.gradient(loss, [weights, bias])
    weights.assign_sub(0.5 * dw)
    bias.assign_sub(0.5 * db)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.cast(logits[:, 0] > 0, tf.float32), labels), tf.float32))
RESULT = {"loss": loss, "weights": weights, "bias": bias, "accuracy": accuracy}
