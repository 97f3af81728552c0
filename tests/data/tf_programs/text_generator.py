import numpy as np
import tensorflow as tf

text = "the quick brown fox jumps over the lazy dog "
letters = sorted(set(text))
ids = np.array([letters.index(letter) for letter in text * 12])
chunks = tf.data.Dataset.from_tensor_slices(ids).batch(13, drop_remainder=True)
pairs = chunks.map(lambda chunk: (chunk[:-1], chunk[1:])).batch(8, drop_remainder=True)


class Writer(tf.keras.Model):
    def __init__(self, size):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(size, 8)
        self.gru = tf.keras.layers.GRU(16, return_sequences=True, return_state=True)
        self.dense = tf.keras.layers.Dense(size)

    def call(self, inputs, states=None, return_state=False, training=False):
        x = self.embedding(inputs)
        if states is None:
            states = self.gru.get_initial_state(x.shape[0])
        x, states = self.gru(x, initial_state=states, training=training)
        x = self.dense(x)
        return (x, states) if return_state else x


model = Writer(len(letters))
for inputs, _ in pairs.take(1):
    RESULT = {"shape": model(inputs).shape.as_list()}
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
losses = model.fit(pairs, epochs=8, verbose=0).history["loss"]
RESULT["learns"] = losses[-1] < losses[0]
states, letter = None, tf.constant([[0]])
for _ in range(4):
    logits, states = model(letter, states=states, return_state=True)
    letter = tf.random.categorical(logits[:, -1, :], num_samples=1)
RESULT["letter"] = [letter.shape.as_list(), 0 <= int(letter[0, 0]) < len(letters)]
