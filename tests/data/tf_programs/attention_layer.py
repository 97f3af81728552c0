import numpy as np
import tensorflow as tf

x = (np.arange(24).reshape(2, 3, 4) / 10).astype("float32")
layer = tf.keras.layers.MultiHeadAttention(
    num_heads=2, key_dim=2, kernel_initializer=tf.keras.initializers.Constant(0.1)
)
y, scores = layer(x, x, return_attention_scores=True)
RESULT = {"y": y, "scores": scores, "causal": layer(x, x, use_causal_mask=True)}
