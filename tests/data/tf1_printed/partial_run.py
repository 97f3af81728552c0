import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
a = tf.placeholder(tf.float32, shape=[])
b = tf.placeholder(tf.float32, shape=[])
c = tf.placeholder(tf.float32, shape=[])
r1 = tf.add(a, b)
r2 = tf.multiply(r1, c)
with tf.Session() as s:
    h = s.partial_run_setup([r1, r2], [a, b, c])
    res = s.partial_run(h, r1, feed_dict={a: 1, b: 2})
    print(res)
    print(s.partial_run(h, r2, feed_dict={c: res}))
    f = s.make_callable(r2, feed_list=[a, b, c])
    print(f(1.0, 2.0, 3.0), f(2.0, 2.0, 2.0))
    g = s.make_callable([r1, {"x": r2}], [a, b, c])
    print(g(1, 1, 1))
    print(s.run({"r": r1, "l": (r1, [r2])}, {a: 1, b: 1, c: 2}))
    print(s.run(r2, {r1: 10.0, c: 3.0}))
    print(s.run(["add:0" if False else r1.name], {a.name: 1, b.name: 4}))
    import collections

    P = collections.namedtuple("P", "u v")
    print(s.run(P(r1, r2), {a: 1, b: 1, c: 1}))
    print(s.run(r1, {(a, b): (5.0, 6.0)}), s.graph is tf.get_default_graph(), s.run([]), s.run(tf.no_op()))
    print(a.op.get_attr("dtype"))
