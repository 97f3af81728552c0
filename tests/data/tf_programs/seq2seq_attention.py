import numpy as np
import tensorflow as tf

ones = lambda scale: tf.keras.initializers.Constant(scale)


class Encoder(tf.keras.layers.Layer):
    def __init__(self, vocab, units):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(vocab, units, embeddings_initializer=ones(0.1))
        self.gru = tf.keras.layers.GRU(
            units,
            return_sequences=True,
            return_state=True,
            kernel_initializer=ones(0.2),
            recurrent_initializer=ones(0.1),
        )

    def call(self, x):
        return self.gru(self.embedding(x))


class BahdanauAttention(tf.keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.W1 = tf.keras.layers.Dense(units, kernel_initializer=ones(0.3))
        self.W2 = tf.keras.layers.Dense(units, kernel_initializer=ones(0.1))
        self.V = tf.keras.layers.Dense(1, kernel_initializer=ones(0.5))

    def call(self, query, values):
        query_with_time = tf.expand_dims(query, 1)
        score = self.V(tf.nn.tanh(self.W1(query_with_time) + self.W2(values)))
        attention = tf.nn.softmax(score, axis=1)
        context = tf.reduce_sum(attention * values, axis=1)
        return context, attention


class Decoder(tf.keras.Model):
    def __init__(self, vocab, units):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(vocab, units, embeddings_initializer=ones(0.2))
        self.cell = tf.keras.layers.GRUCell(units, kernel_initializer=ones(0.1), recurrent_initializer=ones(0.2))
        self.attention = BahdanauAttention(units)
        self.fc = tf.keras.layers.Dense(vocab)

    def call(self, x, hidden, encoded):
        context, weights = self.attention(hidden, encoded)
        x = tf.concat([context, self.embedding(x)], axis=-1)
        out, state = self.cell(x, [hidden])
        state = state[0] if isinstance(state, (list, tuple)) else state
        return self.fc(out), state, weights


encoder, decoder = Encoder(9, 4), Decoder(7, 4)
source = tf.constant(np.arange(10).reshape(2, 5) % 9)
target = tf.constant([[1, 2, 3], [4, 5, 6]])
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
encoded, hidden = encoder(source)
decoder(target[:, 0], hidden, encoded)
decoder.fc.set_weights([np.linspace(-1, 1, 28).reshape(4, 7).astype("float32"), np.zeros(7, "float32")])
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def train_step(source, target):
    loss = 0.0
    with tf.GradientTape() as tape:
        encoded, hidden = encoder(source)
        for t in range(1, target.shape[1]):
            predictions, hidden, _ = decoder(target[:, t - 1], hidden, encoded)
            mask = tf.cast(tf.not_equal(target[:, t], 0), predictions.dtype)
            loss += tf.reduce_mean(loss_object(target[:, t], predictions) * mask)
    batch_loss = loss / int(target.shape[1])
    variables = encoder.trainable_variables + decoder.trainable_variables
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))
    return batch_loss


RESULT = {"losses": [float(train_step(source, target)) for _ in range(3)], "shape": encoded.shape.as_list()}
