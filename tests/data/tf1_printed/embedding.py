import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
import numpy as np

ids = tf.placeholder(tf.int32, [None, None])
labels = tf.placeholder(tf.int32, [None])
emb = tf.get_variable("emb", initializer=np.arange(20, dtype=np.float32).reshape(10, 2) / 10)
with tf.device("/cpu:0"):
    e = tf.nn.embedding_lookup(emb, ids)
avg = tf.reduce_mean(e, axis=1)
W = tf.get_variable("W", [2, 3], initializer=tf.constant_initializer([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
logits = tf.nn.xw_plus_b(avg, W, b, name="logits")
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels))
opt = tf.train.AdagradOptimizer(0.5)
gv = opt.compute_gradients(loss)
print([v.name for g, v in gv])
clipped = [(tf.clip_by_norm(g, 1.0) if not isinstance(g, tf.IndexedSlices) else g, v) for g, v in gv]
train = opt.apply_gradients(clipped)
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    f = {ids: [[1, 2], [2, 3], [9, 9]], labels: [0, 1, 2]}
    for _ in range(5):
        _, l = s.run([train, loss], f)
        print("%.5f" % l)
    print(s.run(emb))
    print(s.run(tf.nn.top_k(logits, 2), f))
    g = tf.gradients(loss, emb)[0]
    print(s.run(tf.convert_to_tensor(g), f))
    tg, gn = tf.clip_by_global_norm(tf.gradients(loss, [W, b]), 0.1)
    print(s.run([gn] + tg, f))
    pred = tf.argmax(logits, 1, output_type=tf.int32)
    print(s.run(tf.reduce_mean(tf.cast(tf.equal(pred, labels), tf.float32)), f))
