import tensorflow as tf

x = tf.constant(3.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = x * x
    z = y * y
RESULT = {"dz": tape.gradient(z, x), "dy": tape.gradient(y, x), "dzdy": tape.gradient(z, y)}
del tape
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as inner:
        inner.watch(x)
        w = tf.sin(x) * x**3
    first = inner.gradient(w, x)
RESULT["first"], RESULT["second"] = first, outer.gradient(first, x)
a, b = tf.Variable(2.0), tf.Variable(5.0)
with tf.GradientTape() as tape:
    c = a * a
    with tape.stop_recording():
        d = a * b
    e = c + d
RESULT["stopped"] = tape.gradient(e, {"a": a, "b": b}, unconnected_gradients=tf.UnconnectedGradients.ZERO)
