import tensorflow as tf

x = tf.constant([0.1, 0.5, 0.9])
RESULT = {
    name: getattr(tf.math, name)(x)
    for name in (
        "abs acos asin atan cos cosh exp expm1 log log1p negative reciprocal rsqrt sigmoid sign sin sinh softplus "
        "softsign sqrt square tan tanh erf log_sigmoid"
    ).split()
}
RESULT |= {
    "atan2": tf.atan2(x, 0.5),
    "maximum": tf.maximum(x, 0.5),
    "squared_difference": tf.math.squared_difference(x, 1.0),
    "no_nan": tf.math.divide_no_nan([1.0, 2.0], [0.0, 4.0]),
    "multiply_no_nan": tf.math.multiply_no_nan([float("inf"), 2.0], [0.0, 4.0]),
    "xlogy": tf.math.xlogy([0.0, 2.0], [0.0, 3.0]),
    "xdivy": tf.math.xdivy([0.0, 2.0], [0.0, 4.0]),
    "add_n": tf.add_n([x, x, x]),
    "polyval": tf.math.polyval([2.0, 1.0, 3.0], x),
}
