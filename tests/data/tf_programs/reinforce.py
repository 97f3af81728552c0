import numpy as np
import tensorflow as tf

eps = np.finfo(np.float32).eps.item()
model = tf.keras.Sequential(
    [
        tf.keras.Input((4,)),
        tf.keras.layers.Dense(3, "tanh", kernel_initializer=tf.keras.initializers.Constant(0.1)),
        tf.keras.layers.Dense(2, kernel_initializer="zeros"),
    ]
)


def get_expected_return(rewards, gamma=0.9, standardize=True):
    n = tf.shape(rewards)[0]
    returns = tf.TensorArray(dtype=tf.float32, size=n)
    rewards = tf.cast(rewards[::-1], dtype=tf.float32)
    discounted_sum = tf.constant(0.0)
    discounted_sum_shape = discounted_sum.shape
    for i in tf.range(n):
        reward = rewards[i]
        discounted_sum = reward + gamma * discounted_sum
        discounted_sum.set_shape(discounted_sum_shape)
        returns = returns.write(i, discounted_sum)
    returns = returns.stack()[::-1]
    if standardize:
        returns = (returns - tf.math.reduce_mean(returns)) / (tf.math.reduce_std(returns) + eps)
    return returns


optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)


@tf.function
def train_step(states, actions, rewards):
    with tf.GradientTape() as tape:
        logits = model(states)
        log_probs = tf.nn.log_softmax(logits)
        chosen = tf.reduce_sum(log_probs * tf.one_hot(actions, 2), axis=1)
        loss = -tf.math.reduce_sum(chosen * get_expected_return(rewards))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


states = tf.constant(np.sin(np.arange(20)).reshape(5, 4), tf.float32)
actions = tf.constant([0, 1, 1, 0, 1])
rewards = tf.constant([1.0, 0.0, 2.0, 1.0, 1.0])
RESULT = {
    "returns": get_expected_return(rewards),
    "losses": [float(train_step(states, actions, rewards)) for _ in range(3)],
}
