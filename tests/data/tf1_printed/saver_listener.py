import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

import tempfile


class Listener(tf.train.CheckpointSaverListener):
    def begin(self):
        print("begin")

    def before_save(self, session, global_step_value):
        print("before", global_step_value)

    def after_save(self, session, global_step_value):
        print("after", global_step_value)
        return global_step_value >= 4

    def end(self, session, global_step_value):
        print("end", global_step_value)


step = tf.train.create_global_step()
count = step.assign_add(1)
saving = tf.train.CheckpointSaverHook(tempfile.mkdtemp(), save_steps=2, listeners=[Listener()])
with tf.train.MonitoredSession(hooks=[saving]) as sess:
    while not sess.should_stop():
        print(sess.run(count))
x = tf.placeholder(tf.float32, [])
y = tf.identity(x * 2, name="y")
last = tf.train.LoggingTensorHook([tf.constant(2.0)], at_end=True, formatter=lambda found: print(len(found)) or "")
with tf.train.MonitoredSession(hooks=[last]) as sess:
    for value in (1.0, 2.0):
        print(sess.run(y, {x: value}))
with tf.train.MonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {x: 4.0})]) as sess:
    print(sess.run(y))
    try:
        sess.run(y, {x: 1.0})
    except RuntimeError:
        print("fed twice")
with tf.train.MonitoredSession() as sess:
    print(sess.run_step_fn(lambda step_context: step_context.session.run(y, {x: 3.0})))
    try:
        sess.run_step_fn(lambda context: 1)
    except ValueError:
        print("another argument")
    sess.run_step_fn(lambda step_context: step_context.request_stop())
    print("is not reached")
print("over")
