import tensorflow as tf
import numpy as np

C = tf.keras.initializers.Constant


class ResidualBlock(tf.keras.layers.Layer):
    def __init__(self, units, rate=0.0, **kw):
        super().__init__(**kw)
        self.blocks = [tf.keras.layers.Dense(units, activation="gelu", kernel_initializer=C(0.1)) for _ in range(2)]
        self.norm = tf.keras.layers.LayerNormalization(epsilon=1e-6)
        self.drop = tf.keras.layers.Dropout(rate)

    def call(self, x, training=None):
        h = x
        for b in self.blocks:
            h = b(h)
        self.add_loss(1e-3 * tf.reduce_mean(tf.square(h)))
        return self.norm(x + self.drop(h, training=training))


class Net(tf.keras.Model):
    def __init__(self, depth=2, units=4, **kw):
        super().__init__(**kw)
        self.stem = tf.keras.layers.Dense(
            units, kernel_initializer=tf.keras.initializers.Identity(), kernel_regularizer="l2"
        )
        self.body = tf.keras.Sequential([ResidualBlock(units) for _ in range(depth)])
        self.head = {
            "a": tf.keras.layers.Dense(1, kernel_initializer="ones"),
            "b": tf.keras.layers.Dense(2, activation="softmax", kernel_initializer=C(0.1)),
        }

    def call(self, inputs, training=False):
        x = self.body(self.stem(inputs), training=training)
        return self.head["a"](x), self.head["b"](x)


net = Net()
x = np.random.default_rng(0).normal(size=(12, 5)).astype("float32")
a, b = net(x)
RESULT = {
    "a": a[:3],
    "n": len(net.trainable_variables),
    "losses": [float(l) for l in net.losses],
    "params": net.count_params(),
}
net.compile("adam", loss=["mse", "sparse_categorical_crossentropy"], loss_weights=[1.0, 0.5])
h = net.fit(x, (x[:, :1], (x[:, 0] > 0).astype("int32")), epochs=2, batch_size=6, shuffle=False, verbose=0)
RESULT["loss"] = h.history["loss"]
net.stem.trainable = False
RESULT["frozen"] = [len(net.trainable_variables), len(net.non_trainable_variables)]
