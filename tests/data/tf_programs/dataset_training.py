import numpy as np
import tensorflow as tf

x = (np.arange(60).reshape(20, 3) % 7 / 7).astype("float32")
y = (x.sum(1) > 1).astype("int64")
train = (
    tf.data.Dataset.from_tensor_slices((x[:16], y[:16]))
    .cache()
    .batch(4, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)
test = tf.data.Dataset.from_tensor_slices((x[16:], y[16:])).batch(2)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(4, "relu", kernel_initializer=tf.keras.initializers.Constant(0.3)),
        tf.keras.layers.Dense(2, kernel_initializer=tf.keras.initializers.Constant(0.1)),
    ]
)
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(0.02)
train_loss, train_accuracy = (
    tf.keras.metrics.Mean(name="train_loss"),
    tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy"),
)
test_loss, test_accuracy = tf.keras.metrics.Mean(name="test_loss"), tf.keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, norm = tf.clip_by_global_norm(gradients, 0.5)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    train_accuracy(labels, predictions)


@tf.function
def test_step(images, labels):
    predictions = model(images, training=False)
    test_loss(loss_object(labels, predictions))
    test_accuracy(labels, predictions)


lines = []
for epoch in range(3):
    for m in (train_loss, train_accuracy, test_loss, test_accuracy):
        m.reset_state()
    for images, labels in train:
        train_step(images, labels)
    for images, labels in test:
        test_step(images, labels)
    lines.append(
        [
            float(train_loss.result()),
            float(train_accuracy.result()) * 100,
            float(test_loss.result()),
            float(test_accuracy.result()),
        ]
    )
RESULT = {
    "lines": lines,
    "size": [int(train.cardinality()), len(test)],
    "spec": [list(s.shape) for s in train.element_spec],
    "steps": int(optimizer.iterations),
}
