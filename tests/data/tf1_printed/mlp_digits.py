import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

rng = np.random.RandomState(1)
xs = rng.rand(1797, 64).astype(np.float32)
ys = (xs @ rng.randn(64, 10)).argmax(1)
graph = tf.Graph()
with graph.as_default():
    X = tf.placeholder(tf.float32, shape=(None, 64), name="X")
    y = tf.placeholder(tf.int64, shape=None, name="y")

    def neuron_layer(X, n_neurons, name, activation=None):
        with tf.name_scope(name):
            n_inputs = int(X.get_shape()[1])
            init = rng.randn(n_inputs, n_neurons).astype(np.float32) * 2 / np.sqrt(n_inputs)
            W = tf.Variable(init.astype(np.float32), name="kernel")
            b = tf.Variable(tf.zeros([n_neurons]), name="bias")
            Z = tf.matmul(X, W) + b
            return activation(Z) if activation is not None else Z

    with tf.name_scope("dnn"):
        hidden1 = neuron_layer(X, 50, name="hidden1", activation=tf.nn.relu)
        hidden2 = neuron_layer(hidden1, 20, name="hidden2", activation=tf.nn.relu)
        logits = neuron_layer(hidden2, 10, name="outputs")
    with tf.name_scope("loss"):
        xentropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.reduce_mean(xentropy, name="loss")
    with tf.name_scope("train"):
        optimizer = tf.train.AdamOptimizer(0.003)
        training_op = optimizer.minimize(loss)
    with tf.name_scope("eval"):
        correct = tf.nn.in_top_k(logits, y, 1)
        accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    init = tf.global_variables_initializer()
    saver = tf.train.Saver()
    print([v.name for v in tf.trainable_variables()])
with tf.Session(graph=graph) as sess:
    init.run()
    for epoch in range(3):
        for i in range(0, 1700, 50):
            sess.run(training_op, feed_dict={X: xs[i : i + 50], y: ys[i : i + 50]})
        print(
            epoch,
            accuracy.eval(feed_dict={X: xs[:50], y: ys[:50]}),
            accuracy.eval(feed_dict={X: xs[1700:], y: ys[1700:]}),
            loss.eval({"X:0": xs, "y:0": ys}),
        )
    Z = logits.eval(feed_dict={X: xs[:3]})
    print(np.argmax(Z, axis=1), Z.shape, Z.dtype)
    print(loss.name, logits.name, logits.shape, training_op.name)
