import tensorflow as tf


def changed(start, method, values, indices):
    v = tf.Variable(start)
    getattr(v, method)(tf.IndexedSlices(values, indices))
    return v.numpy()


RESULT = {
    "twice": changed([1e-30, 2.0, 3.0], "scatter_mul", [1e30, 1e30, 2.0], [0, 0, 2]),
    "divided twice": changed([1e-30, 2.0, 3.0], "scatter_div", [1e-30, 1e30, 2.0], [0, 0, 2]),
    "ints": changed([10, -20, 30], "scatter_mul", [3, 2, -1], [0, 0, 1]),
    "quotients": changed([-10, 20, 31, 7], "scatter_div", [3, 2, -4, 3, 8], [0, 0, 2, 1, 3]),
    "one": changed([-10, 20], "scatter_div", [3], [0]),
    "four": changed(
        [[1.0, 2.0], [3.0, 4.0]], "scatter_div", [[1.0, 2.0], [2.0, 4.0], [4.0, 8.0], [8.0, 5.0]], [1, 1, 1, 1]
    ),
    "watched": [],
}
v, w = tf.Variable(1.0), tf.Variable(2.0, trainable=False)
for _ in range(30):
    with tf.GradientTape() as tape:
        y = v * v * w
    gradient = tape.gradient(y, v)
    RESULT["watched"].append([float(gradient), len(tape.watched_variables()), tape.watched_variables()[0] is v])
