import os
import tempfile

import tensorflow as tf


class Adder(tf.Module):
    def __init__(self):
        super().__init__()
        self.total = tf.Variable(10.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def add(self, x):
        return x + self.total


path = os.path.join(tempfile.mkdtemp(), "adder")
adder = Adder()
tf.saved_model.save(adder, path)
loaded = tf.saved_model.load(path)
RESULT = {"y": loaded.add(tf.constant([1.0, 2.0])), "empty": tf.shape(loaded.add(tf.zeros([0])))}
