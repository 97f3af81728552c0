import numpy as np
import tensorflow as tf

base = tf.keras.Sequential(
    [
        tf.keras.Input((6,)),
        tf.keras.layers.Dense(4, "relu", kernel_initializer="ones"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dense(3, "relu", kernel_initializer=tf.keras.initializers.Constant(0.2)),
    ],
    name="base",
)
base.trainable = False
inputs = tf.keras.Input(shape=(6,))
x = base(inputs, training=False)
x = tf.keras.layers.Dropout(0.0)(x)
outputs = tf.keras.layers.Dense(1, kernel_initializer="ones")(x)
model = tf.keras.Model(inputs, outputs)
data = (np.arange(24).reshape(4, 6) % 5).astype("float32") / 5
model.compile(
    tf.keras.optimizers.Adam(0.05),
    loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.0)],
)
first = [w.numpy().copy() for w in base.weights]
h1 = model.fit(data, np.array([0, 1, 0, 1.0]).reshape(4, 1), epochs=3, verbose=0, shuffle=False)
unchanged = all(np.array_equal(a, b.numpy()) for a, b in zip(first, base.weights))
counts = [len(model.trainable_weights), len(model.non_trainable_weights)]
base.trainable = True
for layer in base.layers[:-1]:
    layer.trainable = False
model.compile(
    tf.keras.optimizers.SGD(1e-1), loss=tf.keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"]
)
h2 = model.fit(data, np.array([0, 1, 0, 1.0]).reshape(4, 1), epochs=2, verbose=0, shuffle=False)
RESULT = {
    "h1": h1.history,
    "h2": h2.history["loss"],
    "unchanged": unchanged,
    "counts": counts,
    "later": len(model.trainable_weights),
    "name": [l.name for l in base.layers][0][:5],
}
