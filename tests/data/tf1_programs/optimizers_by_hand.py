"""Each optimizer's first steps against its formula in NumPy."""

import numpy as np

import hybridflow.compat.v1 as tf


def adam(w, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * g * g
    return w - 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * s["m"] / (np.sqrt(s["v"]) + 1e-8)


def momentum(w, g, s, t):
    s["a"] = 0.9 * s.get("a", 0) + g
    return w - 0.1 * s["a"]


def adagrad(w, g, s, t):
    s["a"] = s.get("a", 0.1) + g * g
    return w - 0.1 * g / np.sqrt(s["a"])


def rmsprop(w, g, s, t):
    s["r"] = 0.9 * s.get("r", 1.0) + 0.1 * g * g
    return w - 0.1 * g / np.sqrt(s["r"] + 1e-10)


def adadelta(w, g, s, t):
    s["a"] = 0.95 * s.get("a", 0) + 0.05 * g * g
    step = np.sqrt(s.get("u", 0) + 1e-8) / np.sqrt(s["a"] + 1e-8) * g
    s["u"] = 0.95 * s.get("u", 0) + 0.05 * step * step
    return w - 0.1 * step


def ftrl(w, g, s, t):
    old = s.get("a", 0.1)
    s["a"] = old + g * g
    s["l"] = s.get("l", 0) + g - (np.sqrt(s["a"]) - np.sqrt(old)) / 0.1 * w
    return -s["l"] / (np.sqrt(s["a"]) / 0.1)


start = np.array([1.0, -2.0])
cases = {
    "descent": (tf.train.GradientDescentOptimizer(0.1), lambda w, g, s, t: w - 0.1 * g),
    "momentum": (tf.train.MomentumOptimizer(0.1, 0.9), momentum),
    "adam": (tf.train.AdamOptimizer(learning_rate=0.1), adam),
    "adagrad": (tf.train.AdagradOptimizer(0.1), adagrad),
    "rmsprop": (tf.train.RMSPropOptimizer(0.1), rmsprop),
    "adadelta": (tf.train.AdadeltaOptimizer(0.1), adadelta),
    "ftrl": (tf.train.FtrlOptimizer(0.1), ftrl),
}
weights, steps = {}, []
for name in cases:
    weights[name] = w = tf.Variable(start.astype(np.float32), name=name)
    steps.append(cases[name][0].minimize(tf.reduce_sum(w * w * w), var_list=[w]))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(3):
        sess.run(steps)
    for name, (_, rule) in cases.items():
        w, state = start, {}
        for t in (1, 2, 3):
            w = rule(w, 3 * w * w, state, t)
        np.testing.assert_allclose(sess.run(weights[name]), w, rtol=2e-5, err_msg=name)
assert (
    cases["adam"][0].get_slot_names() and cases["adam"][0].get_slot(weights["adam"], "momentum").name == "adam/Adam:0"
)
