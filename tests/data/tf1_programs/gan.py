"""Two optimizers, each for its own variables."""

import numpy as np

import hybridflow.compat.v1 as tf

tf.set_random_seed(0)
rng = np.random.RandomState(0)


def generator(z, reuse=None):
    with tf.variable_scope("gen", reuse=reuse):
        return tf.layers.dense(tf.layers.dense(z, 8, tf.nn.relu), 1)


def discriminator(x, reuse=None):
    with tf.variable_scope("disc", reuse=reuse):
        return tf.layers.dense(tf.layers.dense(x, 8, tf.nn.leaky_relu), 1)


z = tf.placeholder(tf.float32, [None, 4])
real = tf.placeholder(tf.float32, [None, 1])
fake = generator(z)
on_real, on_fake = discriminator(real), discriminator(fake, reuse=True)
bce = tf.nn.sigmoid_cross_entropy_with_logits
d_loss = tf.reduce_mean(
    bce(labels=tf.ones_like(on_real), logits=on_real) + bce(labels=tf.zeros_like(on_fake), logits=on_fake)
)
g_loss = tf.reduce_mean(bce(labels=tf.ones_like(on_fake), logits=on_fake))
d_vars = [v for v in tf.trainable_variables() if v.name.startswith("disc")]
g_vars = tf.trainable_variables("gen")
assert len(d_vars) == len(g_vars) == 4
d_step = tf.train.AdamOptimizer(0.01).minimize(d_loss, var_list=d_vars)
g_step = tf.train.AdamOptimizer(0.01).minimize(g_loss, var_list=g_vars)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    feed = {z: rng.randn(32, 4), real: rng.randn(32, 1) + 4.0}
    before = sess.run(g_vars)
    losses = [sess.run([d_step, d_loss], feed)[1] for _ in range(20)]
    assert losses[-1] < losses[0]
    for a, b in zip(before, sess.run(g_vars)):
        np.testing.assert_array_equal(a, b)
    start = sess.run(d_vars)
    losses = [sess.run([g_step, g_loss], feed)[1] for _ in range(20)]
    assert losses[-1] < losses[0]
    for a, b in zip(start, sess.run(d_vars)):
        np.testing.assert_array_equal(a, b)
