import numpy as np
import tensorflow as tf
from collections import deque

c = tf.keras.initializers.Constant


def create_q_model():
    return tf.keras.Sequential(
        [
            tf.keras.Input(shape=(3,)),
            tf.keras.layers.Dense(5, activation="relu", kernel_initializer=c(0.1)),
            tf.keras.layers.Dense(2, activation="linear", kernel_initializer=c(0.2)),
        ]
    )


model, model_target = create_q_model(), create_q_model()
model_target.set_weights(model.get_weights())
optimizer = tf.keras.optimizers.Adam(learning_rate=0.01, clipnorm=1.0)
loss_function = tf.keras.losses.Huber()
memory = deque(maxlen=16)
state = np.array([0.1, 0.2, 0.3], "float32")
losses = []
for step in range(12):
    q = model(tf.expand_dims(tf.convert_to_tensor(state), 0), training=False)
    action = int(tf.argmax(q[0]).numpy()) if step % 3 else step % 2
    following = np.sin(state * (action + 1) + step).astype("float32")
    memory.append((state, action, following, float(following.sum()), step % 5 == 4))
    state = following
    if step >= 4:
        batch = [memory[i] for i in (0, 2, 3, len(memory) - 1)]
        states, actions, nexts, rewards, done = (np.array(part) for part in zip(*batch))
        future = model_target.predict(nexts, verbose=0)
        updated = rewards + 0.9 * tf.reduce_max(future, axis=1)
        updated = updated * (1 - done) - done
        masks = tf.one_hot(actions, 2)
        with tf.GradientTape() as tape:
            q_values = model(states)
            q_action = tf.reduce_sum(tf.multiply(q_values, masks), axis=1)
            loss = loss_function(updated, q_action)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        losses.append(float(loss))
    if step % 6 == 5:
        model_target.set_weights(model.get_weights())
RESULT = {"losses": losses, "q": model(tf.ones((1, 3)))}
