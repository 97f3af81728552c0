import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import tempfile, os

d = tempfile.mkdtemp()
global_step = tf.train.get_or_create_global_step()
w = tf.get_variable("w", [], initializer=tf.constant_initializer(5.0))
loss = tf.square(w - 1.0)
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
tf.summary.scalar("loss", loss)


class LogHook(tf.train.SessionRunHook):
    def begin(self):
        self._step = -1
        print("begin")

    def after_create_session(self, session, coord):
        print("created")

    def before_run(self, run_context):
        self._step += 1
        return tf.train.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        if self._step % 3 == 0:
            print("step", self._step, "loss %.4f" % run_values.results)

    def end(self, session):
        print("end", session.run(global_step))


hooks = [
    tf.train.StopAtStepHook(last_step=8),
    tf.train.NanTensorHook(loss),
    LogHook(),
    tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=100),
]
with tf.train.MonitoredTrainingSession(
    checkpoint_dir=d, hooks=hooks, save_checkpoint_steps=4, save_summaries_steps=2, log_step_count_steps=None
) as mon_sess:
    while not mon_sess.should_stop():
        mon_sess.run(train_op)
print(os.path.basename(tf.train.latest_checkpoint(d)))
print(any((f.startswith("events") for f in os.listdir(d))))
tf.reset_default_graph()
global_step = tf.train.get_or_create_global_step()
w = tf.get_variable("w", [], initializer=tf.constant_initializer(5.0))
loss = tf.square(w - 1.0)
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
with tf.train.MonitoredTrainingSession(
    checkpoint_dir=d,
    hooks=[tf.train.StopAtStepHook(num_steps=2)],
    save_summaries_steps=None,
    save_summaries_secs=None,
    log_step_count_steps=None,
) as s:
    while not s.should_stop():
        _, l, g = s.run([train_op, loss, global_step])
        print("again %.5f" % l, g)
tf.reset_default_graph()
x = tf.placeholder(tf.float32, [])
y = tf.get_variable("y", [], initializer=tf.ones_initializer())
z = x * y
with tf.train.SingularMonitoredSession() as s:
    print(s.run(z, feed_dict={x: 3.0}), s.raw_session().run(y))
g = tf.get_default_graph()
print(g.finalized)
tf.reset_default_graph()
x = tf.Variable(0.0)
inc = tf.assign_add(x, 1.0)
with tf.train.MonitoredSession(session_creator=tf.train.ChiefSessionCreator(scaffold=tf.train.Scaffold())) as s:

    def step_fn(step_context):
        return step_context.session.run(inc)

    print(s.run_step_fn(step_fn))
