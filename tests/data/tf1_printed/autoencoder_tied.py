import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

rng = np.random.RandomState(1)
data = (rng.rand(32, 10) > 0.6).astype("f")
x = tf.placeholder("float", [None, 10])
keep = tf.placeholder_with_default(1.0, shape=())
weights = {"encode": tf.Variable(rng.randn(10, 4).astype("f") * 0.3, name="encode")}
biases = {"encode": tf.Variable(tf.zeros([4])), "decode": tf.Variable(tf.zeros([10]))}
code = tf.nn.sigmoid(tf.add(tf.matmul(tf.nn.dropout(x, keep), weights["encode"]), biases["encode"]))
decoded = tf.nn.sigmoid(tf.matmul(code, weights["encode"], transpose_b=True) + biases["decode"])
error = tf.reduce_mean(tf.pow(x - decoded, 2))
sparsity = tf.reduce_mean(code, axis=0)
rho = 0.2
kl = tf.reduce_sum(rho * tf.log(rho / sparsity) + (1 - rho) * tf.log((1 - rho) / (1 - sparsity)))
cost = error + 0.01 * kl + 1e-3 * tf.nn.l2_loss(weights["encode"])
global_step = tf.Variable(0, trainable=False, name="global_step")
rate = tf.train.exponential_decay(0.5, global_step, 5, 0.7, staircase=True)
train = tf.train.MomentumOptimizer(rate, 0.9).minimize(cost, global_step=global_step)
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(12):
        for k in range(0, 32, 16):
            _, c = sess.run([train, cost], feed_dict={x: data[k : k + 16]})
        if epoch % 3 == 0:
            print("Epoch:", "%02d" % (epoch + 1), "cost=", "{:.5f}".format(c), "rate", sess.run(rate))
    print(global_step.eval(), sess.run(kl, {x: data}))
    print(decoded.eval({x: data[:2]}))
