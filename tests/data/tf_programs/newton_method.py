import tensorflow as tf

x = tf.Variable([1.5, -0.5])


def rosen(v):
    return (1 - v[0]) ** 2 + 100 * (v[1] - v[0] ** 2) ** 2


history = []
for step in range(8):
    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            loss = rosen(x)
        g = t1.gradient(loss, x)
    h = t2.jacobian(g, x)
    update = tf.linalg.solve(h, tf.expand_dims(g, 1))
    x.assign_sub(tf.reshape(update, [2]))
    history.append(round(float(loss), 3))
RESULT = {"x": x, "history": history}
