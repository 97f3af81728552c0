import tensorflow as tf

params = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
RESULT = {
    "gather": tf.gather(params, [1, 0, 1]),
    "axis": tf.gather(params, [2, 0], axis=1),
    "batch": tf.gather(params, [[0, 2], [1, 1]], batch_dims=1),
    "nd": tf.gather_nd(params, [[0, 1], [1, 2]]),
    "nd_rows": tf.gather_nd(params, [[1], [0]]),
    "nd_batch": tf.gather_nd(params, [[2], [0]], batch_dims=1),
    "mask": tf.boolean_mask(params, [True, False]),
    "mask1": tf.boolean_mask(params, [True, False, True], axis=1),
    "where": tf.where(params > 2.5),
    "where_dtype": tf.where(params > 2.5).dtype.name,
    "choose": tf.where(params > 2.5, params, 0.0),
    "one_hot": tf.one_hot([0, 2, -1], 3),
    "one_hot_values": tf.one_hot([1], 3, on_value=5, off_value=-1, dtype=tf.int32),
    "one_hot_axis": tf.one_hot([0, 1], 3, axis=0),
    "lookup": tf.nn.embedding_lookup(params, [[1], [0]]),
    "sequence_mask": tf.sequence_mask([1, 3], 4),
    "sequence_mask_float": tf.sequence_mask([2, 0], maxlen=3, dtype=tf.float32),
}
