import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

rng = np.random.RandomState(3)


def dense(x, n_out, name, activation=None):
    n_in = x.get_shape().as_list()[1]
    start = tf.constant_initializer(np.random.RandomState(n_in * 10 + n_out).randn(n_in, n_out) * 0.5)
    w = tf.get_variable(name + "_w", [n_in, n_out], initializer=start)
    b = tf.get_variable(name + "_b", [n_out], initializer=tf.zeros_initializer())
    out = tf.matmul(x, w) + b
    return out if activation is None else activation(out)


def generator(z):
    with tf.variable_scope("generator"):
        return dense(dense(z, 8, "g1", tf.nn.relu), 2, "g2", tf.tanh)


def discriminator(x, reuse=False):
    with tf.variable_scope("discriminator", reuse=reuse):
        return dense(dense(x, 8, "d1", tf.nn.leaky_relu), 1, "d2")


z = tf.placeholder(tf.float32, [None, 3])
x = tf.placeholder(tf.float32, [None, 2])
fake = generator(z)
real_logit, fake_logit = discriminator(x), discriminator(fake, reuse=True)
cross = tf.nn.sigmoid_cross_entropy_with_logits
d_loss = tf.reduce_mean(
    cross(logits=real_logit, labels=tf.ones_like(real_logit))
    + cross(logits=fake_logit, labels=tf.zeros_like(fake_logit))
)
g_loss = tf.reduce_mean(cross(logits=fake_logit, labels=tf.ones_like(fake_logit)))
t_vars = tf.trainable_variables()
d_vars = [v for v in t_vars if v.name.startswith("discriminator")]
g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
print([v.name for v in d_vars], [v.op.name for v in g_vars])
d_step = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(d_loss, var_list=d_vars)
g_step = tf.train.RMSPropOptimizer(0.01).minimize(g_loss, var_list=g_vars)
clip = [v.assign(tf.clip_by_value(v, -0.4, 0.4)) for v in d_vars]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for k in range(8):
        feed = {x: rng.randn(16, 2) * 0.3 + 0.5, z: rng.uniform(-1, 1, (16, 3))}
        _, dl = sess.run([d_step, d_loss], feed)
        sess.run(clip)
        _, gl = sess.run([g_step, g_loss], {z: rng.uniform(-1, 1, (16, 3))})
        print("%d d %.4f g %.4f" % (k, dl, gl))
    print(sess.run(fake, {z: np.ones((2, 3))}))
