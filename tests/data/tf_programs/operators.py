import tensorflow as tf

a, b = tf.constant([1.0, -2.0]), tf.constant([4.0, 3.0])
p, q = tf.constant([True, False]), tf.constant([True, True])
RESULT = {
    "add": a + b,
    "sub": 1 - a,
    "mul": a * 2,
    "div": a / b,
    "floordiv": b // a,
    "mod": b % 3,
    "pow": b**2,
    "rpow": 2**a,
    "neg": -a,
    "abs": abs(a),
    "less": a < b,
    "equal": a == b,
    "different": a != 1.0,
    "and": p & q,
    "or": p | q,
    "xor": p ^ q,
    "not": ~p,
    "logical": tf.logical_and(p, tf.logical_not(q)),
}
