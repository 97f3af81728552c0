import tensorflow as tf
import numpy as np

C = tf.keras.initializers.Constant
seqs = tf.keras.utils.pad_sequences([[1, 2, 3], [4, 5], [6]], padding="post", maxlen=4)
inp = tf.keras.Input((None,), dtype="int32")
x = tf.keras.layers.Embedding(8, 4, mask_zero=True, embeddings_initializer=tf.keras.initializers.Identity())(inp)
x = tf.keras.layers.Bidirectional(
    tf.keras.layers.LSTM(3, return_sequences=True, kernel_initializer=C(0.2), recurrent_initializer=C(0.1))
)(x)
x = tf.keras.layers.LSTM(2, kernel_initializer=C(0.3), recurrent_initializer=C(0.1))(x)
out = tf.keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones")(x)
m = tf.keras.Model(inp, out)
m.compile(loss="binary_crossentropy", optimizer="rmsprop", metrics=["accuracy"])
RESULT = {
    "pred": m.predict(seqs, verbose=0),
    "hist": m.fit(seqs, np.array([1, 0, 1]), epochs=3, verbose=0, shuffle=False).history["loss"],
    "pad": seqs,
}
cell = tf.keras.layers.RNN(
    [
        tf.keras.layers.LSTMCell(2, kernel_initializer="ones", recurrent_initializer="ones"),
        tf.keras.layers.GRUCell(3, kernel_initializer="ones", recurrent_initializer="ones"),
    ],
    return_state=True,
)
RESULT["cells"] = [t for t in tf.nest.flatten(cell(tf.ones([1, 3, 2])))]
