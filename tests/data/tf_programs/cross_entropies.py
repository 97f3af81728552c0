import tensorflow as tf

logits = tf.constant([[2.0, 1.0, 0.1], [0.5, 2.5, 0.0]])
RESULT = {
    "dense": tf.nn.softmax_cross_entropy_with_logits(labels=[[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]], logits=logits),
    "sparse": tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=logits),
    "sigmoid": tf.nn.sigmoid_cross_entropy_with_logits(labels=[[1.0, 0.0, 1.0]], logits=logits[:1]),
    "weighted": tf.nn.weighted_cross_entropy_with_logits(labels=[[1.0, 0.0, 1.0]], logits=logits[:1], pos_weight=2.0),
    "softmax": tf.nn.softmax(logits),
    "softmax0": tf.nn.softmax(logits, axis=0),
    "log_softmax": tf.nn.log_softmax(logits),
    "l2_loss": tf.nn.l2_loss(logits),
    "l2_normalize": tf.nn.l2_normalize(logits, axis=1),
    "all_axes": tf.math.l2_normalize(logits),
}
