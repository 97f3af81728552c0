import tensorflow as tf
import numpy as np

C = tf.keras.initializers.Constant


def make():
    return tf.keras.Sequential(
        [
            tf.keras.Input((4,)),
            tf.keras.layers.Dense(8, activation="relu", kernel_initializer=C(0.1)),
            tf.keras.layers.Dense(2, activation="linear", kernel_initializer=tf.keras.initializers.Identity(0.5)),
        ]
    )


q, target = make(), make()
target.set_weights(q.get_weights())
opt = tf.keras.optimizers.Adam(learning_rate=0.01, clipnorm=1.0)
huber = tf.keras.losses.Huber()
rng = np.random.default_rng(0)
losses = []
for it in range(4):
    s, s2 = (tf.convert_to_tensor(rng.normal(size=(6, 4)), dtype=tf.float32) for _ in range(2))
    a, r, done = (
        rng.integers(0, 2, 6),
        rng.random(6).astype("float32"),
        tf.convert_to_tensor([float(v) for v in rng.integers(0, 2, 6)]),
    )
    future = target.predict(s2, verbose=0)
    updated = r + 0.99 * tf.reduce_max(future, axis=1)
    updated = updated * (1 - done) - done
    masks = tf.one_hot(a, 2)
    with tf.GradientTape() as tape:
        qv = q(s)
        qa = tf.reduce_sum(tf.multiply(qv, masks), axis=1)
        loss = huber(updated, qa)
    grads = tape.gradient(loss, q.trainable_variables)
    opt.apply_gradients(zip(grads, q.trainable_variables))
    losses.append(float(loss))
    for t, w in zip(target.variables, q.variables):
        t.assign(t * 0.9 + w * 0.1)
RESULT = {"losses": losses, "w": target.get_weights()[1], "act": int(tf.argmax(q(tf.ones([1, 4]))[0]).numpy())}
