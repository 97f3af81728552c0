import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
lr0 = 0.1
global_step = tf.Variable(0, trainable=False, name="global_step")
lr = tf.train.exponential_decay(lr0, global_step, 10, 0.96, staircase=True)
lr2 = tf.train.exponential_decay(lr0, global_step, 10, 0.96)
lr3 = tf.train.polynomial_decay(0.1, global_step, 20, 0.01, power=0.5)
lr4 = tf.train.piecewise_constant(global_step, [5, 12], [1.0, 0.5, 0.1])
lr5 = tf.train.inverse_time_decay(0.1, global_step, 5, 0.5)
lr6 = tf.train.natural_exp_decay(0.1, global_step, 5, 0.5, staircase=True)
lr7 = tf.train.cosine_decay(0.1, global_step, 20, alpha=0.1)
lr8 = tf.train.cosine_decay_restarts(0.1, global_step, 8)
lr9 = tf.train.linear_cosine_decay(0.1, global_step, 20)
x = tf.Variable(10.0)
opt = tf.train.MomentumOptimizer(lr, 0.9, use_nesterov=True)
train = opt.minimize(x * x, global_step=global_step)
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    for i in range(15):
        s.run(train)
        if i % 4 == 0:
            print(s.run([global_step, lr, lr2, lr3, lr4, lr5, lr6, lr7, lr8, lr9, x]))
    print(
        opt.get_slot_names(),
        opt.get_slot(x, "momentum").name,
        s.run(opt.get_slot(x, "momentum")),
        tf.train.global_step(s, global_step),
        opt.get_name(),
    )
