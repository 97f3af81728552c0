import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

import os
import tempfile

with tf.Session() as sess:
    print(sess.run(tf.decode_csv(['1,"a\nb"', '2,"c""d"'], [[0], ["x"]])))
    numbers = [1.5, 2e10, 1e-7]
    print(sess.run([tf.as_string(numbers, scientific=True), tf.as_string(1.5, shortest=True), tf.as_string(True)]))
    print(sess.run([tf.as_string(5, width=4, fill="0"), tf.as_string(5, width=4), tf.as_string(3.14159, precision=2)]))
    bad = [
        tf.decode_csv(['1,"ab'], [[0], [""]]),
        tf.string_to_number(["abc"]),
        tf.decode_raw(b"\x01\x00\x02", tf.int16),
    ]
    for wrong in bad:
        try:
            sess.run(wrong)
        except tf.errors.InvalidArgumentError:
            print("InvalidArgumentError")
    print(sess.run(tf.py_func(lambda x: None, [tf.constant("abc")], [])))
folder = tempfile.mkdtemp()
path = os.path.join(folder, "lines.txt")
with open(path, "w") as file:
    file.write("a\nb\nc\n")
reader = tf.TextLineReader()
_, lines = reader.read_up_to(tf.train.string_input_producer([path], num_epochs=1, shuffle=False), 2)
count = reader.num_records_produced()
with tf.Session() as sess:
    sess.run(tf.local_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    try:
        while True:
            print(sess.run(lines), sess.run(count))
    except tf.errors.OutOfRangeError:
        print("end")
    coord.request_stop()
    coord.join(threads)
