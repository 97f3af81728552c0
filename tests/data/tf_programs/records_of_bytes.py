import os
import tempfile

import numpy as np
import tensorflow as tf

path = os.path.join(tempfile.mkdtemp(), "pictures.tfrecord")


def feature(value):
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


with tf.io.TFRecordWriter(path) as writer:
    for k in range(3):
        held = {
            "label": feature(k),
            "scores": feature([k, k + 0.5]),
            "raw": feature((np.arange(4, dtype=np.uint8) + k).tobytes()),
            "name": feature(f"picture {k}".encode()),
        }
        writer.write(tf.train.Example(features=tf.train.Features(feature=held)).SerializeToString())

description = {
    "label": tf.io.FixedLenFeature([], tf.int64),
    "scores": tf.io.FixedLenFeature([2], tf.float32),
    "raw": tf.io.FixedLenFeature([], tf.string),
    "name": tf.io.FixedLenFeature((), tf.string, default_value=""),
}


def parsed(record):
    found = tf.io.parse_single_example(record, description)
    picture = tf.reshape(tf.io.decode_raw(found["raw"], tf.uint8), [2, 2])
    return tf.cast(picture, tf.float32) / 255.0, found["label"], found["scores"]


first = tf.io.parse_single_example(next(iter(tf.data.TFRecordDataset(path))), description)
files = tf.data.Dataset.list_files(os.path.join(os.path.dirname(path), "*.tfrecord"), shuffle=False)
RESULT = {
    "batches": [[part.numpy() for part in batch] for batch in tf.data.TFRecordDataset(path).map(parsed).batch(2)],
    "name": first["name"].numpy().decode(),
    "files": [os.path.basename(file.numpy().decode()) for file in files],
    "dtype": tf.string.name,
}
