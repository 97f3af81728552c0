"""LeNet on two kinds of images; static shapes as TensorFlow finds them."""

import numpy as np

import hybridflow.compat.v1 as tf

tf.set_random_seed(2)
rng = np.random.RandomState(0)
images = rng.rand(16, 64).astype(np.float32)
labels = np.arange(16) % 2
images[labels == 1, :32] += 1.0


def weight_variable(shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1))


def bias_variable(shape):
    return tf.Variable(tf.constant(0.1, shape=shape))


x = tf.placeholder(tf.float32, shape=[None, 64])
y = tf.placeholder(tf.int64, shape=[None])
picture = tf.reshape(x, [-1, 8, 8, 1])
conv = tf.nn.relu(
    tf.nn.conv2d(picture, weight_variable([3, 3, 1, 4]), strides=[1, 1, 1, 1], padding="SAME") + bias_variable([4])
)
pool = tf.nn.max_pool(conv, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
assert pool.get_shape().as_list() == [None, 4, 4, 4]
flat = tf.reshape(pool, [-1, 4 * 4 * 4])
logits = tf.matmul(flat, weight_variable([64, 2])) + bias_variable([2])
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
wrong = tf.reduce_sum(tf.cast(tf.not_equal(tf.argmax(logits, 1), y), tf.int32))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(40):
        sess.run(train, {x: images, y: labels})
    assert sess.run(wrong, {x: images, y: labels}) == 0
