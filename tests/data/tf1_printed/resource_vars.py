import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

v = tf.get_variable("v", [4, 2], initializer=tf.zeros_initializer(), use_resource=True)
u = tf.scatter_update(v, [0, 2], [[1.0, 1.0], [2.0, 2.0]])
a = tf.scatter_nd_update(tf.Variable([1, 2, 3]), [[0]], [9])
sl = v[1].assign([5.0, 5.0])
st = v[:, 0].assign([7.0, 7.0, 7.0, 7.0])
b = tf.Variable(tf.zeros([2]), name="b")
loc = tf.get_local_variable("loc", [], initializer=tf.zeros_initializer())
ld = loc.assign_add(2.0)
c = tf.Variable(0.0, name="c", collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
con = tf.get_variable(
    "con", [2], initializer=tf.constant_initializer(3.0), constraint=lambda x: tf.clip_by_value(x, -1.0, 1.0)
)
tr = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(con * 2), var_list=[con])
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    s.run(tf.local_variables_initializer())
    print(s.run(u))
    print(s.run(a))
    s.run(sl)
    s.run(st)
    print(s.run(v))
    print(s.run(ld), s.run(ld), [x.name for x in tf.local_variables()])
    s.run(tr)
    print(s.run(con), s.run(con.constraint(con)))
    print(
        v.get_shape().as_list(),
        v.dtype,
        v.graph is s.graph,
        v.device,
        tf.model_variables(),
        [x.op.name for x in tf.trainable_variables()],
    )
    print(
        s.run(tf.assign(b, [1.0, 2.0])),
        b.value().eval(),
        b.read_value().eval(),
        tf.shape(b).eval(),
        (b * 2)[0].eval(),
        s.run(b.initialized_value()),
    )
