import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

named = tf.FIFOQueue(3, [tf.int32, tf.float32], shapes=[(), ()], names=["a", "b"])
put, taken = named.enqueue({"a": 1, "b": 2.0}), named.dequeue()
plain = tf.FIFOQueue(3, tf.int32, shapes=[()])
pad = tf.train.batch([tf.placeholder_with_default(np.arange(3), [None])], 2, dynamic_pad=True)
joined = tf.train.batch_join([[tf.constant(1), tf.constant(2.0)], [tf.constant(1), tf.constant(2.0)]], 3)
told = tf.train.shuffle_batch({"x": tf.constant([1, 2])}, 2, 10, 2)
with tf.Session() as sess:
    sess.run(put)
    print(sess.run(taken))
    print(sess.run(plain.is_closed()), sess.run(plain.dequeue_many(0)))
    sess.run(plain.enqueue_many([[1, 2, 3]]))
    sess.run(plain.close())
    print(sess.run(plain.is_closed()), sess.run(plain.size()), sess.run(plain.dequeue_up_to(5)))
    for again in (plain.enqueue(1), plain.dequeue()):
        try:
            sess.run(again)
        except (tf.errors.CancelledError, tf.errors.OutOfRangeError) as error:
            print(type(error).__name__)
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    print(sess.run(pad))
    print(sess.run(joined))
    print(sess.run(told))
    coord.request_stop()
    coord.join(threads)
    print(coord.joined)
for wrong in ([[1.0, 2.0, 3.0]], tf.constant([1, 2])):
    try:
        tf.FIFOQueue(3, tf.float32, shapes=[(2,)]).enqueue(wrong)
    except ValueError:
        print("no element of this queue")
try:
    named.enqueue({"a": 1, "c": 2.0})
except ValueError:
    print("other names")
