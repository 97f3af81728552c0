import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import tempfile, os

v = tf.Variable([1.0, 2.0], name="v")
w = tf.get_variable("w", [], initializer=tf.constant_initializer(3.0))
opt_op = tf.group(tf.assign_add(v, [1.0, 1.0]), w.assign(w * 2))
ema = tf.train.ExponentialMovingAverage(decay=0.9)
with tf.control_dependencies([opt_op]):
    train = ema.apply([v, w])
print(ema.average(v).name, ema.average_name(w), sorted(ema.variables_to_restore().keys()))
loss = tf.reduce_sum(v) + w
ema2 = tf.train.ExponentialMovingAverage(0.99, num_updates=tf.constant(3), name="second")
m2 = ema2.apply([loss])
d = tempfile.mkdtemp()
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    for _ in range(3):
        s.run(train)
    print(s.run([v, w, ema.average(v), ema.average(w)]))
    s.run(m2)
    print(s.run(ema2.average(loss)))
    p = tf.train.Saver().save(s, os.path.join(d, "m"))
    tf.train.Saver(ema.variables_to_restore()).restore(s, p)
    print(s.run([v, w]))
print(len(tf.moving_average_variables()))
