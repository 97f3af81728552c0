import tensorflow as tf

s = tf.keras.optimizers.schedules


class Warmup(s.LearningRateSchedule):
    def __init__(self, d_model, warmup=10):
        super().__init__()
        self.d_model, self.warmup = tf.cast(d_model, tf.float32), warmup

    def __call__(self, step):
        step = tf.cast(step, dtype=tf.float32)
        return tf.math.rsqrt(self.d_model) * tf.math.minimum(tf.math.rsqrt(step), step * (self.warmup**-1.5))


every = {
    "exp": s.ExponentialDecay(0.1, 5, 0.5, staircase=True),
    "cos": s.CosineDecay(0.1, 20, alpha=0.1),
    "restart": s.CosineDecayRestarts(0.1, 5),
    "poly": s.PolynomialDecay(0.1, 10, 0.01, power=2.0),
    "inv": s.InverseTimeDecay(0.1, 3, 0.5),
    "pw": s.PiecewiseConstantDecay([3, 6], [1.0, 0.5, 0.1]),
    "warm": s.CosineDecay(0.0, 10, warmup_target=0.1, warmup_steps=4),
    "mine": Warmup(16),
}
RESULT = {k: [float(v(i)) for i in (1, 4, 7, 15)] for k, v in every.items()}
v = tf.Variable(1.0)
opt = tf.keras.optimizers.SGD(every["exp"])
vals = []
for _ in range(7):
    opt.apply_gradients([(tf.constant(1.0), v)])
    vals.append(v.numpy())
RESULT["v"] = vals
RESULT["lr"] = float(opt.learning_rate)
