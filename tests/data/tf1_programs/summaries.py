"""Summaries are fetched: merged ones have all that was noted in the graph."""

import hybridflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [3])
with tf.name_scope("train"):
    tf.summary.scalar("loss", tf.reduce_sum(x))
tf.summary.histogram("values", x)
merged = tf.summary.merge_all()
step = tf.Variable(0)
with tf.Session() as sess:
    sess.run(step.initializer)
    for _ in range(2):
        found, _ = sess.run([merged, tf.assign_add(step, 1)], {x: [1, 2, 3]})
    assert [(v.kind, v.tag) for v in found.value] == [("scalar", "train/loss"), ("histogram", "values")]
    assert found.value[0].simple_value == 6 and found.value[1].array.tolist() == [1, 2, 3]
assert tf.summary.merge_all("nothing") is None and len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 2
