import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import tempfile, os, numpy as np

d = tempfile.mkdtemp()
x = tf.placeholder(tf.float32, [None, 3], name="x")
W = tf.Variable(tf.ones([3, 2]), name="W")


def variable_summaries(var):
    with tf.name_scope("summaries"):
        mean = tf.reduce_mean(var)
        tf.summary.scalar("mean", mean)
        with tf.name_scope("stddev"):
            stddev = tf.sqrt(tf.reduce_mean(tf.square(var - mean)))
        tf.summary.scalar("stddev", stddev)
        tf.summary.scalar("max", tf.reduce_max(var))
        tf.summary.histogram("histogram", var)


with tf.name_scope("layer"):
    variable_summaries(W)
y = tf.matmul(x, W)
tf.summary.image("input", tf.reshape(x, [-1, 1, 3, 1]), 2)
tf.summary.text("note", tf.constant("hello"))
merged = tf.summary.merge_all()
writer = tf.summary.FileWriter(d + "/train", tf.get_default_graph())
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(3):
        s, o = sess.run([merged, y], {x: np.ones((2, 3)) * i})
        writer.add_summary(s, i)
    ro = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    rm = tf.RunMetadata()
    summary, _ = sess.run([merged, y], {x: np.ones((2, 3))}, options=ro, run_metadata=rm)
    writer.add_summary(summary, 4)
    manual = tf.Summary(value=[tf.Summary.Value(tag="accuracy", simple_value=0.75)])
    writer.add_summary(manual, 5)
    man = tf.Summary()
    man.value.add(tag="other", simple_value=1.5)
    writer.add_summary(man, global_step=6)
    writer.flush()
    writer.close()
files = os.listdir(d + "/train")
print(len(files), files[0].startswith("events.out.tfevents"))
tags = []
for e in tf.train.summary_iterator(os.path.join(d + "/train", files[0])):
    for v in e.summary.value:
        tags.append((e.step, v.tag))
print(tags)
print(len(tf.get_collection(tf.GraphKeys.SUMMARIES)))
