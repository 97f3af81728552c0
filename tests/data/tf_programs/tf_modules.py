import tensorflow as tf


class Dense(tf.Module):
    def __init__(self, out_features, name=None):
        super().__init__(name=name)
        self.built, self.n = False, out_features

    @tf.Module.with_name_scope
    def __call__(self, x):
        if not self.built:
            self.w = tf.Variable(tf.ones([x.shape[-1], self.n]), name="w")
            self.b = tf.Variable(tf.zeros([self.n]), name="b")
            self.built = True
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)


class MLP(tf.Module):
    def __init__(self, sizes, name=None):
        super().__init__(name=name)
        self.layers = [Dense(s) for s in sizes]
        self.scale = tf.Variable(0.5, trainable=False)

    @tf.function
    def __call__(self, x):
        for l in self.layers:
            x = l(x)
        return x * self.scale


m = MLP([3, 2], name="mlp")
out = m(tf.constant([[1.0, 2.0]]))
RESULT = {"out": out, "t": len(m.trainable_variables), "v": len(m.variables), "s": len(m.submodules), "name": m.name}
grads = None
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(m(tf.ones([1, 2])))
g = tape.gradient(loss, m.trainable_variables)
for v, d in zip(m.trainable_variables, g):
    v.assign_sub(0.01 * d)
RESULT["after"] = m(tf.constant([[1.0, 2.0]]))
