import os
import tempfile

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.enable_resource_variables()
penalty = tf.keras.regularizers.l2(0.1)
steps = tf.train.get_or_create_global_step()
with tf.variable_scope("net", regularizer=penalty, constraint=lambda w: tf.minimum(w, 2.5)):
    w = tf.get_variable("w", initializer=[3.0, 1.0])
with tf.variable_scope("other"):
    v = tf.get_variable("v", initializer=[1.0, -1.0], regularizer=tf.keras.regularizers.L1L2(0.1, 0.2))
print(len(tf.losses.get_regularization_losses()))
total = tf.reduce_sum(tf.square(w), keepdims=True, name="total")
print(total.op.get_attr("keep_dims"), tf.reduce_max(w).op.get_attr("keep_dims"))
loss = tf.reduce_sum(total) + tf.losses.get_regularization_loss()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=steps)
with tempfile.TemporaryDirectory() as folder:
    place = os.path.join(folder, "not", "there", "yet")
    hooks = [tf.train.StopAtStepHook(last_step=3)]
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=place,
        hooks=hooks,
        save_checkpoint_steps=2,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
        save_graph_def=False,
    ) as sess:
        while not sess.should_stop():
            print([round(float(n), 4) for n in sess.run([loss, train])[:1]])
    print(tf.train.latest_checkpoint(place).endswith("model.ckpt-3"))
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(checkpoint_dir=place)) as sess:
        print([round(float(n), 4) for n in [*sess.run(w), *sess.run(v)]], sess.run(steps))
