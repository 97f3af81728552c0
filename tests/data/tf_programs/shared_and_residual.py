import tensorflow as tf
from tensorflow.keras import layers, Model, Input

inp = Input((8, 8, 3), name="img")
c = tf.keras.initializers.Constant(0.02)
x = layers.Conv2D(4, 3, padding="same", activation="relu", kernel_initializer=c)(inp)
skip = x
x = layers.BatchNormalization()(x)
x = layers.Conv2D(4, 3, padding="same", kernel_initializer=c)(x)
x = layers.add([x, skip])
x = layers.Activation("relu")(x)
x = layers.MaxPooling2D()(x)
shared = layers.Dense(2, kernel_initializer="ones")
a = shared(layers.Flatten()(x))
b = shared(layers.Flatten()(x * 0.5))
out = layers.Subtract()([a, b])
m = Model(inp, out)
sub = Model(
    m.input,
    m.get_layer(
        "batch_normalization"
        if any(l.name == "batch_normalization" for l in m.layers)
        else [l.name for l in m.layers if "batch" in l.name][0]
    ).output,
)
img = tf.reshape(tf.range(192, dtype=tf.float32), [1, 8, 8, 3]) / 192
RESULT = {
    "out": m(img),
    "sub": tf.reduce_mean(sub(img)),
    "n": len(m.weights),
    "train": tf.reduce_mean(m(img, training=True)),
}
