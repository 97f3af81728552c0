import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

x = tf.placeholder(tf.float32, [None])
with tf.control_dependencies([tf.assert_positive(x, message="must be positive"), tf.assert_equal(tf.shape(x)[0], 3)]):
    y = tf.sqrt(x)
z = tf.check_numerics(tf.log(x), "log is bad")
a = tf.Assert(tf.reduce_all(x < 10), [x], summarize=3)
with tf.control_dependencies([a]):
    q = tf.identity(x)
v = tf.verify_tensor_all_finite(x / x, "not finite")
with tf.Session() as s:
    print(s.run(y, {x: [1.0, 4.0, 9.0]}), s.run(z, {x: [1.0]}), s.run(q, {x: [1.0]}), s.run(v, {x: [1.0]}))
    for t, f in ((y, [1.0, -1.0, 2.0]), (y, [1.0, 2.0]), (z, [0.0]), (q, [11.0]), (v, [0.0])):
        try:
            s.run(t, {x: f})
            print("no error")
        except tf.errors.InvalidArgumentError as e:
            print("InvalidArgumentError", "positive" in str(e), "log is bad" in str(e))
    for bad in (
        lambda: s.run(y),
        lambda: s.run(y, {x: np.ones((2, 2))}),
        lambda: s.run("nope:0"),
        lambda: s.run(3),
        lambda: s.run(y, {"q": 1}),
        lambda: s.run(None),
    ):
        try:
            bad()
        except Exception as e:
            print(type(e).__name__)
try:
    tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))
except ValueError as e:
    print("ValueError")
try:
    tf.assert_rank(tf.ones([2]), 2)
except Exception as e:
    print(type(e).__name__)
w = tf.Variable(1.0)
s = tf.Session()
try:
    s.run(w)
except tf.errors.FailedPreconditionError:
    print("FailedPrecondition")
s.close()
try:
    s.run(w)
except RuntimeError as e:
    print("RuntimeError", e)
try:
    w.eval()
except ValueError as e:
    print("ValueError")
