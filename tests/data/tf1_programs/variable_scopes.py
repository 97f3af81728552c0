"""get_variable: sharing, what is not allowed, and where names come from."""

import hybridflow.compat.v1 as tf


def conv(x, size):
    weights = tf.get_variable("weights", [size], initializer=tf.constant_initializer(2.0))
    return x * weights


x = tf.constant([1.0, 2.0])
with tf.variable_scope("image_filters") as scope:
    first = conv(x, 2)
    try:
        conv(x, 2)
    except ValueError as error:
        assert "Variable image_filters/weights already exists, disallowed" in str(error)
    else:
        raise AssertionError("it exists")
    scope.reuse_variables()
    second = conv(x, 2)
with tf.variable_scope(scope, reuse=True):
    third = tf.get_variable("weights", [2])
    try:
        tf.get_variable("weights", [3])
    except ValueError as error:
        assert "specified shape (3,) and found shape (2,)" in str(error)
    else:
        raise AssertionError("another shape")
    try:
        tf.get_variable("missing", [3])
    except ValueError as error:
        assert "Variable image_filters/missing does not exist" in str(error)
    else:
        raise AssertionError("it does not exist")
with tf.variable_scope("auto", reuse=tf.AUTO_REUSE):
    a = tf.get_variable("v", [1])
    b = tf.get_variable("v", [1])
assert a is b and third is tf.global_variables()[0]
with tf.variable_scope("outer"):
    with tf.variable_scope("inner", initializer=tf.ones_initializer()):
        inner = tf.get_variable("w", [2])
        named = tf.add(inner, 1.0, name="sum")
    assert tf.get_variable_scope().name == "outer"
assert inner.name == "outer/inner/w:0" and named.name == "outer/inner/sum:0"
with tf.name_scope("not_for_variables"):
    assert tf.get_variable("plain", [1]).name == "plain:0"
    assert tf.Variable(1.0, name="with_scope").name == "not_for_variables/with_scope:0"
assert [v.name for v in tf.trainable_variables("outer")] == ["outer/inner/w:0"]
for expected in ("unit", "unit_1"):
    with tf.variable_scope(None, default_name="unit"):
        assert tf.get_variable("w", [1]).name == f"{expected}/w:0"
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(second).tolist() == [2, 4] and sess.run(inner).tolist() == [1, 1]
