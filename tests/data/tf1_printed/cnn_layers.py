import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

rng = np.random.RandomState(0)


def cnn_model_fn(features, labels, training):
    input_layer = tf.reshape(features, [-1, 8, 8, 1])
    conv1 = tf.layers.conv2d(inputs=input_layer, filters=4, kernel_size=[3, 3], padding="same", activation=tf.nn.relu)
    pool1 = tf.layers.max_pooling2d(inputs=conv1, pool_size=[2, 2], strides=2)
    conv2 = tf.layers.conv2d(
        inputs=pool1,
        filters=6,
        kernel_size=[3, 3],
        padding="same",
        activation=tf.nn.relu,
        name="second",
        use_bias=False,
    )
    bn = tf.layers.batch_normalization(conv2, training=training)
    pool2 = tf.layers.average_pooling2d(inputs=bn, pool_size=[2, 2], strides=2)
    pool2_flat = tf.layers.flatten(pool2)
    dense = tf.layers.dense(
        inputs=pool2_flat, units=16, activation=tf.nn.relu, kernel_regularizer=lambda w: 0.01 * tf.nn.l2_loss(w)
    )
    dropout = tf.layers.dropout(inputs=dense, rate=0.4, training=training)
    logits = tf.layers.dense(inputs=dropout, units=10, name="logits", kernel_initializer=tf.zeros_initializer())
    return logits


x = tf.placeholder(tf.float32, [None, 64])
y = tf.placeholder(tf.int32, [None])
training = tf.placeholder_with_default(False, [], name="training")
logits = cnn_model_fn(x, y, training)
onehot = tf.one_hot(indices=tf.cast(y, tf.int32), depth=10)
loss = tf.losses.softmax_cross_entropy(onehot_labels=onehot, logits=logits) + tf.losses.get_regularization_loss() * 0
update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
with tf.control_dependencies(update_ops):
    train_op = tf.train.GradientDescentOptimizer(learning_rate=0.1).minimize(
        loss=loss, global_step=tf.train.get_or_create_global_step()
    )
for v in tf.global_variables():
    if "iterations" not in v.name:
        print(v.name, v.shape, v in tf.trainable_variables())
print(len(update_ops), logits.shape, len(tf.losses.get_losses()), len(tf.losses.get_regularization_losses()))
X = rng.rand(32, 64).astype(np.float32)
Y = rng.randint(0, 10, 32)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(loss, {x: X, y: Y}))
    for i in range(20):
        sess.run(train_op, {x: X, y: Y, training: True})
    print(sess.run(tf.train.get_global_step()))
    print(sess.run(loss, {x: X, y: Y}) < 2.3)
