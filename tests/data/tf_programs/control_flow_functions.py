import tensorflow as tf


@tf.function
def power(x, n):
    i, found = tf.while_loop(lambda i, found: i < n, lambda i, found: (i + 1, found * x), (0, tf.ones_like(x)))
    return found


@tf.function
def choose(x):
    return tf.cond(x > 0, lambda: x * 2.0, lambda: -x)


@tf.function
def pick(i):
    return tf.switch_case(i, branch_fns={0: lambda: 10, 1: lambda: 20}, default=lambda: -1)


@tf.function
def sign(x):
    return tf.case([(x > 0, lambda: 1), (x < 0, lambda: -1)], default=lambda: 0)


bounded = tf.while_loop(lambda i: i < 100, lambda i: [i + 2], [tf.constant(0)], maximum_iterations=7)
RESULT = {
    "power": power(tf.constant(2.0), tf.constant(10)),
    "choose": [choose(tf.constant(3.0)), choose(tf.constant(-3.0))],
    "pick": [pick(tf.constant(k)) for k in range(3)],
    "sign": [sign(tf.constant(v)) for v in (2.0, -2.0, 0.0)],
    "bounded": bounded,
    "map_fn": tf.map_fn(lambda x: x * x, tf.range(4)),
    "map_two": tf.map_fn(lambda p: p[0] + p[1], (tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])), dtype=tf.float32),
    "scan": tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3, 4])),
    "scan_start": tf.scan(lambda a, x: a * x, tf.constant([1.0, 2.0, 3.0]), initializer=2.0),
    "foldl": tf.foldl(lambda a, x: a - x, tf.constant([10, 1, 2])),
    "foldr": tf.foldr(lambda a, x: a - x, tf.constant([10, 1, 2])),
    "vectorized": tf.vectorized_map(lambda x: tf.reduce_sum(x * x), tf.constant([[1.0, 2.0], [3.0, 4.0]])),
}
