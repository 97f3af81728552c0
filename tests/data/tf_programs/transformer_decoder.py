import tensorflow as tf
import numpy as np


def positional_encoding(length, depth):
    depth = depth / 2
    positions = np.arange(length)[:, np.newaxis]
    depths = np.arange(depth)[np.newaxis, :] / depth
    rads = positions * (1 / (10000**depths))
    return tf.cast(np.concatenate([np.sin(rads), np.cos(rads)], axis=-1), dtype=tf.float32)


class PE(tf.keras.layers.Layer):
    def __init__(self, vocab, d):
        super().__init__()
        self.d = d
        self.embedding = tf.keras.layers.Embedding(
            vocab, d, mask_zero=True, embeddings_initializer=tf.keras.initializers.Constant(0.1)
        )
        self.pos = positional_encoding(length=32, depth=d)

    def compute_mask(self, *args, **kwargs):
        return self.embedding.compute_mask(*args, **kwargs)

    def call(self, x):
        length = tf.shape(x)[1]
        x = self.embedding(x)
        x *= tf.math.sqrt(tf.cast(self.d, tf.float32))
        return x + self.pos[tf.newaxis, :length, :]


class Causal(tf.keras.layers.Layer):
    def __init__(self, **kw):
        super().__init__()
        self.mha = tf.keras.layers.MultiHeadAttention(kernel_initializer=tf.keras.initializers.Constant(0.1), **kw)
        self.ln = tf.keras.layers.LayerNormalization()
        self.add = tf.keras.layers.Add()

    def call(self, x):
        a, s = self.mha(query=x, value=x, key=x, use_causal_mask=True, return_attention_scores=True)
        self.last = s
        return self.ln(self.add([x, a]))


pe, att = PE(11, 8), Causal(num_heads=2, key_dim=4)
x = tf.constant([[3, 5, 7, 0], [1, 2, 3, 4]])
att(pe(x))  # the call that builds the layers: in Keras it loses the mask
h = att(pe(x))
RESULT = {"h": h, "scores": att.last[0, 0], "mask": pe.compute_mask(x)}
look = tf.linalg.band_part(tf.ones((4, 4)), -1, 0)
RESULT["band"] = look
