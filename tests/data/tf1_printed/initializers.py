import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

tf.set_random_seed(1)
a = tf.get_variable("a", [2, 3], initializer=tf.constant_initializer([1, 2, 3, 4, 5, 6]))
b = tf.get_variable("b", initializer=tf.constant([1.5, 2.5]))
c = tf.get_variable("c", [1000], initializer=tf.random_normal_initializer(mean=1.0, stddev=0.5))
d = tf.get_variable("d", [1000], initializer=tf.truncated_normal_initializer(stddev=0.1))
e = tf.get_variable("e", [1000], initializer=tf.random_uniform_initializer(-2, 2))
f = tf.get_variable("f", [100, 100], initializer=tf.glorot_uniform_initializer())
g = tf.get_variable("g", [3, 3], initializer=tf.orthogonal_initializer())
h = tf.get_variable("h", [2], dtype=tf.int32, initializer=tf.ones_initializer())
i = tf.get_variable("i", [4, 4], initializer=tf.initializers.identity())
j = tf.get_variable("j", [100, 50], initializer=tf.variance_scaling_initializer(scale=2.0, mode="fan_in"))
k = tf.get_variable("k", [100, 50], initializer=tf.initializers.he_normal())
l = tf.get_variable("l", [50, 50], initializer=tf.keras.initializers.glorot_normal())
m = tf.get_variable("m", [6, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(3))
n = tf.Variable(tf.random_normal([3], seed=2), trainable=False, dtype=tf.float32, validate_shape=False, name="n")
o = tf.get_variable("o", shape=(), initializer=tf.zeros_initializer(), collections=["local_things"])
p = tf.Variable(a.initialized_value() * 2, name="p")
print(m.get_shape())
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    s.run(tf.variables_initializer(tf.get_collection("local_things")))
    print(s.run([a, b, h, i, p]))
    C, D, E, F, G, J, K, L = s.run([c, d, e, f, g, j, k, l])
    print(
        abs(C.mean() - 1) < 0.1,
        abs(C.std() - 0.5) < 0.05,
        abs(D).max() <= 0.2,
        E.min() >= -2,
        E.max() < 2,
        abs(F).max() <= np.sqrt(6 / 200) + 1e-06,
        np.allclose(G @ G.T, np.eye(3), atol=1e-05),
        abs(J.std() - np.sqrt(2 / 100)) < 0.01,
        abs(K.std() - np.sqrt(0.02)) < 0.01,
        abs(L.std() - np.sqrt(0.02)) < 0.01,
    )
    print(s.run(tf.convert_to_tensor(m)))
    print(s.run(tf.report_uninitialized_variables()))
    print(s.run(tf.is_variable_initialized(a)), o.eval())
