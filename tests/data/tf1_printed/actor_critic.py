import numpy as np

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
np.set_printoptions(precision=4, suppress=True)

rng = np.random.RandomState(0)


class Network:
    def __init__(self, scope, trainer=None):
        with tf.variable_scope(scope):
            self.states = tf.placeholder(tf.float32, [None, 4], name="states")
            self.actions = tf.placeholder(tf.int32, [None])
            self.rewards = tf.placeholder(tf.float32, [None])
            self.advantages = tf.placeholder(tf.float32, [None])
            start = tf.constant_initializer(0.1)
            w = tf.get_variable("w", [4, 6], initializer=start)
            hidden = tf.nn.elu(tf.matmul(self.states, w))
            wp = tf.get_variable("policy", [6, 3], initializer=tf.constant_initializer(np.arange(18) / 40.0))
            wv = tf.get_variable("value", [6, 1], initializer=start)
            self.policy = tf.nn.softmax(tf.matmul(hidden, wp))
            self.value = tf.matmul(hidden, wv)
            if scope != "global":
                chosen = tf.one_hot(self.actions, 3, dtype=tf.float32)
                responsible = tf.reduce_sum(self.policy * chosen, [1])
                self.value_loss = 0.5 * tf.reduce_sum(tf.square(self.rewards - tf.reshape(self.value, [-1])))
                self.entropy = -tf.reduce_sum(self.policy * tf.log(self.policy))
                self.policy_loss = -tf.reduce_sum(tf.log(responsible) * self.advantages)
                self.loss = 0.5 * self.value_loss + self.policy_loss - self.entropy * 0.01
                own = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)
                self.gradients = tf.gradients(self.loss, own)
                self.norms = tf.global_norm(own)
                clipped, self.grad_norm = tf.clip_by_global_norm(self.gradients, 1.0)
                shared = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "global")
                self.apply = trainer.apply_gradients(list(zip(clipped, shared)))
                self.pull = [a.assign(b) for a, b in zip(own, shared)]


shared = Network("global")
workers = [Network("worker_%d" % k, tf.train.AdamOptimizer(0.05)) for k in range(2)]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for episode in range(4):
        for worker in workers:
            sess.run(worker.pull)
            states = rng.randn(5, 4)
            policy, value = sess.run([worker.policy, worker.value], {worker.states: states})
            actions = policy.argmax(1)
            rewards = rng.rand(5)
            feed = {
                worker.states: states,
                worker.actions: actions,
                worker.rewards: rewards,
                worker.advantages: rewards - value[:, 0],
            }
            vl, pl, e, n, g, _ = sess.run(
                [worker.value_loss, worker.policy_loss, worker.entropy, worker.norms, worker.grad_norm, worker.apply],
                feed,
            )
            print("%.4f %.4f %.4f %.4f %.4f" % (vl, pl, e, n, g))
    print(sess.run(shared.policy, {shared.states: np.ones((1, 4))}))
