import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np, threading

q = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[2], []], names=None)
enq = q.enqueue([[1.0, 2.0], 3])
many = q.enqueue_many([np.arange(6, dtype=np.float32).reshape(3, 2), [7, 8, 9]])
deq = q.dequeue()
dm = q.dequeue_many(2)
size = q.size()
with tf.Session() as s:
    s.run(enq)
    s.run(many)
    print(s.run(size))
    print(s.run(deq))
    print(s.run(dm))
    print(s.run(size))
    s.run(q.close())
    try:
        s.run(dm)
    except tf.errors.OutOfRangeError:
        print("out of range")
tf.reset_default_graph()
queue = tf.RandomShuffleQueue(capacity=100, min_after_dequeue=0, dtypes=tf.int32, shapes=[[]], seed=1)
counter = tf.Variable(0)
inc = tf.assign_add(counter, 1)
enqueue = queue.enqueue(inc)
qr = tf.train.QueueRunner(queue, [enqueue])
got = queue.dequeue_many(5)
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    coord = tf.train.Coordinator()
    threads = qr.create_threads(s, coord=coord, start=True)
    seen = []
    for _ in range(4):
        if coord.should_stop():
            break
        seen += s.run(got).tolist()
    coord.request_stop()
    coord.join(threads, stop_grace_period_secs=5)
    print(len(seen), coord.should_stop())
tf.reset_default_graph()
coord = tf.train.Coordinator()


def loop(coord, k):
    n = 0
    while not coord.should_stop():
        n += 1
        if n > 3 and k == 1:
            coord.request_stop()
        coord.wait_for_stop(0.001)


ts = [threading.Thread(target=loop, args=(coord, k)) for k in range(3)]
for t in ts:
    t.start()
coord.join(ts)
print("joined")
pq = tf.PriorityQueue(10, tf.string, ())
pe = [pq.enqueue((tf.constant(k, tf.int64), tf.constant(t))) for k, t in [(3, "c"), (1, "a"), (2, "b")]]
pd = pq.dequeue()
pad = tf.PaddingFIFOQueue(10, tf.int32, shapes=[[None]])
with tf.Session() as s:
    for e in pe:
        s.run(e)
    print([s.run(pd) for _ in range(3)])
    s.run(pad.enqueue([[1, 2]]))
    s.run(pad.enqueue([[3]]))
    print(s.run(pad.dequeue_many(2)))
