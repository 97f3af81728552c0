"""tf.layers: names of variables, static shapes, sharing, pooling, dropout in training only."""

import numpy as np

import hybridflow.compat.v1 as tf

images = tf.placeholder(tf.float32, [None, 8, 8, 3])
training = tf.placeholder_with_default(False, [])
conv = tf.layers.conv2d(images, 4, 3, padding="same", activation=tf.nn.relu, name="conv")
pool = tf.layers.max_pooling2d(conv, pool_size=2, strides=2)
again = tf.layers.conv2d(images, 4, 3, padding="same", activation=tf.nn.relu, name="conv", reuse=True)
up = tf.layers.conv2d_transpose(pool, 2, 3, strides=2, padding="same")
flat = tf.layers.flatten(pool)
dropped = tf.layers.dropout(flat, 0.5, training=training, seed=1)
logits = tf.layers.dense(dropped, 10)
deep = tf.layers.dense(images, 5)
assert [t.shape.as_list() for t in (conv, pool, up, flat, logits, deep)] == [
    [None, 8, 8, 4],
    [None, 4, 4, 4],
    [None, 8, 8, 2],
    [None, 64],
    [None, 10],
    [None, 8, 8, 5],
]
assert [v.name for v in tf.trainable_variables()][:2] == ["conv/kernel:0", "conv/bias:0"]
assert "conv2d_transpose/kernel:0" in [v.name for v in tf.global_variables()]
data = np.random.RandomState(0).rand(2, 8, 8, 3).astype(np.float32)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    a, b, f, d = sess.run([conv, again, flat, dropped], {images: data})
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(f, d)
    d = sess.run(dropped, {images: data, training: True})
    assert set(np.unique(d == 0)) == {False, True}
    np.testing.assert_allclose(d[d != 0], 2 * f[d != 0], rtol=1e-6)
    assert sess.run(up, {images: data}).shape == (2, 8, 8, 2)
