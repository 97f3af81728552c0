import tensorflow as tf
import numpy as np

text = "to be or not to be that is the question " * 3
chars = sorted(set(text))
ids = np.array([chars.index(c) for c in text])
ds = (
    tf.data.Dataset.from_tensor_slices(ids)
    .batch(11, drop_remainder=True)
    .map(lambda s: (s[:-1], s[1:]))
    .batch(4, drop_remainder=True)
)


class Model(tf.keras.Model):
    def __init__(self, vocab, dim, units):
        super().__init__()
        c = tf.keras.initializers.RandomUniform(-0.1, 0.1, seed=1)
        self.embedding = tf.keras.layers.Embedding(
            vocab, dim, embeddings_initializer=tf.keras.initializers.Constant(0.05)
        )
        self.gru = tf.keras.layers.GRU(
            units, return_sequences=True, return_state=True, kernel_initializer="ones", recurrent_initializer="identity"
        )
        self.dense = tf.keras.layers.Dense(
            vocab, kernel_initializer=tf.keras.initializers.Constant(0.01), bias_initializer="zeros"
        )

    def call(self, inputs, states=None, return_state=False, training=False):
        x = self.embedding(inputs, training=training)
        if states is None:
            batch_size = tf.shape(inputs)[0]
            states = self.gru.get_initial_state(batch_size=batch_size)
        x, states = self.gru(x, initial_state=states, training=training)
        x = self.dense(x, training=training)
        return (x, states) if return_state else x


m = Model(len(chars), 4, 8)
loss = tf.losses.SparseCategoricalCrossentropy(from_logits=True)
m.compile(optimizer="adam", loss=loss)
h = m.fit(ds, epochs=3, verbose=0)
out, st = m(tf.constant([[1, 2]]), return_state=True)
gen = []
nxt, states = tf.constant([[3]]), None
for _ in range(5):
    logits, states = m(nxt, states=states, return_state=True)
    nxt = tf.argmax(logits[:, -1:, :], -1)
    gen.append(int(nxt[0, 0]))
RESULT = {"loss": h.history["loss"], "shape": [list(out.shape), list(st.shape)], "gen": len(gen)}
