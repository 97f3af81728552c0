import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

sess = tf.InteractiveSession()
x = tf.constant(3.0)
v = tf.Variable([1.0, 2.0])
v.initializer.run()
print((x * v).eval(), v.eval(), tf.get_default_session() is sess)
v.assign_add([1.0, 1.0]).eval()
print(v.eval())
print(tf.reduce_sum(v).eval(), v[0].eval(), (v > 2).eval(), tf.random_normal([2]).eval().shape)


@tf.function
def f(a):
    return a * 2


print(f(x).eval())
sess.close()
with tf.Graph().as_default(), tf.Session() as s2:
    tf.set_random_seed(5)
    u = tf.random_uniform([3], seed=1)
    a = s2.run(u)
    b = s2.run(u)
    print((a != b).all())
with tf.Session() as s3:
    pass
g = tf.Graph()
with g.as_default():
    k = tf.constant(5)
with tf.Session(graph=g) as s:
    print(s.run(k))
    try:
        s.run(x)
    except ValueError as e:
        print("ValueError")
    try:
        s.run(k, {tf.constant(1) if False else x: 2})
    except (TypeError, ValueError) as e:
        print(type(e).__name__)
