import numpy as np
import tensorflow as tf

labels = np.array([2, 0, 1], dtype=np.int64)
logits = np.array([[0.1, 0.2, 3.0], [2.0, 0.1, 0.0], [0.3, 0.9, 0.2]], dtype=np.float64)
loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
predicted = tf.argmax(logits, axis=1)
RESULT = {
    "loss": loss,
    "dtype": loss.dtype.name,
    "predicted": predicted,
    "accuracy": tf.reduce_mean(tf.cast(tf.equal(predicted, labels), tf.float32)),
    "added": tf.add(tf.constant([1.0, 2.0]), np.array([0.5, 0.5])).dtype.name,
}
