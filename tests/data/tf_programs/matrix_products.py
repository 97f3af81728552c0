import tensorflow as tf

a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
b = tf.constant([[5.0, 6.0], [7.0, 8.0]])
RESULT = {
    "matmul": tf.matmul(a, b),
    "transposed": tf.matmul(a, b, transpose_a=True),
    "transposed_b": tf.linalg.matmul(a, b, transpose_b=True),
    "operator": a @ b,
    "matvec": tf.linalg.matvec(a, [1.0, -1.0]),
    "tensordot": tf.tensordot(a, b, axes=1),
    "tensordot_axes": tf.tensordot(a, b, axes=[[0], [1]]),
    "einsum": tf.einsum("ij,kj->ik", a, b),
    "einsum_trace": tf.einsum("ii", a),
    "batch": tf.matmul(tf.stack([a, b]), tf.stack([b, a])),
}
