import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

made = [
    tf.train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.5, l2_regularization_strength=0.3),
    tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.5, l2_regularization_strength=0.3),
    tf.train.ProximalGradientDescentOptimizer(0.1),
    tf.train.ProximalAdagradOptimizer(tf.constant(0.1), 0.2, 0.01, 0.0),
]
for optimizer in made:
    v = tf.Variable([1.0, -2.0, 0.02, 0.0])
    train = optimizer.minimize(tf.reduce_sum(v * v * [1.0, 2.0, 3.0, 4.0]), var_list=[v])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train)
        print(optimizer.get_name(), sess.run(v), optimizer.get_slot_names())
        for name in optimizer.get_slot_names():
            print(sess.run(optimizer.get_slot(v, name)))
