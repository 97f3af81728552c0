import tensorflow as tf
import numpy as np

rng = np.random.default_rng(0)
C = tf.keras.initializers.Constant
obs_in = tf.keras.Input(shape=(4,), dtype="float32")


def mlp(x, sizes, activation="tanh", output_activation=None):
    for size in sizes[:-1]:
        x = tf.keras.layers.Dense(units=size, activation=activation, kernel_initializer=C(0.1))(x)
    return tf.keras.layers.Dense(units=sizes[-1], activation=output_activation, kernel_initializer=C(0.05))(x)


logits = mlp(obs_in, [8, 3])
actor = tf.keras.Model(obs_in, logits)
value = tf.keras.ops.squeeze(mlp(obs_in, [8, 1]), axis=1)
critic = tf.keras.Model(obs_in, value)
po, vo = tf.keras.optimizers.Adam(3e-2), tf.keras.optimizers.Adam(1e-2)


def logprobs(logits, a):
    lp = tf.nn.log_softmax(logits)
    return tf.reduce_sum(tf.one_hot(a, 3) * lp, axis=1)


@tf.function
def train_policy(obs, act, old, adv):
    with tf.GradientTape() as tape:
        ratio = tf.exp(logprobs(actor(obs), act) - old)
        mn = tf.where(adv > 0, 1.2 * adv, 0.8 * adv)
        loss = -tf.reduce_mean(tf.minimum(ratio * adv, mn))
    g = tape.gradient(loss, actor.trainable_variables)
    g, norm = tf.clip_by_global_norm(g, 0.5)
    po.apply_gradients(zip(g, actor.trainable_variables))
    kl = tf.reduce_mean(old - logprobs(actor(obs), act))
    return loss, tf.reduce_sum(kl), norm


@tf.function
def train_value(obs, ret):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((ret - critic(obs)) ** 2)
    vo.apply_gradients(zip(tape.gradient(loss, critic.trainable_variables), critic.trainable_variables))
    return loss


obs, act = tf.constant(rng.normal(size=(10, 4)), tf.float32), tf.constant(rng.integers(0, 3, 10))
adv, ret = (tf.constant(rng.normal(size=10), tf.float32) for _ in range(2))
old = logprobs(actor(obs), act)
RESULT = {
    "p": [[float(v) for v in train_policy(obs, act, old, adv)] for _ in range(3)],
    "v": [float(train_value(obs, ret)) for _ in range(3)],
}
