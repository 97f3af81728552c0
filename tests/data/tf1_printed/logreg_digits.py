import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

rng = np.random.RandomState(0)
xs = rng.rand(1797, 64).astype(np.float32)
ys = np.eye(10)[(xs @ rng.randn(64, 10)).argmax(1)]
x = tf.placeholder(tf.float32, [None, 64], name="x")
y = tf.placeholder(tf.float32, [None, 10], name="y")
W = tf.Variable(tf.zeros([64, 10]), name="W")
b = tf.Variable(tf.zeros([10]), name="b")
with tf.name_scope("Model"):
    pred = tf.nn.softmax(tf.matmul(x, W) + b)
with tf.name_scope("Loss"):
    cost = tf.reduce_mean(-tf.reduce_sum(y * tf.log(pred), reduction_indices=1))
with tf.name_scope("SGD"):
    optimizer = tf.train.GradientDescentOptimizer(0.5).minimize(cost)
with tf.name_scope("Accuracy"):
    acc = tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1))
    acc = tf.reduce_mean(tf.cast(acc, tf.float32))
init = tf.initialize_all_variables()
with tf.Session() as sess:
    sess.run(init)
    for epoch in range(3):
        avg_cost = 0.0
        total_batch = int(len(xs) / 100)
        for i in range(total_batch):
            bx, by = (xs[i * 100 : (i + 1) * 100], ys[i * 100 : (i + 1) * 100])
            _, c = sess.run([optimizer, cost], feed_dict={x: bx, y: by})
            avg_cost += c / total_batch
        print("Epoch:", epoch + 1, "cost=", "{:.6f}".format(avg_cost))
    print("Accuracy:", acc.eval({x: xs, y: ys}))
    print(pred.name, cost.name, optimizer.name, acc.name)
