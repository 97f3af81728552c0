import tensorflow as tf
import numpy as np

C = tf.keras.initializers.Constant


class Encoder(tf.keras.Model):
    def __init__(self, vocab, units):
        super().__init__()
        self.units = units
        self.emb = tf.keras.layers.Embedding(vocab, 4, embeddings_initializer=C(0.1))
        self.gru = tf.keras.layers.GRU(
            units, return_sequences=True, return_state=True, kernel_initializer=C(0.1), recurrent_initializer=C(0.05)
        )

    def call(self, x, hidden):
        output, state = self.gru(self.emb(x), initial_state=hidden)
        return output, state

    def initialize_hidden_state(self, n):
        return tf.zeros((n, self.units))


class Attention(tf.keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.W1, self.W2, self.V = (tf.keras.layers.Dense(n, kernel_initializer=C(0.2)) for n in (units, units, 1))

    def call(self, query, values):
        score = self.V(tf.nn.tanh(self.W1(tf.expand_dims(query, 1)) + self.W2(values)))
        weights = tf.nn.softmax(score, axis=1)
        return tf.reduce_sum(weights * values, axis=1), weights


class Decoder(tf.keras.Model):
    def __init__(self, vocab, units):
        super().__init__()
        self.emb = tf.keras.layers.Embedding(vocab, 4, embeddings_initializer=C(0.2))
        self.gru = tf.keras.layers.GRU(
            units, return_sequences=True, return_state=True, kernel_initializer=C(0.1), recurrent_initializer=C(0.05)
        )
        self.fc = tf.keras.layers.Dense(vocab, kernel_initializer=C(0.1))
        self.att = Attention(units)

    def call(self, x, hidden, enc):
        context, w = self.att(hidden, enc)
        x = tf.concat([tf.expand_dims(context, 1), self.emb(x)], axis=-1)
        output, state = self.gru(x, initial_state=hidden)
        return self.fc(tf.reshape(output, (-1, output.shape[2]))), state, w


enc, dec = Encoder(9, 6), Decoder(9, 6)
opt = tf.keras.optimizers.Adam()
obj = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def loss_function(real, pred):
    mask = tf.math.logical_not(tf.math.equal(real, 0))
    l = obj(real, pred)
    return tf.reduce_mean(l * tf.cast(mask, dtype=l.dtype))


@tf.function
def train_step(inp, targ):
    loss = 0
    with tf.GradientTape() as tape:
        out, hidden = enc(inp, enc.initialize_hidden_state(inp.shape[0]))
        dec_in = tf.expand_dims([1] * inp.shape[0], 1)
        for t in range(1, targ.shape[1]):
            pred, hidden, _ = dec(dec_in, hidden, out)
            loss += loss_function(targ[:, t], pred)
            dec_in = tf.expand_dims(targ[:, t], 1)
    batch_loss = loss / int(targ.shape[1])
    variables = enc.trainable_variables + dec.trainable_variables
    opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return batch_loss


rng = np.random.default_rng(0)
x, y = tf.constant(rng.integers(1, 9, (4, 5))), tf.constant(rng.integers(0, 9, (4, 4)))
RESULT = {"losses": [float(train_step(x, y)) for _ in range(4)]}
