"""What a graph's tensor refuses, and in which words."""

import numpy as np

import hybridflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [2], name="x")
cases = [
    (lambda: bool(x > 0), TypeError, "Python `bool` is not allowed"),
    (lambda: list(x), TypeError, "not iterable"),
    (lambda: np.asarray(x), NotImplementedError, "symbolic"),
    (lambda: len(x), TypeError, "tf.shape"),
    (lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])), ValueError, "inner sizes differ"),
    (lambda: tf.Variable(None), ValueError, "initial_value must be specified"),
    (lambda: tf.get_variable("w", None), ValueError, "must be fully defined"),
    (lambda: x.op.get_attr("nothing"), ValueError, "no attr named 'nothing'"),
    (lambda: x.set_shape([3]), ValueError, "not compatible"),
    (lambda: tf.nn.softmax_cross_entropy_with_logits(x, x), ValueError, "named arguments"),
    (lambda: tf.nn.dropout(x, 0.0), ValueError, "keep_prob must be in (0, 1]"),
    (lambda: tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(x)), ValueError, "No variables to optimize"),
]
for k, (call, kind, words) in enumerate(cases):
    try:
        call()
    except kind as error:
        assert words in str(error), (k, str(error))
    else:
        raise AssertionError(k)
assert x != tf.identity(x) and len({x, x}) == 1
