"""map_fn, scan and fold over rows."""

import numpy as np

import hybridflow.compat.v1 as tf

elems = tf.constant([1.0, 2.0, 3.0, 4.0])
scale = tf.Variable(10.0)
squares = tf.map_fn(lambda e: e * e * scale, elems)
running = tf.scan(lambda a, e: a + e, elems)
begun = tf.scan(lambda a, e: a * e, elems, initializer=tf.constant(1.0))
total = tf.foldl(lambda a, e: a + e, elems)
backwards = tf.foldr(lambda a, e: a * 10 + e, elems)
pairs = tf.map_fn(lambda t: (t[0] + t[1], t[0] - t[1]), (elems, elems), dtype=(tf.float32, tf.float32))
with tf.Session() as sess:
    sess.run(scale.initializer)
    np.testing.assert_array_equal(sess.run(squares), [10, 40, 90, 160])
    np.testing.assert_array_equal(sess.run(running), [1, 3, 6, 10])
    np.testing.assert_array_equal(sess.run(begun), [1, 2, 6, 24])
    assert sess.run([total, backwards]) == [10, 4321]
    np.testing.assert_array_equal(sess.run(pairs), [[2, 4, 6, 8], [0, 0, 0, 0]])
    np.testing.assert_array_equal(sess.run(tf.gradients(squares, elems)[0]), [20, 40, 60, 80])
