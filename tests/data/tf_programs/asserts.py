import tensorflow as tf

tf.debugging.assert_equal(tf.constant([1, 2]), [1, 2])
tf.debugging.assert_shapes([(tf.ones([2, 3]), ("N", 3))])
tf.debugging.assert_rank(tf.ones([2]), 1)
failures = []
for check in (
    lambda: tf.debugging.assert_less(tf.constant(3), 2, message="too large"),
    lambda: tf.debugging.assert_positive([1.0, -1.0]),
    lambda: tf.Assert(tf.constant(False), ["no"]),
    lambda: tf.debugging.check_numerics(tf.constant([float("nan")]), "bad"),
    lambda: tf.linalg.matmul(tf.ones([2, 3]), tf.ones([2, 3])),
    lambda: tf.reshape(tf.ones([3]), [2]),
):
    try:
        check()
        failures.append("none")
    except tf.errors.InvalidArgumentError:
        failures.append("invalid argument")
try:
    tf.debugging.assert_rank(tf.ones([2]), 2)
    failures.append("none")
except ValueError:
    failures.append("value error")
RESULT = {"failures": failures}
