import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

x = tf.Variable([1.0, 2.0])
y = tf.Variable(3.0)
z = x * x * y
w = tf.reduce_sum(tf.sin(x)) * y
print(len(tf.gradients([z, w], [x, y])))
g1 = tf.gradients(z, [x, y])
g2 = tf.gradients(z, x, grad_ys=tf.constant([1.0, 10.0]))
g3 = tf.gradients([z, w], [x, y], grad_ys=[tf.constant([1.0, 1.0]), 2.0])
a = 2 * x
b = x + a
g4 = tf.gradients(b * a, [x, a], stop_gradients=[x, a])
g5 = tf.gradients(tf.stop_gradient(x) * x, x)
g6 = tf.gradients(y * 2, x)
h = tf.hessians(tf.reduce_sum(x**3) + x[0] * x[1], x)
gg = tf.gradients(tf.gradients(x**3, x)[0], x)
g7 = tf.gradients(y * 2, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)


@tf.RegisterGradient("Doubled")
def _d(op, grad):
    return 2 * grad


@tf.custom_gradient
def clip_grad(v):

    def grad(dy):
        return tf.clip_by_value(dy, -0.5, 0.5)

    return (tf.identity(v), grad)


g8 = tf.gradients(tf.reduce_sum(clip_grad(x) * 3.0), x)
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    print(s.run([g1, g2, g3, g4, g5, h, gg, g7, g8]))
    print(g6)
    print(s.run(tf.test.compute_gradient_error(x, [2], z, [2])) if False else "ok")
    print(
        s.run(tf.gradients(tf.reduce_max(x), x)),
        s.run(tf.gradients(tf.matmul(tf.reshape(x, [1, 2]), tf.reshape(x, [2, 1])), x)),
    )
    print(tf.gradients(z, x)[0].shape, tf.gradients(z, x)[0].dtype)
