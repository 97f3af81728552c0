import tensorflow as tf

x = tf.constant([-3.0, -1.0, 0.0, 0.5, 4.0, 7.0])
RESULT = {
    name: getattr(tf.nn, name)(x) for name in "relu relu6 elu selu gelu silu swish softplus softsign tanh".split()
}
RESULT |= {name: getattr(tf.keras.activations, name)(x) for name in "exponential linear sigmoid hard_sigmoid".split()}
RESULT |= {
    "leaky": tf.nn.leaky_relu(x),
    "leaky_alpha": tf.nn.leaky_relu(x, alpha=0.1),
    "gelu_approximate": tf.nn.gelu(x, approximate=True),
    "keras_relu": tf.keras.activations.relu(x, negative_slope=0.5, max_value=3.0),
    "keras_softmax": tf.keras.activations.softmax(x[None]),
    "by_name": tf.keras.activations.get("tanh")(x),
    "crelu": tf.nn.crelu(x),
}
