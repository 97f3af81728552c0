import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = tf.placeholder(tf.int32, [])
sure = tf.case([(x < 0, lambda: -1), (x > 5, lambda: 9)], default=lambda: 0, exclusive=True)
unsure = tf.case({x < 0: lambda: -1, x < 5: lambda: 9}, default=lambda: 0, exclusive=True)
with tf.Session() as sess:
    for value in (-3, 2, 8):
        print(sess.run(sure, {x: value}))
    print(sess.run(unsure, {x: 3}), sess.run(unsure, {x: 7}))
    try:
        sess.run(unsure, {x: -3})
    except tf.errors.InvalidArgumentError:
        print("several are true")
try:
    tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.concat([x, x], 0)), [0, tf.ones([1])])
except ValueError:
    print("another shape after a turn")
