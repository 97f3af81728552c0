import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import os, tempfile

d = tempfile.mkdtemp()
for k in range(2):
    with open(os.path.join(d, "f%d.csv" % k), "w") as f:
        for r in range(3):
            f.write("%d,%d.5,%d\n" % (k * 10 + r, r, r % 2))
filename_queue = tf.train.string_input_producer(
    [os.path.join(d, "f%d.csv" % k) for k in range(2)], num_epochs=2, shuffle=False
)
reader = tf.TextLineReader()
key, value = reader.read(filename_queue)
c1, c2, c3 = tf.decode_csv(value, record_defaults=[[0], [0.0], [0]])
features = tf.stack([tf.to_float(c1), c2])
ex, lab = tf.train.batch([features, c3], batch_size=4, capacity=32)
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(coord=coord)
    try:
        while not coord.should_stop():
            a, b = sess.run([ex, lab])
            print(a.tolist(), b.tolist())
    except tf.errors.OutOfRangeError:
        print("Done")
    finally:
        coord.request_stop()
    coord.join(threads)
