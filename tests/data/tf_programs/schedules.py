import tensorflow as tf

S = tf.keras.optimizers.schedules
RESULT = {
    name: [float(schedule(step)) for step in (0, 5, 10, 25)]
    for name, schedule in {
        "exponential": S.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5),
        "staircase": S.ExponentialDecay(0.1, 10, 0.5, staircase=True),
        "piecewise": S.PiecewiseConstantDecay([4, 12], [1.0, 0.5, 0.1]),
        "polynomial": S.PolynomialDecay(0.1, 20, 0.01, power=2.0),
        "inverse": S.InverseTimeDecay(0.1, 10, 0.5),
        "cosine": S.CosineDecay(0.1, 20),
        "restarts": S.CosineDecayRestarts(0.1, 8),
    }.items()
}
optimizer = tf.keras.optimizers.SGD(S.ExponentialDecay(1.0, 1, 0.5))
v = tf.Variable(0.0)
for _ in range(3):
    optimizer.apply_gradients([(tf.constant(1.0), v)])
RESULT["used"] = v
