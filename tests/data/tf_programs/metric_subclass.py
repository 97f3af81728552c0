import tensorflow as tf


class BinaryTruePositives(tf.keras.metrics.Metric):
    def __init__(self, name="binary_true_positives", **kwargs):
        super().__init__(name=name, **kwargs)
        self.true_positives = self.add_weight(name="tp", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = tf.cast(y_true, tf.bool)
        y_pred = tf.cast(y_pred > 0.5, tf.bool)
        values = tf.logical_and(tf.equal(y_true, True), tf.equal(y_pred, True))
        values = tf.cast(values, self.dtype)
        if sample_weight is not None:
            values = tf.multiply(values, tf.cast(sample_weight, self.dtype))
        self.true_positives.assign_add(tf.reduce_sum(values))

    def result(self):
        return self.true_positives

    def reset_state(self):
        self.true_positives.assign(0.0)


m = BinaryTruePositives()
m.update_state(tf.constant([0, 1, 1, 1]), tf.constant([0.1, 0.9, 0.8, 0.2]))
first = float(m.result())
m.update_state(tf.constant([1, 1]), tf.constant([0.7, 0.6]), sample_weight=[0.5, 2.0])
second = float(m.result())
m.reset_state()
model = tf.keras.Sequential(
    [tf.keras.Input((2,)), tf.keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones")]
)
model.compile("sgd", "binary_crossentropy", metrics=[BinaryTruePositives()])
h = model.fit(tf.ones((8, 2)), tf.ones((8, 1)), epochs=2, batch_size=4, verbose=0)
RESULT = {"first": first, "second": second, "reset": float(m.result()), "history": {k: v for k, v in h.history.items()}}
