import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

import os
import tempfile

folder = tempfile.mkdtemp()
x = tf.constant([[1.0, 2.0]])
with tf.variable_scope("net"):
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer(), regularizer=lambda v: 0.1 * tf.nn.l2_loss(v))
y = tf.matmul(x, w)
penalty = tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
loss = tf.reduce_sum(tf.square(y - 1.0)) + penalty
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.02).minimize(loss, global_step=step)
ema = tf.train.ExponentialMovingAverage(0.9, step)
with tf.control_dependencies([train]):
    train_and_average = ema.apply(tf.trainable_variables())
print([v.op.name for v in tf.moving_average_variables()])
saver = tf.train.Saver(max_to_keep=2)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for k in range(6):
        sess.run(train_and_average)
        if k % 2:
            path = saver.save(sess, os.path.join(folder, "model"), global_step=step)
            print(os.path.basename(path))
    print(sess.run([w, ema.average(w), loss]))
print([os.path.basename(p) for p in saver.last_checkpoints])
print(os.path.basename(tf.train.latest_checkpoint(folder)))
print(sorted(set(ema.variables_to_restore()) - {"GradientDescent/iterations"}))
with tf.Session() as sess:
    tf.train.Saver(ema.variables_to_restore()).restore(sess, tf.train.latest_checkpoint(folder))
    print("with averages", sess.run([w, y, step]))
with tf.Session() as sess:
    saver.restore(sess, saver.last_checkpoints[0])
    print("earlier", sess.run([w, step]))
reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(folder))
print(reader.get_variable_to_shape_map()["net/w"], reader.get_tensor("global_step"))
