import tensorflow as tf
import numpy as np

rng = np.random.default_rng(0)
x, y = rng.random((40, 6)).astype("float32"), rng.integers(0, 3, 40)
train = tf.data.Dataset.from_tensor_slices((x[:32], y[:32])).shuffle(32, seed=0).batch(32)
val = tf.data.Dataset.from_tensor_slices((x[32:], y[32:])).batch(4)
C = tf.keras.initializers.Constant
model = tf.keras.Sequential(
    [
        tf.keras.Input((6,)),
        tf.keras.layers.Dense(8, "relu", kernel_initializer=C(0.1)),
        tf.keras.layers.Dense(3, kernel_initializer=tf.keras.initializers.Identity()),
    ]
)
opt = tf.keras.optimizers.SGD(0.5, momentum=0.9, nesterov=True)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
ta, va, tl = (
    tf.keras.metrics.SparseCategoricalAccuracy(),
    tf.keras.metrics.SparseCategoricalAccuracy(),
    tf.keras.metrics.Mean(),
)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits) + sum(model.losses, 0.0)
    grads = tape.gradient(loss, model.trainable_weights)
    opt.apply_gradients(zip(grads, model.trainable_weights))
    ta.update_state(y, logits)
    tl(loss)


@tf.function
def test_step(x, y):
    va.update_state(y, model(x, training=False))


log = []
for epoch in range(4):
    for step, (bx, by) in enumerate(train):
        train_step(bx, by)
    for bx, by in val:
        test_step(bx, by)
    log.append([float(m.result()) for m in (ta, tl, va)])
    for m in (ta, tl, va):
        m.reset_state()
RESULT = {"log": log, "text": tf.strings.format("x", ()) if False else 0}
