"""The counting queue of TensorFlow's guide, and a closed one."""

import hybridflow.compat.v1 as tf

q = tf.FIFOQueue(3, "float")
init = q.enqueue_many(([0.0, 0.0, 0.0],))
x = q.dequeue()
y = x + 1
q_inc = q.enqueue([y])
with tf.Session() as sess:
    init.run()
    for _ in range(4):
        q_inc.run()
    assert sess.run(q.size()) == 3
    sess.run(q.close())
    assert [float(sess.run(x)) for _ in range(3)] == [1.0, 1.0, 2.0]
    for op, error in ((x, tf.errors.OutOfRangeError), (q_inc, tf.errors.OutOfRangeError)):
        try:
            sess.run(op)
        except error as caught:
            assert "is closed and has insufficient elements (requested 1, current size 0)" in str(caught)
        else:
            raise AssertionError("the queue was closed")
    pairs = tf.RandomShuffleQueue(10, 0, [tf.int32, tf.float32], shapes=[[], [2]], seed=1)
    sess.run(pairs.enqueue_many([[1, 2, 3], [[1, 1], [2, 2], [3, 3]]]))
    numbers, rows = sess.run(pairs.dequeue_many(3))
    assert sorted(numbers) == [1, 2, 3] and all(row.tolist() == [n, n] for n, row in zip(numbers, rows))
