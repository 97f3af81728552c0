import numpy as np
import tensorflow as tf

rng = np.random.RandomState(2)
x = rng.randn(32, 3).astype("float32")
y = rng.randint(0, 2, 32)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
model = tf.keras.Sequential([tf.keras.layers.Dense(2, kernel_initializer="zeros")])
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(0.05)
train_loss = tf.keras.metrics.Mean(name="train_loss")
train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    train_accuracy(labels, predictions)


found = []
for epoch in range(3):
    train_loss.reset_state()
    train_accuracy.reset_state()
    for images, labels in dataset:
        train_step(images, labels)
    found.append([float(train_loss.result()), float(train_accuracy.result())])
RESULT = {"found": found, "weights": model.trainable_variables}
