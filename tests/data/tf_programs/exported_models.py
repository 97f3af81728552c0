import os
import tempfile

import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, kernel_initializer="ones")])
folder = tempfile.mkdtemp()
model.export(os.path.join(folder, "model"))
loaded = tf.saved_model.load(os.path.join(folder, "model"))
serving = loaded.signatures["serving_default"]


class Scale(tf.Module):
    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def times(self, x):
        return x * self.factor

    @tf.function
    def plus(self, x):
        return x + self.factor, x


@tf.function
def chosen(x, flag):
    found = tf.cond(flag, lambda: 1, lambda: 2), tf.case([(x > 1, lambda: 3)], default=lambda: 4)
    found += (tf.switch_case(x, [lambda: 5, lambda: 6]), tf.cond(flag, lambda: (1, 2.5), lambda: (2, 3.5))[0])
    return found


scale = Scale()
scale.plus(tf.constant(1.0))
tf.saved_model.save(scale, os.path.join(folder, "plain"))
tf.saved_model.save(scale, folder, signatures={"serving_default": scale.times, "twice": scale.times})
plain = tf.saved_model.load(os.path.join(folder, "plain"))
signed = tf.saved_model.load(folder)
x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
RESULT = {
    "serve": loaded.serve(x),
    "one row": loaded.serve(x[:1]),
    "serving": {key: value.numpy() for key, value in serving(x).items()},
    "names": list(loaded.signatures),
    "outputs": list(serving.structured_outputs),
    "plain": [plain.times(tf.constant([1.0])), plain.plus(tf.constant(2.0)), plain.factor],
    "signed": [signed.times(tf.constant([2.0])), signed.factor, sorted(signed.signatures)],
    "named": {key: value.numpy() for key, value in signed.signatures["twice"](tf.constant([1.0, 2.0])).items()},
    "by name": list(signed.signatures["serving_default"](x=tf.constant([1.0, 2.0]))),
    "reshaped": tf.reshape(x, tf.shape(tf.zeros([3, 2]))),
    "grown": tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, tf.concat([a, a + 1], 0)), [tf.constant(0), tf.ones([1, 2])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )[1],
    "counted": [x.numpy() for x in tf.data.Dataset.range(3).reduce((0.0, 0), lambda s, x: (s[0] + 1.5, s[1] + 1))],
    "branches": [[x.numpy().item(), x.numpy().dtype.name] for x in chosen(tf.constant(1), tf.constant(False))],
    "rank": [tf.linalg.matrix_rank(tf.eye(2)).dtype.name, tf.Variable(1.0, name="w").name, tf.Variable(1.0).name],
}  # fmt: skip
