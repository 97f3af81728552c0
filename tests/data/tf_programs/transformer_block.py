import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

c = tf.keras.initializers.Constant


class TransformerBlock(layers.Layer):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.0):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim, kernel_initializer=c(0.05))
        self.ffn = tf.keras.Sequential(
            [
                layers.Dense(ff_dim, activation="relu", kernel_initializer=c(0.1)),
                layers.Dense(embed_dim, kernel_initializer=c(0.2)),
            ]
        )
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1, self.dropout2 = layers.Dropout(rate), layers.Dropout(rate)

    def call(self, inputs, training=False):
        attn_output = self.att(inputs, inputs)
        attn_output = self.dropout1(attn_output, training=training)
        out1 = self.layernorm1(inputs + attn_output)
        return self.layernorm2(out1 + self.dropout2(self.ffn(out1), training=training))


class TokenAndPositionEmbedding(layers.Layer):
    def __init__(self, maxlen, vocab_size, embed_dim):
        super().__init__()
        self.token_emb = layers.Embedding(input_dim=vocab_size, output_dim=embed_dim)
        self.pos_emb = layers.Embedding(input_dim=maxlen, output_dim=embed_dim)

    def call(self, x):
        maxlen = tf.shape(x)[-1]
        positions = tf.range(start=0, limit=maxlen, delta=1)
        return self.token_emb(x) + self.pos_emb(positions)


tokens = tf.constant([[1, 2, 3, 4], [4, 3, 2, 0]])
embed = TokenAndPositionEmbedding(4, 5, 6)
embed(tokens)
embed.token_emb.set_weights([np.sin(np.arange(30)).reshape(5, 6)])
embed.pos_emb.set_weights([np.cos(np.arange(24)).reshape(4, 6)])
inputs = layers.Input(shape=(4,), dtype="int32")
x = TransformerBlock(6, 2, 8)(embed(inputs))
x = layers.GlobalAveragePooling1D()(x)
outputs = layers.Dense(2, activation="softmax", kernel_initializer=c(0.3))(x)
before = embed(tokens)
model = tf.keras.Model(inputs=inputs, outputs=outputs)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
h = model.fit(tokens, np.array([0, 1]), epochs=3, verbose=0)
RESULT = {
    "loss": h.history["loss"],
    "embedded": before,
    "out": TransformerBlock(6, 1, 2)(before),
    "params": model.count_params(),
}
