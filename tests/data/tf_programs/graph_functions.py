import tensorflow as tf

counter = tf.Variable(0)


@tf.function(jit_compile=True, autograph=True, reduce_retracing=True)
def step(x, factor=2.0):
    counter.assign_add(1)
    return tf.reduce_sum(x * factor)


@tf.function(input_signature=[tf.TensorSpec(shape=[None, 2], dtype=tf.float32)])
def rows(x):
    return tf.shape(x)[0], tf.reshape(x, [-1]), tf.reduce_sum(x, axis=0) / tf.cast(tf.shape(x)[0], tf.float32)


plain = tf.function(lambda x: x + 1)
RESULT = {
    "steps": [step(tf.ones([3])), step(tf.ones([2, 2]), factor=0.5)],
    "counter": counter,
    "rows": rows(tf.ones([3, 2])),
    "more": rows(tf.reshape(tf.range(8.0), [4, 2])),
    "plain": plain(tf.constant(4)),
    "concrete": step.get_concrete_function(tf.TensorSpec([4]))(tf.ones([4])),
    "python": step.python_function is not None,
}
