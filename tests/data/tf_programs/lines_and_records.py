import os
import tempfile

import tensorflow as tf

RESULT = {}
with tempfile.TemporaryDirectory() as folder:
    table = os.path.join(folder, "some.csv")
    with open(table, "w") as file:
        file.write("age,fare,survived\n22.0,7.25,0\n,71.5,1\n")
    lines = tf.data.TextLineDataset(table)
    RESULT["lines"] = [line.numpy().decode() for line in lines]
    kinds = [tf.float32, tf.float64, tf.int32]
    rows = tf.data.experimental.CsvDataset(table, [[-1.0], *kinds[1:]], header=True)
    RESULT["rows"] = [[(value.numpy(), value.dtype.name) for value in row] for row in rows]
    named = tf.data.experimental.CsvDataset(table, kinds[1:], header=True, select_cols=[1, 2])
    RESULT["named"] = [[(value.numpy(), value.dtype.name) for value in row] for row in named]
    parsed = lines.skip(1).map(lambda line: tf.io.decode_csv(line, [[-1.0], [0.0], [0]]))
    RESULT["parsed"] = [[(value.numpy(), value.dtype.name) for value in row] for row in parsed]
    columns = next(iter(lines.skip(1).batch(2).map(lambda batch: tf.io.decode_csv(batch, [[-1.0], [0.0], [0]]))))
    RESULT["columns"] = [list(column.numpy()) for column in columns]
    path = os.path.join(folder, "some.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(2):
            feature = {"n": tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    RESULT["numbers"] = []
    for record in tf.data.TFRecordDataset([path]):
        example = tf.train.Example()
        example.ParseFromString(record.numpy())
        RESULT["numbers"].append(list(example.features.feature["n"].int64_list.value))
program = tf.function(lambda x: {"y": 2 * x}).get_concrete_function(tf.TensorSpec([None, 3]))
RESULT["spec"] = [list(program.structured_outputs["y"].shape), len(program.structured_input_signature[0])]
