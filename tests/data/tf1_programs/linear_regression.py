"""Gradient descent on a line, against the same steps in NumPy."""

import numpy as np

import hybridflow.compat.v1 as tf

train_x = np.asarray([3.3, 4.4, 5.5, 6.71, 6.93, 4.168, 9.779, 6.182, 7.59, 2.167], np.float32)
train_y = np.asarray([1.7, 2.76, 2.09, 3.19, 1.694, 1.573, 3.366, 2.596, 2.53, 1.221], np.float32)
X = tf.placeholder("float")
Y = tf.placeholder("float")
W = tf.Variable(0.5, name="weight")
b = tf.Variable(-0.25, name="bias")
pred = tf.add(tf.multiply(X, W), b)
cost = tf.reduce_sum(tf.pow(pred - Y, 2)) / (2 * 10)
optimizer = tf.train.GradientDescentOptimizer(0.01).minimize(cost)
init = tf.global_variables_initializer()
w, c = 0.5, -0.25
with tf.Session() as sess:
    sess.run(init)
    for _ in range(5):
        for x, y in zip(train_x, train_y):
            sess.run(optimizer, feed_dict={X: x, Y: y})
            error = float(x) * w + c - float(y)
            w, c = w - 0.01 * error * float(x) / 10, c - 0.01 * error / 10
    np.testing.assert_allclose(sess.run([W, b]), [w, c], rtol=1e-5)
    whole = sess.run(cost, feed_dict={X: train_x, Y: train_y})
    np.testing.assert_allclose(whole, np.sum((train_x * w + c - train_y) ** 2) / 20, rtol=1e-5)
