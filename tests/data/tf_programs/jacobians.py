import tensorflow as tf
import numpy as np

rng = np.random.default_rng(0)
w = tf.Variable(rng.normal(size=(3, 2)).astype("float32"))
x = tf.constant(rng.normal(size=(4, 3)).astype("float32"))
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = tf.tanh(x @ w)
jw = tape.jacobian(y, w)
jx = tape.batch_jacobian(y, x)
RESULT = {"jw": jw, "jx": jx, "shapes": [list(jw.shape), jx.shape.as_list()]}
with tf.GradientTape() as t2:
    with tf.GradientTape() as t1:
        loss = tf.reduce_sum(tf.square(tf.tanh(x @ w)))
    g = t1.gradient(loss, w)
h = t2.jacobian(g, w)
RESULT["hessian"] = tf.reshape(h, [6, 6])
RESULT["eigen"] = tf.linalg.eigvalsh(tf.reshape(h, [6, 6]))
