import numpy as np
import tensorflow as tf


@tf.function
def sorted_twice(x):
    y = tf.numpy_function(lambda a: np.sort(a) * 2, [x], tf.float32)
    y.set_shape(x.shape)
    return y + 1


@tf.function
def total(x):
    y = tf.py_function(lambda t: t * t, [x], tf.float32)
    return tf.reduce_sum(tf.ensure_shape(y, [3]) * [1.0, 2.0, 3.0])


@tf.function
def column(x):
    return tf.reshape(tf.py_function(lambda t: t * 3, [x], Tout=tf.float32), [3, 1]) @ [[1.0, 2.0]]


@tf.function
def several(x):
    a, b = tf.numpy_function(lambda x: (x * 2, np.int64(len(x))), [x], [tf.float32, tf.int64])
    a.set_shape([3])
    a = a + 1
    b.set_shape([])
    return a, b


@tf.function(input_signature=[tf.TensorSpec([None, 2])])
def of_any_rows(x):
    y = tf.numpy_function(lambda a: a[:, ::-1].copy(), [x], tf.float32)
    y.set_shape(x.shape)
    return tf.reduce_mean(y, 0) + y[0]


def load(i):
    return np.full((4, 4, 3), i, np.float32), np.int64(i % 2)


def loaded(i):
    image, label = tf.numpy_function(load, [i], [tf.float32, tf.int64])
    image.set_shape([4, 4, 3])
    label.set_shape([])
    return image, label


def brightened(image, label):
    shape = image.shape
    [image] = tf.py_function(lambda a: a * 2, [image], [tf.float32])
    image.set_shape(shape)
    return image, label


def unshaped(i):
    y = tf.py_function(lambda k: tf.range(k), [i], tf.int64)
    return y + 1, tf.shape(y)


x = tf.constant([3.0, 1.0, 2.0])
with tf.GradientTape() as tape:
    tape.watch(x)
    value = total(x)
pictures = tf.data.Dataset.range(6).map(loaded).batch(2).map(brightened, num_parallel_calls=tf.data.AUTOTUNE)
RESULT = {
    "sorted": sorted_twice(x),
    "total": value,
    "gradient": tape.gradient(value, x),
    "column": column(x),
    "several": several(x),
    "rows": [of_any_rows(tf.reshape(tf.range(2.0 * n), [n, 2])) for n in (1, 3, 5)],
    "pictures": [(tf.reduce_sum(images), labels) for images, labels in pictures],
    "unshaped": list(tf.data.Dataset.range(4).map(unshaped)),
}
