import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import os, tempfile

d = tempfile.mkdtemp()
v1 = tf.get_variable("v1", shape=[3], initializer=tf.zeros_initializer)
v2 = tf.get_variable("v2", shape=[5], initializer=tf.zeros_initializer)
inc_v1 = v1.assign(v1 + 1)
dec_v2 = v2.assign(v2 - 1)
global_step = tf.train.get_or_create_global_step()
step = tf.assign_add(global_step, 1)
init_op = tf.global_variables_initializer()
saver = tf.train.Saver(max_to_keep=2)
with tf.Session() as sess:
    sess.run(init_op)
    inc_v1.op.run()
    dec_v2.op.run()
    for i in range(4):
        sess.run([inc_v1, step])
        save_path = saver.save(sess, os.path.join(d, "model.ckpt"), global_step=global_step)
        print(os.path.basename(save_path))
print(os.path.basename(tf.train.latest_checkpoint(d)), [os.path.basename(p) for p in saver.last_checkpoints])
ckpt = tf.train.get_checkpoint_state(d)
print(os.path.basename(ckpt.model_checkpoint_path), [os.path.basename(p) for p in ckpt.all_model_checkpoint_paths])
print(
    tf.train.checkpoint_exists(os.path.join(d, "model.ckpt-1")),
    tf.train.checkpoint_exists(os.path.join(d, "model.ckpt-4")),
)
print(sorted(tf.train.list_variables(d)))
tf.reset_default_graph()
v1 = tf.get_variable("v1", shape=[3])
v2 = tf.get_variable("v2", [5], initializer=tf.zeros_initializer)
saver = tf.train.Saver({"v1": v1})
with tf.Session() as sess:
    v2.initializer.run()
    saver.restore(sess, tf.train.latest_checkpoint(d))
    print("v1 : %s" % v1.eval(), "v2 : %s" % v2.eval())
tf.reset_default_graph()
other = tf.get_variable("other", shape=[5])
saver = tf.train.Saver({"v2": other})
with tf.Session() as sess:
    saver.restore(sess, os.path.join(d, "model.ckpt-3"))
    print(other.eval())
    try:
        saver.restore(sess, os.path.join(d, "nothing"))
    except ValueError as e:
        print("ValueError", str(e)[:30])
tf.reset_default_graph()
w = tf.get_variable("w_missing", [2])
with tf.Session() as sess:
    try:
        tf.train.Saver().restore(sess, tf.train.latest_checkpoint(d))
    except tf.errors.NotFoundError as e:
        print("NotFoundError")
r = tf.train.load_checkpoint(d)
print(r.get_tensor("v1"), r.has_tensor("v9"), sorted(r.get_variable_to_shape_map().items()))
r = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(d))
print(r.get_tensor("v2"), tf.train.load_variable(d, "global_step"))
