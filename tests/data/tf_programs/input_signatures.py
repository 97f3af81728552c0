import tensorflow as tf

traces = []


@tf.function(
    input_signature=[tf.TensorSpec(shape=[None, 2], dtype=tf.float32), tf.TensorSpec(shape=(), dtype=tf.int32)]
)
def f(x, n):
    traces.append(1)
    total = tf.zeros([2])
    for i in tf.range(n):
        total += tf.reduce_sum(x, axis=0) * tf.cast(i, tf.float32)
    return total, tf.shape(x)[0]


RESULT = {"a": f(tf.ones([3, 2]), tf.constant(4)), "b": f(tf.ones([5, 2]), 3)}
cf = f.get_concrete_function()
RESULT["concrete"] = cf(tf.ones([2, 2]), tf.constant(2))
try:
    f(tf.ones([3, 3]), 1)
except (ValueError, TypeError) as e:
    RESULT["error"] = "raised"
