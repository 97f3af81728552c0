import tensorflow as tf

tf.random.set_seed(5)
a = tf.random.normal([1000], mean=2.0, stddev=0.5)
b = tf.random.uniform([1000], minval=-1, maxval=3)
c = tf.random.uniform([500], maxval=7, dtype=tf.int32)
d = tf.random.truncated_normal([1000])
tf.random.set_seed(5)
again = tf.random.normal([1000], mean=2.0, stddev=0.5)
shuffled = tf.random.shuffle(tf.range(20))
categories = tf.random.categorical(tf.math.log([[0.999, 0.001], [0.001, 0.999]]), 6)
g = tf.random.Generator.from_seed(1)
s1 = tf.random.stateless_uniform([3], seed=[1, 2])
s2 = tf.random.stateless_uniform([3], seed=[1, 2])
dropped = tf.nn.dropout(tf.ones([1000]), rate=0.4)
RESULT = {
    "same": bool(tf.reduce_all(a == again)),
    "mean": abs(float(tf.reduce_mean(a)) - 2.0) < 0.1,
    "range": [bool(tf.reduce_all((b >= -1) & (b < 3))), bool(tf.reduce_all((c >= 0) & (c < 7)))],
    "dtypes": [a.dtype.name, c.dtype.name, categories.dtype.name],
    "truncated": float(tf.reduce_max(tf.abs(d))) <= 2.0,
    "shuffled": tf.sort(shuffled),
    "categories": tf.shape(categories),
    "generator": tf.shape(g.normal([2, 3])),
    "stateless": bool(tf.reduce_all(s1 == s2)),
    "dropped": sorted({round(float(v), 4) for v in dropped.numpy()}),
}
