"""Threads fill a queue, training takes batches, the epochs end."""

import numpy as np

import hybridflow.compat.v1 as tf

images = np.arange(20, dtype=np.float32).reshape(10, 2)
labels = np.arange(10)
image, label = tf.train.slice_input_producer(
    [tf.constant(images), tf.constant(labels)], num_epochs=2, shuffle=True, seed=1
)
image_batch, label_batch = tf.train.batch([image, label], batch_size=4, capacity=8)
assert image_batch.shape.as_list() == [4, 2]
total = tf.Variable(0.0)
add = tf.assign_add(total, tf.reduce_sum(image_batch))
seen = []
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    try:
        while not coord.should_stop():
            rows, numbers, _ = sess.run([image_batch, label_batch, add])
            np.testing.assert_array_equal(rows, images[numbers])
            seen += numbers.tolist()
    except tf.errors.OutOfRangeError:
        pass
    finally:
        coord.request_stop()
        coord.join(threads)
    assert sorted(seen) == sorted(2 * list(range(10)))
    assert sess.run(total) == 2 * images.sum()
