import tempfile

import tensorflow as tf


class Scale(tf.Module):
    def __init__(self):
        super().__init__()
        self.by = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x):
        return x * self.by


with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(Scale(), folder)
    loaded = tf.saved_model.load(folder)
    RESULT = {"there": loaded(tf.constant([1.0, 2.0])).numpy()}
    tf.saved_model.save(Scale(), folder + "/new")
    RESULT["new"] = tf.saved_model.load(folder + "/new")(tf.constant([4.0])).numpy()
