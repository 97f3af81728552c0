import tensorflow as tf

s = tf.Variable(tf.zeros([4, 2]))
s.assign(tf.tensor_scatter_nd_update(s, [[0], [2]], [[1.0, 2.0], [3.0, 4.0]]))
s.assign(tf.tensor_scatter_nd_add(s, [[1], [0]], [[5.0, 5.0], [1.0, 1.0]]))
slices = tf.IndexedSlices(
    values=tf.constant([[1.0], [2.0]]), indices=tf.constant([0, 2]), dense_shape=tf.constant([4, 1])
)
RESULT = {"s": s, "dense": tf.convert_to_tensor(slices), "parts": [slices.values, slices.indices]}
