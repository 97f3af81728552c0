import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import os, tempfile

d = tempfile.mkdtemp()
fn = os.path.join(d, "a.tfrecords")


def _int(v):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[v]))


def _bytes(v):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[v]))


w = tf.python_io.TFRecordWriter(fn)
for i in range(5):
    e = tf.train.Example(
        features=tf.train.Features(
            feature={
                "label": _int(i),
                "raw": _bytes(bytes([i, i + 1])),
                "w": tf.train.Feature(float_list=tf.train.FloatList(value=[i, 0.5])),
            }
        )
    )
    w.write(e.SerializeToString())
w.close()
for r in tf.python_io.tf_record_iterator(fn):
    ex = tf.train.Example.FromString(r)
    print(ex.features.feature["label"].int64_list.value[0])
    break


def parse(serialized):
    f = tf.parse_single_example(
        serialized,
        features={
            "label": tf.FixedLenFeature([], tf.int64),
            "raw": tf.FixedLenFeature([], tf.string),
            "w": tf.FixedLenFeature([2], tf.float32),
        },
    )
    img = tf.decode_raw(f["raw"], tf.uint8)
    img.set_shape([2])
    return (tf.cast(img, tf.float32) * (1.0 / 255) - 0.5, tf.cast(f["label"], tf.int32), f["w"])


q = tf.train.string_input_producer([fn], num_epochs=1)
reader = tf.TFRecordReader()
_, ser = reader.read(q)
img, lab, ww = parse(ser)
imgs, labs, ws = tf.train.shuffle_batch(
    [img, lab, ww], batch_size=5, capacity=50, min_after_dequeue=5, num_threads=1, allow_smaller_final_batch=True
)
with tf.Session() as sess:
    sess.run(tf.group(tf.global_variables_initializer(), tf.local_variables_initializer()))
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    a, b, c = sess.run([imgs, labs, ws])
    print(sorted(b.tolist()), a.shape, sorted(c[:, 0].tolist()))
    coord.request_stop()
    coord.join(threads)
ds = tf.data.TFRecordDataset(fn).map(parse).batch(2)
it = ds.make_one_shot_iterator() if hasattr(ds, "make_one_shot_iterator") else tf.data.make_one_shot_iterator(ds)
n = it.get_next()
with tf.Session() as sess:
    print(sess.run(n))
    print(sess.run(n[1]))
