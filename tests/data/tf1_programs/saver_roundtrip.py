"""Saved, changed, restored; under other names; the newest of a folder; what is missing."""

import os
import tempfile

import hybridflow.compat.v1 as tf

folder = tempfile.mkdtemp()
v1 = tf.get_variable("v1", shape=[3], initializer=tf.zeros_initializer())
v2 = tf.get_variable("v2", shape=[5], initializer=tf.zeros_initializer())
saver = tf.train.Saver(max_to_keep=2)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run([v1.assign(v1 + 1), v2.assign(v2 - 1)])
    paths = [saver.save(sess, os.path.join(folder, "model.ckpt"), global_step=k) for k in (1, 2, 3)]
assert paths[-1].endswith("model.ckpt-3") and tf.train.latest_checkpoint(folder) == paths[-1]
assert saver.last_checkpoints == paths[1:] and not tf.train.checkpoint_exists(paths[0])
assert tf.train.get_checkpoint_state(folder).model_checkpoint_path == paths[-1]
with tf.Session() as sess:
    saver.restore(sess, tf.train.latest_checkpoint(folder))
    assert sess.run(v1).tolist() == [1, 1, 1] and sess.run(v2).tolist() == [-1] * 5
    assert not len(sess.run(tf.report_uninitialized_variables()))
other = tf.Graph()
with other.as_default(), tf.Session() as sess:
    renamed = tf.get_variable("mine", [3])
    tf.train.Saver({"v1": renamed}).restore(sess, paths[-1])
    assert sess.run(renamed).tolist() == [1, 1, 1]
    try:
        tf.train.Saver({"v3": renamed}).restore(sess, paths[-1])
    except tf.errors.NotFoundError as error:
        assert "v3" in str(error)
    else:
        raise AssertionError("it is not there")
