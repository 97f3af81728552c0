import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

train = tf.data.Dataset.from_tensor_slices((np.arange(6, dtype="f").reshape(3, 2), [0, 1, 2])).repeat().batch(2)
limit = tf.placeholder(tf.int64, [])
valid = (
    tf.data.Dataset.range(limit).map(lambda k: (tf.cast(tf.fill([2], k), tf.float32), tf.cast(k, tf.int32))).batch(2)
)
handle = tf.placeholder(tf.string, shape=[])
either = (
    tf.data.Iterator.from_string_handle(handle, train.output_types, train.output_shapes)
    if hasattr(train, "output_types")
    else tf.data.Iterator.from_string_handle(handle, tf.data.get_output_types(train), tf.data.get_output_shapes(train))
)
x, y = either.get_next()
total = tf.reduce_sum(x) + tf.cast(tf.reduce_sum(y), tf.float32)
one = tf.data.make_one_shot_iterator(train)
two = tf.data.make_initializable_iterator(valid)
swap = tf.data.Iterator.from_structure(tf.data.get_output_types(valid), tf.data.get_output_shapes(valid))
begin = swap.make_initializer(valid)
first, _ = swap.get_next()
with tf.Session() as sess:
    a, b = sess.run([one.string_handle(), two.string_handle()])
    for _ in range(3):
        print(sess.run([x, y, total], {handle: a}))
    for count in (3, 1):
        sess.run(two.initializer, {limit: count})
        while True:
            try:
                print(sess.run(total, {handle: b}))
            except tf.errors.OutOfRangeError:
                print("end of", count)
                break
    try:
        sess.run(first)
    except tf.errors.FailedPreconditionError:
        print("not begun")
    sess.run(begin, {limit: 2})
    print(sess.run(first))
pipeline = tf.data.Dataset.from_generator(lambda: iter([[1], [2, 3], [4, 5, 6]]), tf.int32, tf.TensorShape([None]))
padded = tf.data.make_one_shot_iterator(
    pipeline.filter(lambda r: tf.less(tf.size(r), 3)).map(lambda r: r * 10).padded_batch(2, [None])
).get_next()
with tf.Session() as sess:
    print(sess.run(padded))
