import tensorflow as tf


@tf.function
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@tf.function
def total(n):
    found = tf.constant(0)
    for i in tf.range(n):
        if i % 3 == 0:
            continue
        found += i
    return found


@tf.function
def largest(x):
    best = x[0]
    for value in x:
        if value > best:
            best = value
    return best


@tf.function
def fizz(n):
    counts = tf.zeros([3], tf.int32)
    for i in tf.range(1, n + 1):
        if i % 15 == 0:
            counts = tf.tensor_scatter_nd_add(counts, [[0]], [1])
        elif i % 3 == 0:
            counts = tf.tensor_scatter_nd_add(counts, [[1]], [1])
        elif i % 5 == 0:
            counts = tf.tensor_scatter_nd_add(counts, [[2]], [1])
    return counts


RESULT = {
    "collatz": collatz(tf.constant(27)),
    "total": total(tf.constant(10)),
    "largest": largest(tf.constant([3.0, 8.0, 5.0])),
    "fizz": fizz(tf.constant(30)),
}
