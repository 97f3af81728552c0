"""Graphs of their own: names begin anew, tensors do not mix."""

import hybridflow.compat.v1 as tf

first = tf.constant(1.0, name="a")
assert first.name == "a:0"
tf.reset_default_graph()
second = tf.constant(2.0, name="a")
assert second.name == "a:0" and second.graph is not first.graph
other = tf.Graph()
with other.as_default():
    third = tf.constant(3.0, name="a")
    try:
        tf.add(third, second)
    except ValueError as error:
        assert "must be from the same graph" in str(error)
    else:
        raise AssertionError("two graphs")
assert tf.get_default_graph() is second.graph
with tf.Session(graph=other) as sess:
    assert sess.run(third) == 3.0
    try:
        sess.run(second)
    except ValueError as error:
        assert "not an element of this graph" in str(error)
    else:
        raise AssertionError("another graph's")
    assert sess.run(third + 1) == 4.0
try:
    second.eval()
except ValueError as error:
    assert "Cannot evaluate without a session" in str(error)
else:
    raise AssertionError("no session")
