import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np


def my_func(x, y):
    return (np.sinh(x) + y, np.int64(x.size))


x = tf.placeholder(tf.float32, [None])
a, n = tf.py_func(my_func, [x, tf.constant(1.0)], [tf.float32, tf.int64])
b = tf.py_func(lambda v: v.astype(np.float32) * 2, [x], tf.float32, stateful=False)
b.set_shape([None])
p = tf.Print(b, [b, tf.shape(b)], message="b is: ", summarize=3)
e = tf.py_function(lambda t: t * 3, [x], tf.float32)
pr = tf.print("hello", x, output_stream="file:///dev/null")
with tf.control_dependencies([pr]):
    z = b + 1
txt = tf.py_func(lambda: b"bytes", [], tf.string)
with tf.Session() as s:
    print(
        s.run([a, n], {x: [0.0, 1.0]}),
        s.run(p, {x: [1.0, 2.0]}),
        s.run(e, {x: [1.0]}),
        s.run(z, {x: [1.0]}),
        s.run(txt),
    )
    try:
        s.run(tf.py_func(lambda: 1 / 0, [], tf.float32))
    except Exception as ex:
        print("error", "division" in str(ex))
print(a.shape, b.shape, a.op.type)
