import tensorflow as tf
import numpy as np

C = tf.keras.initializers.Constant
inp = tf.keras.Input((8, 8, 3))
x = tf.keras.layers.Conv2D(4, 3, activation="relu", kernel_initializer=C(0.1), name="last_conv")(inp)
g = tf.keras.layers.GlobalAveragePooling2D()(x)
out = tf.keras.layers.Dense(3, kernel_initializer=tf.keras.initializers.Identity())(g)
model = tf.keras.models.Model(inp, out)
grad_model = (
    tf.keras.models.Model([model.inputs], [model.get_layer("last_conv").output, model.output])
    if False
    else tf.keras.models.Model(model.inputs, [model.get_layer("last_conv").output, model.output])
)
img = tf.constant(np.random.default_rng(0).random((1, 8, 8, 3)), tf.float32)
with tf.GradientTape() as tape:
    conv, preds = grad_model(img)
    idx = tf.argmax(preds[0])
    channel = preds[:, idx]
grads = tape.gradient(channel, conv)
pooled = tf.reduce_mean(grads, axis=(0, 1, 2))
heat = conv[0] @ pooled[..., tf.newaxis]
heat = tf.squeeze(heat)
heat = tf.maximum(heat, 0) / tf.math.reduce_max(heat)
with tf.GradientTape() as tape:
    tape.watch(img)
    score = model(img)[:, 0]
sal = tf.reduce_max(tf.abs(tape.gradient(score, img)), axis=-1)
RESULT = {"heat": heat, "pooled": pooled, "sal": tf.reduce_sum(sal)}
