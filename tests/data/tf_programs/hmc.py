import tensorflow as tf
import numpy as np

prec = tf.constant([[2.0, 0.5], [0.5, 1.0]])


def logp(x):
    return -0.5 * tf.einsum("i,ij,j->", x, prec, x)


def grad(x):
    with tf.GradientTape() as t:
        t.watch(x)
        v = logp(x)
    return t.gradient(v, x)


@tf.function
def leapfrog(x, p, eps, n):
    p = p + 0.5 * eps * grad(x)
    for _ in tf.range(n):
        x = x + eps * p
        p = p + eps * grad(x)
    p = p - 0.5 * eps * grad(x)
    return x, p


rng = np.random.default_rng(0)
x, kept = tf.constant([1.0, -1.0]), []
for _ in range(6):
    p = tf.constant(rng.normal(size=2), tf.float32)
    nx, np_ = leapfrog(x, p, 0.1, tf.constant(8))
    log_accept = logp(nx) - 0.5 * tf.reduce_sum(np_**2) - logp(x) + 0.5 * tf.reduce_sum(p**2)
    if tf.math.log(tf.constant(rng.random(), tf.float32)) < log_accept:
        x = nx
    kept.append(x.numpy())
RESULT = {"kept": kept}
