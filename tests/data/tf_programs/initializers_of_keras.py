import tensorflow as tf

I = tf.keras.initializers
shape = (200, 100)
limit = (6 / 300) ** 0.5
glorot = I.GlorotUniform(seed=1)(shape)
normal = I.HeNormal(seed=2)(shape)
orthogonal = I.Orthogonal()((4, 4))
RESULT = {
    "zeros": I.Zeros()((2,)),
    "ones": I.get("ones")((2, 2)),
    "constant": I.Constant(3.0)((2,)),
    "glorot": bool(tf.reduce_max(tf.abs(glorot)) <= limit),
    "he": abs(float(tf.math.reduce_std(normal)) - (2 / 200) ** 0.5) < 0.005,
    "orthogonal": tf.round(orthogonal @ tf.transpose(orthogonal)),
    "identity": I.Identity()((2, 2)),
    "range": bool(tf.reduce_all(tf.abs(I.RandomUniform(-0.5, 0.5)((50,))) <= 0.5)),
    "top": tf.zeros_initializer()((2,)),
    "lower": tf.initializers.ones()((2,)),
}
