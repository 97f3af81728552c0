import tensorflow as tf

x = tf.Variable([1.0, 2.0])
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        y = tf.reduce_sum(x**3)
    first = inner.gradient(y, x)
second = outer.jacobian(first, x)
with tf.GradientTape() as tape:
    z = tf.stack([x[0] * x[1], x[0] + x[1]])
RESULT = {"first": first, "second": second, "jacobian": tape.jacobian(z, x)}
