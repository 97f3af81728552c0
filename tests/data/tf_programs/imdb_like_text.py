import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

c = tf.keras.initializers.Constant
reviews = [[3, 4, 5], [6, 1], [7, 8, 9, 2], [1]]
x = tf.keras.utils.pad_sequences(reviews, maxlen=4, padding="post")
pre = tf.keras.preprocessing.sequence.pad_sequences(reviews, maxlen=3)
y = np.array([1, 0, 1, 0])
model = tf.keras.Sequential(
    [
        layers.Embedding(10, 3, mask_zero=True, embeddings_initializer=c(0.2)),
        layers.Bidirectional(
            layers.LSTM(2, kernel_initializer=c(0.1), recurrent_initializer=c(0.2), return_sequences=True)
        ),
        layers.LSTM(2, kernel_initializer=c(0.3), recurrent_initializer=c(0.1)),
        layers.Dense(1, activation="sigmoid", kernel_initializer=c(0.7)),
    ]
)
model.compile(loss="binary_crossentropy", optimizer=tf.keras.optimizers.Adam(1e-2), metrics=["accuracy"])
h = model.fit(x, y, epochs=2, batch_size=2, shuffle=False, verbose=0, validation_data=(x, y))
RESULT = {"x": x, "pre": pre, "h": h.history, "p": model.predict(x, verbose=0)}
