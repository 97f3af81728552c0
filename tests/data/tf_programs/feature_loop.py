import tensorflow as tf


@tf.function(reduce_retracing=True)
def collatz(n):
    steps = tf.constant(0)
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@tf.function(input_signature=[tf.TensorSpec(shape=[None], dtype=tf.float32)])
def positive_mean(x):
    total, count = 0.0, 0.0
    for value in x:
        if value <= 0.0:
            continue
        total += value
        count += 1.0
    return tf.math.divide_no_nan(total, count)


@tf.function
def dynamic(x, training):
    if training:
        x = x * 2
    tf.debugging.assert_greater(tf.size(x), 0)
    return tf.cond(tf.reduce_sum(x) > 5.0, lambda: x, lambda: -x)


f = tf.function(lambda x: x**2 + 1)
concrete = f.get_concrete_function(tf.TensorSpec([], tf.float32))
RESULT = {
    "collatz": [int(collatz(tf.constant(n))) for n in (1, 6, 27)],
    "mean": [float(positive_mean(tf.constant(v))) for v in ([1.0, -2.0, 3.0], [-1.0], [4.0, 4.0])],
    "dynamic": [dynamic(tf.constant([1.0, 2.0]), t) for t in (True, False)],
    "concrete": float(concrete(tf.constant(3.0))),
    "map": tf.map_fn(lambda r: tf.reduce_sum(r) * 2.0, tf.ones([3, 2])),
    "scan": tf.scan(lambda a, b: a + b, tf.range(5)),
    "foldl": tf.foldl(lambda a, b: a * b, tf.constant([1, 2, 3, 4])),
    "vectorized": tf.vectorized_map(lambda r: r / tf.reduce_sum(r), tf.constant([[1.0, 3.0], [2.0, 2.0]])),
}
