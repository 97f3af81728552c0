import tensorflow as tf
import numpy as np

rng = np.random.default_rng(0)
k1, k2 = (
    tf.constant(rng.normal(size=(3, 3, 3, 4)) * 0.2, tf.float32),
    tf.constant(rng.normal(size=(3, 3, 4, 6)) * 0.2, tf.float32),
)


def feats(x):
    a = tf.nn.relu(tf.nn.conv2d(x, k1, 1, "SAME"))
    b = tf.nn.relu(tf.nn.conv2d(tf.nn.max_pool2d(a, 2, 2, "SAME"), k2, [1, 1, 1, 1], padding="SAME"))
    return [a, b]


def gram(t):
    result = tf.linalg.einsum("bijc,bijd->bcd", t, t)
    shape = tf.shape(t)
    return result / tf.cast(shape[1] * shape[2], tf.float32)


content, style = (tf.constant(rng.random((1, 8, 8, 3)), tf.float32) for _ in range(2))
ct, st = feats(content)[-1], [gram(f) for f in feats(style)]
image = tf.Variable(content)
opt = tf.keras.optimizers.Adam(learning_rate=0.02, beta_1=0.99, epsilon=1e-1)


@tf.function()
def step(image):
    with tf.GradientTape() as tape:
        out = feats(image)
        loss = tf.add_n([tf.reduce_mean((gram(o) - s) ** 2) for o, s in zip(out, st)]) * 1e-1
        loss += 1e2 * tf.reduce_mean((out[-1] - ct) ** 2)
        loss += 1e-3 * tf.image.total_variation(image)[0]
    grad = tape.gradient(loss, image)
    opt.apply_gradients([(grad, image)])
    image.assign(tf.clip_by_value(image, 0.0, 1.0))
    return loss


RESULT = {"losses": [float(step(image)) for _ in range(4)], "mean": tf.reduce_mean(image)}
