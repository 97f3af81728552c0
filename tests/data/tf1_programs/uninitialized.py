"""A variable without a value says so; sessions have values of their own."""

import hybridflow.compat.v1 as tf

v = tf.Variable(10, name="counter")
w = tf.Variable(v.initialized_value() * 2, name="twice")
step = tf.assign_add(v, 1)
one, two = tf.Session(), tf.Session()
try:
    one.run(step)
except tf.errors.FailedPreconditionError as error:
    assert "Attempting to use uninitialized value counter" in str(error)
else:
    raise AssertionError("there was no value")
assert set(one.run(tf.report_uninitialized_variables())) == {b"counter", b"twice"}
one.run(tf.global_variables_initializer())
assert not len(one.run(tf.report_uninitialized_variables()))
assert one.run(w) == 20
assert [one.run(step) for _ in range(3)] == [11, 12, 13]
assert not two.run(tf.is_variable_initialized(v))
two.run(v.initializer)
assert two.run(v) == 10 and one.run(v) == 13
one.run(v.initializer)
assert one.run(v) == 10
v.load(7, two)
assert two.run(step) == 8
one.close()
two.close()
try:
    one.run(v)
except RuntimeError as error:
    assert "closed" in str(error)
else:
    raise AssertionError("it was closed")
