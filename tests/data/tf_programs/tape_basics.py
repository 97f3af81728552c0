import tensorflow as tf

x = tf.Variable(3.0)
c = tf.constant(2.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(c)
    y = x**2 * c + tf.sin(c)
RESULT = {
    "x": tape.gradient(y, x),
    "both": tape.gradient(y, [x, c]),
    "mapped": tape.gradient(y, {"x": x, "c": c})["c"],
    "none": tape.gradient(y, tf.Variable(1.0)) is None,
    "zero": tape.gradient(y, tf.Variable([1.0, 1.0]), unconnected_gradients=tf.UnconnectedGradients.ZERO),
    "watched": len(tape.watched_variables()),
    "weighted": tape.gradient(y, x, output_gradients=tf.constant(10.0)),
}
