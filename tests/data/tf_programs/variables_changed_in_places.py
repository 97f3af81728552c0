import tensorflow as tf

v = tf.Variable([1.0, 2.0, 3.0, 4.0])
v.scatter_nd_add([[1], [3], [1]], [10.0, 20.0, 5.0])
RESULT = {"add": v.numpy()}
v.scatter_nd_sub([[0]], [1.0])
v.scatter_nd_update([[2]], [7.0])
RESULT["update"] = v.numpy()
v.scatter_add(tf.IndexedSlices(tf.constant([1.0, 1.0]), tf.constant([0, 0])))
v.scatter_sub(tf.IndexedSlices(tf.constant([0.5]), tf.constant([3])))
v.scatter_update(tf.IndexedSlices(tf.constant([-1.0]), tf.constant([1])))
RESULT["slices"] = v.numpy()

table = tf.Variable(tf.zeros([3, 2]))


@tf.function
def fill(places, rows):
    table.scatter_nd_add(places, rows)
    table.scatter_update(tf.IndexedSlices(rows[:1], tf.constant([2])))
    return table * 2.0


RESULT["function"] = fill(tf.constant([[0], [1], [0]]), tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).numpy()
RESULT["elements"] = table.scatter_nd_update([[0, 1], [1, 0]], [8.0, 9.0]).numpy()
