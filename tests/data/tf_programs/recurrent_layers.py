import numpy as np
import tensorflow as tf

x = (np.arange(24).reshape(2, 4, 3) / 10).astype("float32")
ones = {
    "kernel_initializer": tf.keras.initializers.Constant(0.1),
    "recurrent_initializer": tf.keras.initializers.Constant(0.05),
}
RESULT = {
    "lstm": tf.keras.layers.LSTM(2, **ones)(x),
    "sequences": tf.keras.layers.GRU(2, return_sequences=True, **ones)(x),
    "simple": tf.keras.layers.SimpleRNN(3, **ones)(x),
    "state": tf.keras.layers.LSTM(2, return_state=True, **ones)(x),
    "bidirectional": tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(1, **ones))(x),
    "embedding": tf.keras.layers.Embedding(5, 2, embeddings_initializer="ones")(np.array([[1, 2], [0, 4]])),
    "distributed": tf.keras.layers.TimeDistributed(tf.keras.layers.Dense(1, kernel_initializer="ones"))(x),
}
