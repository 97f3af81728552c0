import numpy as np
import tensorflow as tf
from tensorflow.keras import ops

x = np.arange(6.0, dtype="float32").reshape(2, 3) - 2
RESULT = {
    "arith": ops.add(x, 1.0).numpy(),
    "clip": ops.clip(x, -1.0, 2.0).numpy(),
    "mean": ops.mean(x, axis=-1, keepdims=True).numpy(),
    "concatenate": ops.concatenate([x, x], axis=-1).numpy(),
    "stack": ops.stack([x, x]).shape.as_list(),
    "split": [part.numpy() for part in ops.split(x, [1], axis=1)],
    "halves": [part.numpy() for part in ops.split(x, 2)],
    "take": ops.take(x, [2, 0], axis=1).numpy(),
    "flat": ops.take(x, 4).numpy(),
    "swap": ops.swapaxes(x, 0, -1).numpy(),
    "where": ops.where(x > 0, x, 0.0).numpy(),
    "softmax": ops.softmax(x, axis=-1).numpy(),
    "one_hot": ops.one_hot([0, 2], 3).numpy(),
    "norm": [ops.norm(x).numpy(), ops.norm(x, axis=1).numpy()],
    "dot": ops.dot(x, ops.transpose(x)).numpy(),
    "segments": ops.segment_sum(x[0], np.array([0, 0, 1]), num_segments=2).numpy(),
    "einsum": ops.einsum("ij,kj->ik", x, x).numpy(),
    "arange": ops.arange(1, 7, 2).numpy(),
    "cumsum": ops.cumsum(x, axis=1).numpy(),
    "shape": list(ops.shape(x)),
    "top": [part.numpy() for part in ops.top_k(x, 2)],
    "var": [ops.var(x).numpy(), ops.std(x, axis=0).numpy()],
    "expand": ops.squeeze(ops.expand_dims(x, 0), 0).numpy(),
    "logsumexp": ops.logsumexp(x, axis=1).numpy(),
    "pad": ops.pad(x, [[0, 1], [1, 0]]).numpy(),
    "gelu": ops.gelu(x).numpy(),
    "patches": ops.image.extract_patches(np.ones((1, 4, 4, 1), "float32"), (2, 2)).shape.as_list(),
}


class Sampling(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.seeds = tf.keras.random.SeedGenerator(7)

    def call(self, inputs):
        mean, log_variance = inputs
        shape = (ops.shape(mean)[0], ops.shape(mean)[1])
        return mean + ops.exp(0.5 * log_variance) * tf.keras.random.normal(shape, seed=self.seeds)


layer = Sampling()
drawn = [layer([tf.zeros((4, 2)), tf.zeros((4, 2))]).numpy() for _ in range(2)]
RESULT["drawn"] = [list(drawn[0].shape), bool((drawn[0] != drawn[1]).all())]
