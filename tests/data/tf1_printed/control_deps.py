import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = tf.Variable(1.0, name="x")
y = tf.Variable(10.0)
with tf.control_dependencies([tf.assign_add(x, 1.0)]):
    r = tf.identity(x)
    r2 = x.read_value()
with tf.control_dependencies([tf.assign(y, x * 3)]):
    t = tf.no_op(name="done")
grp = tf.group(x.assign(5.0), y.assign(6.0), name="grp")
tup = tf.tuple([x + 1, y + 1])
dep = tf.control_flow_ops.with_dependencies([x.assign(100.0)], y) if hasattr(tf, "control_flow_ops") else None
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    print(s.run(r), s.run(r2), s.run(t), s.run(y), s.run(grp), s.run([x, y]), s.run(tup))
    print(grp.type, grp.name, t.name, t.control_inputs[0].type)
    with tf.control_dependencies([x.assign_sub(2.0)]):
        with tf.control_dependencies(None):
            q = x * 1.0
    print(s.run(q), [o.type for o in q.op.control_inputs])
    a = tf.assign(x, 7.0)
    print(s.run([a, a + 1]), x.eval())
    i = tf.count_up_to(tf.Variable(0, name="cnt"), 2)
    s.run(tf.global_variables_initializer())
    print(s.run(i), s.run(i))
    try:
        s.run(i)
    except tf.errors.OutOfRangeError:
        print("limit")
    x.load(42.0, s)
    print(x.eval(), x.initial_value.eval())
    print(s.run(x.assign(3.0).op), s.run(x.initializer), s.run(x))
