import numpy as np
import tensorflow as tf

rng = np.random.RandomState(1)
x = rng.randn(60, 4).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("int32") + (x[:, 2] > 1).astype("int32")
model = tf.keras.models.Sequential()
model.add(tf.keras.layers.Input((4,)))
model.add(tf.keras.layers.Dense(5, activation="tanh", kernel_initializer=tf.keras.initializers.Constant(0.2)))
model.add(tf.keras.layers.Dense(3, kernel_initializer="zeros"))
model.compile(
    optimizer="adam",
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy", tf.keras.metrics.SparseTopKCategoricalAccuracy(k=2, name="top2")],
)
history = model.fit(x, y, epochs=3, batch_size=20, shuffle=False, verbose=0, validation_data=(x, y))
RESULT = {"history": {key: history.history[key] for key in sorted(history.history)}, "logits": model(x[:2])}
