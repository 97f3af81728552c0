import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

rng = np.random.RandomState(0)
images = rng.rand(12, 8, 8, 1).astype("f")
labels = np.eye(3, dtype="f")[rng.randint(0, 3, 12)]
x = tf.placeholder(tf.float32, [None, 64], name="x")
y_ = tf.placeholder(tf.float32, [None, 3])
keep_prob = tf.placeholder(tf.float32)


def weight(shape):
    return tf.Variable(np.random.RandomState(sum(shape)).randn(*shape).astype("f") * 0.2)


def bias(shape):
    return tf.Variable(tf.constant(0.1, shape=shape))


def conv(x, w):
    return tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")


def pool(x):
    return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


h1 = pool(tf.nn.relu(conv(tf.reshape(x, [-1, 8, 8, 1]), weight([3, 3, 1, 4])) + bias([4])))
h2 = pool(tf.nn.relu(conv(h1, weight([3, 3, 4, 6])) + bias([6])))
flat = tf.reshape(h2, [-1, 2 * 2 * 6])
fc = tf.nn.dropout(tf.nn.relu(tf.matmul(flat, weight([24, 10])) + bias([10])), keep_prob)
logits = tf.matmul(fc, weight([10, 3])) + bias([3])
mean, variance = tf.nn.moments(h2, [0, 1, 2])
normal = tf.nn.batch_normalization(h2, mean, variance, None, None, 1e-3)
loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y_, logits=logits))
train_step = tf.train.AdagradOptimizer(0.1).minimize(loss)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(y_, 1)), tf.float32))
print(h1.shape.as_list(), h2.get_shape().as_list(), flat.shape[1], h2.op.type, mean.shape)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    feed = {x: images.reshape(12, 64), y_: labels, keep_prob: 1.0}
    for k in range(10):
        if k % 3 == 0:
            print("step %d, accuracy %g, loss %.4f" % (k, accuracy.eval(feed), loss.eval(feed)))
        train_step.run(feed_dict=feed)
    print(sess.run(tf.reduce_mean(normal, [0, 1, 2]), feed) ** 2 < 1e-8, sess.run(tf.nn.softmax(logits), feed)[0])
