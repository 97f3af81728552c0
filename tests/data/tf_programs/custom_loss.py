import tensorflow as tf
import numpy as np


class FocalLoss(tf.keras.losses.Loss):
    def __init__(self, gamma=2.0, name="focal", **kw):
        super().__init__(name=name, **kw)
        self.gamma = gamma

    def call(self, y_true, y_pred):
        y_true = tf.cast(y_true, y_pred.dtype)
        p = tf.clip_by_value(y_pred, 1e-7, 1 - 1e-7)
        pt = y_true * p + (1 - y_true) * (1 - p)
        return tf.reduce_mean(-tf.pow(1 - pt, self.gamma) * tf.math.log(pt), axis=-1)

    def get_config(self):
        c = super().get_config()
        c.update({"gamma": self.gamma})
        return c


def huberish(delta):
    def loss(y_true, y_pred):
        e = tf.abs(y_true - y_pred)
        return tf.where(e < delta, 0.5 * e**2, delta * (e - 0.5 * delta))

    return loss


rng = np.random.default_rng(1)
x, y = rng.normal(size=(32, 3)).astype("float32"), rng.integers(0, 2, (32, 1)).astype("float32")
RESULT = {}
for name, loss in (
    ("focal", FocalLoss(gamma=1.5)),
    ("hub", huberish(0.3)),
    ("lambda", lambda t, p: tf.reduce_mean(tf.abs(t - p))),
):
    model = tf.keras.Sequential(
        [
            tf.keras.Input((3,)),
            tf.keras.layers.Dense(4, "tanh", kernel_initializer=tf.keras.initializers.Constant(0.1)),
            tf.keras.layers.Dense(1, "sigmoid", kernel_initializer="ones"),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(0.05), loss)
    RESULT[name] = model.fit(x, y, epochs=3, batch_size=8, shuffle=False, verbose=0).history["loss"]
RESULT["none"] = FocalLoss(reduction="none")([[1.0], [0.0]], tf.constant([[0.3], [0.4]]))
