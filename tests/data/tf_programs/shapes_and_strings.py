import tensorflow as tf
import numpy as np

x = tf.zeros([3, 4, 5])
RESULT = {
    "s": [
        x.shape[0],
        x.shape.rank,
        x.ndim,
        list(x.shape[1:]),
        x.get_shape().as_list(),
        int(tf.size(x)),
        int(tf.rank(x)),
    ],
    "exp": tf.expand_dims(x, -1).shape.as_list(),
    "sq": tf.squeeze(tf.zeros([1, 2, 1]), [0]).shape.as_list(),
    "bs": tf.broadcast_static_shape(tf.TensorShape([3, 1]), tf.TensorShape([1, 4])).as_list(),
    "bd": tf.broadcast_dynamic_shape(tf.constant([3, 1]), tf.constant([1, 4])),
    "meshgrid": tf.meshgrid([1, 2], [3, 4, 5]),
    "tile": tf.tile([[1, 2]], [2, 2]),
    "rev": tf.reverse([[1, 2], [3, 4]], [1]),
    "roll": tf.roll([1, 2, 3], 1, 0),
    "seq": tf.sequence_mask([1, 3], 4),
    "onehot": tf.one_hot([0, 2], 3, on_value=5.0, off_value=-1.0),
    "argsort": tf.argsort([3, 1, 2], direction="DESCENDING"),
    "bool": tf.boolean_mask([[1, 2], [3, 4]], [True, False]),
    "dyn": tf.dynamic_partition([1, 2, 3, 4], [0, 1, 0, 1], 2),
    "stitch": tf.dynamic_stitch([[0, 2], [1, 3]], [[1, 3], [2, 4]]),
    "strided": tf.strided_slice(tf.range(10), [1], [8], [2]),
    "unstack": tf.unstack(tf.constant([[1, 2], [3, 4]]), axis=1),
    "split": [p.shape.as_list() for p in tf.split(tf.zeros([5, 6]), [1, 2, 3], 1)],
    "einsum": tf.einsum("ij,jk->ik", tf.ones([2, 3]), tf.ones([3, 2])),
    "linspace": tf.linspace(0.0, 1.0, 5),
    "cumsum": tf.cumsum([1, 2, 3], exclusive=True, reverse=True),
    "is": tf.is_tensor(x),
    "eq": bool(tf.reduce_all(tf.equal([1, 2], [1, 2]))),
    "space": tf.space_to_batch(tf.reshape(tf.range(4.0), [1, 2, 2, 1]), [2, 2], [[0, 0], [0, 0]]),
}
