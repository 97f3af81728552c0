import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
rng = np.random.RandomState(0)
features = rng.randn(64, 8).astype("float32")
classes = (features.sum(1) > 0).astype("int64")
x, y = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int64, [None])
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(4, activation="relu", kernel_initializer="ones"),
        tf.keras.layers.Dropout(0.5),
        tf.keras.layers.Dense(2, kernel_initializer="ones", name="scores"),
    ]
)
scores, again = model(x), model(x * 2, training=False)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=scores))
step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
pictures = tf.placeholder(tf.float32, [None, 8, 8, 1])
h = tf.keras.layers.Conv2D(4, 3, padding="same", kernel_initializer="ones")(pictures)
h = tf.keras.layers.Flatten()(tf.keras.layers.MaxPooling2D()(h))
found = tf.keras.layers.Dense(3, kernel_initializer="ones")(h)
print(scores.shape, found.shape, len(tf.trainable_variables()), len(model.trainable_variables))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(np.round(sess.run([loss, again], {x: features, y: classes})[1][:2], 3))
    for _ in range(3):
        sess.run(step, {x: features, y: classes})
    print(f"{sess.run(loss, {x: features, y: classes}):.4f}")
    print(sess.run(found, {pictures: np.ones((2, 8, 8, 1))}))
