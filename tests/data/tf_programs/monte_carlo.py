import tensorflow as tf

tf.random.set_seed(0)


@tf.function(experimental_compile=True) if False else tf.function(jit_compile=True)
def price(s, k, t, r, sigma):
    z = tf.random.stateless_normal([20000], seed=[1, 2])
    paths = s * tf.exp((r - sigma**2 / 2) * t + sigma * tf.sqrt(t) * z)
    return tf.exp(-r * t) * tf.reduce_mean(tf.maximum(paths - k, 0.0))


s = tf.Variable(100.0)
with tf.GradientTape() as tape:
    p = price(s, tf.constant(105.0), tf.constant(1.0), tf.constant(0.02), tf.constant(0.2))
RESULT = {"price": abs(float(p) - 6.70) < 0.5, "delta": abs(float(tape.gradient(p, s)) - 0.48) < 0.05}
