import tensorflow as tf

a, b = tf.constant([[1, 2], [3, 4]]), tf.constant([[5, 6], [7, 8]])
RESULT = {
    "concat": tf.concat([a, b], axis=0),
    "concat1": tf.concat([a, b], 1),
    "stack": tf.stack([a, b], axis=1),
    "unstack": tf.unstack(a),
    "unstack1": tf.unstack(a, axis=1),
    "split": tf.split(tf.range(6), 3),
    "sizes": tf.split(tf.range(7), [2, -1, 1]),
    "tile": tf.tile(a, [1, 2]),
    "repeat": tf.repeat([1, 2], repeats=[2, 3]),
    "pad": tf.pad(a, [[1, 0], [0, 1]], constant_values=9),
    "reflect": tf.pad(tf.range(4), [[2, 1]], mode="REFLECT"),
    "symmetric": tf.pad(tf.range(4), [[2, 1]], "SYMMETRIC"),
    "reverse": tf.reverse(a, axis=[1]),
    "roll": tf.roll(tf.range(5), shift=2, axis=0),
    "meshgrid": tf.meshgrid([1, 2], [3, 4, 5]),
    "slice": tf.slice(a, [0, 1], [-1, 1]),
    "strided": tf.strided_slice(tf.range(10), [1], [8], [3]),
}
