import tensorflow as tf
import numpy as np

edges = tf.constant([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
feats = tf.constant(np.random.default_rng(0).random((4, 3)), tf.float32)


class GraphConv(tf.keras.layers.Layer):
    def __init__(self, units, **kw):
        super().__init__(**kw)
        self.units = units

    def build(self, shape):
        self.k = self.add_weight(name="k", shape=(shape[0][-1], self.units), initializer="ones")

    def call(self, inputs):
        x, e = inputs
        msgs = tf.gather(x, e[:, 1])
        agg = tf.math.unsorted_segment_mean(msgs, e[:, 0], num_segments=x.shape[0])
        mx = tf.math.unsorted_segment_max(msgs, e[:, 0], num_segments=4)
        return tf.nn.relu(tf.matmul(agg + mx, self.k))


l = GraphConv(2)
out = l((feats, edges))
deg = tf.math.segment_sum(tf.ones([5]), tf.sort(edges[:, 0]))
adj = tf.tensor_scatter_nd_update(tf.zeros([4, 4]), edges, tf.ones([5]))
norm = tf.math.reciprocal_no_nan(tf.sqrt(tf.reduce_sum(adj, 1)))
RESULT = {"out": out, "deg": deg, "lap": norm[:, None] * adj * norm[None]}
