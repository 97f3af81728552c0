"""The import of those who came from TensorFlow 2 with programs of TensorFlow 1."""

import hybridflow.compat.tf.compat.v1 as tf

tf.disable_v2_behavior()
a = tf.placeholder(tf.float32, name="a")
b = tf.Variable(tf.ones([2]), name="b")
rolled = tf.roll(a * b, shift=1, axis=0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(rolled, {a: [1.0, 2.0]}).tolist() == [2.0, 1.0]
