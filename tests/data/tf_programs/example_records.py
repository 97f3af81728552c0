import os
import tempfile

import tensorflow as tf


def record(number):
    feature = {
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=[number / 2, 2.0])),
        "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"no %d" % number])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "some.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(4):
            writer.write(record(number))
    wanted = {"label": tf.io.FixedLenFeature([], tf.int64), "x": tf.io.FixedLenFeature(2, tf.float32)}
    parsed = tf.data.TFRecordDataset(path).map(lambda one: tf.io.parse_single_example(one, wanted))
    RESULT = {"parsed": [[one["label"].numpy(), one["x"].numpy()] for one in parsed]}

example = tf.train.Example.FromString(record(3))
feature = example.features.feature
RESULT["label"] = list(feature["label"].int64_list.value)
RESULT["x"] = list(feature["x"].float_list.value)
RESULT["name"] = feature["name"].bytes_list.value[0].decode()
RESULT["which"] = [feature[name].WhichOneof("kind") for name in ("label", "x", "name")]
again = tf.train.Example()
again.ParseFromString(example.SerializeToString())
RESULT["same"] = again.SerializeToString() == example.SerializeToString()
