"""Constants, and a text."""

import hybridflow.compat.v1 as tf

hello = tf.constant("Hello, TensorFlow!")
a = tf.constant(2)
b = tf.constant(3)
with tf.Session() as sess:
    assert sess.run(hello) == b"Hello, TensorFlow!"
    assert sess.run(a + b) == 5 and sess.run(a * b) == 6
    assert sess.run(a + b).dtype == "int32"
assert a.name == "Const_1:0" and (a + b).op.type == "Add"
