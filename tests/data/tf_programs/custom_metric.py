import tensorflow as tf
import numpy as np


class TruePositiveRate(tf.keras.metrics.Metric):
    def __init__(self, threshold=0.5, name="tpr", **kwargs):
        super().__init__(name=name, **kwargs)
        self.threshold = threshold
        self.tp = self.add_weight(name="tp", initializer="zeros")
        self.pos = self.add_weight(name="pos", shape=(), initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = tf.cast(y_true, self.dtype)
        y_pred = tf.convert_to_tensor(y_pred)
        hit = tf.cast(y_pred > self.threshold, self.dtype) * y_true
        if sample_weight is not None:
            sample_weight = tf.cast(sample_weight, self.dtype)
            hit = tf.multiply(hit, sample_weight)
            y_true = tf.multiply(y_true, sample_weight)
        self.tp.assign_add(tf.reduce_sum(hit))
        self.pos.assign_add(tf.reduce_sum(y_true))

    def result(self):
        return tf.math.divide_no_nan(self.tp, self.pos)

    def reset_state(self):
        self.tp.assign(0.0)
        self.pos.assign(0.0)

    def get_config(self):
        return {**super().get_config(), "threshold": self.threshold}


m = TruePositiveRate()
m.update_state([0, 1, 1, 1], [0.2, 0.7, 0.4, 0.9])
RESULT = {"a": m.result(), "vars": [v.numpy() for v in m.variables]}
m.reset_state()
m.update_state([1, 1], [0.6, 0.1], sample_weight=[3, 1])
RESULT["b"] = m.result()
RESULT["config"] = m.get_config()["threshold"]
x = np.linspace(-1, 1, 20).reshape(-1, 1).astype("float32")
y = (x[:, 0] > 0).astype("float32")
model = tf.keras.Sequential(
    [tf.keras.Input((1,)), tf.keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones")]
)
model.compile("sgd", "binary_crossentropy", metrics=[TruePositiveRate(), "accuracy", tf.keras.metrics.AUC(name="auc")])
h = model.fit(x, y, epochs=2, batch_size=5, shuffle=False, verbose=0)
RESULT["history"] = h.history
