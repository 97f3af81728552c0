"""A small network on separable classes learns them."""

import numpy as np

import hybridflow.compat.v1 as tf

tf.set_random_seed(1)
rng = np.random.RandomState(0)
images = rng.randn(128, 16).astype(np.float32)
labels = np.eye(4, dtype=np.float32)[(images @ rng.randn(16, 4)).argmax(1)]
x = tf.placeholder(tf.float32, [None, 16])
y_ = tf.placeholder(tf.float32, [None, 4])
W1 = tf.Variable(tf.truncated_normal([16, 32], stddev=0.1))
b1 = tf.Variable(tf.constant(0.1, shape=[32]))
hidden = tf.nn.relu(tf.matmul(x, W1) + b1)
keep_prob = tf.placeholder(tf.float32)
dropped = tf.nn.dropout(hidden, keep_prob)
W2 = tf.Variable(tf.truncated_normal([32, 4], stddev=0.1))
b2 = tf.Variable(tf.zeros([4]))
logits = tf.matmul(dropped, W2) + b2
cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=logits))
train_step = tf.train.AdamOptimizer(0.02).minimize(cross_entropy)
correct = tf.equal(tf.argmax(logits, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
assert logits.get_shape().as_list() == [None, 4]
sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
first = cross_entropy.eval(feed_dict={x: images, y_: labels, keep_prob: 1.0})
for _ in range(60):
    train_step.run(feed_dict={x: images, y_: labels, keep_prob: 0.9})
assert abs(first - np.log(4)) < 0.3
assert accuracy.eval({x: images, y_: labels, keep_prob: 1.0}) > 0.9
sess.close()
