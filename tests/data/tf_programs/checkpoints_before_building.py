import os
import tempfile

import tensorflow as tf


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.l1 = tf.keras.layers.Dense(2, kernel_initializer="ones")

    def call(self, x):
        return self.l1(x)


@tf.function
def train_step(net, x, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(net(x) - 1.0))
    variables = net.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


folder = tempfile.mkdtemp()
x = tf.constant([[1.0, 2.0], [3.0, -1.0]])
net, optimizer, step = Net(), tf.keras.optimizers.Adam(0.1), tf.Variable(1)
checkpoint = tf.train.Checkpoint(step=step, optimizer=optimizer, net=net)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
nothing = checkpoint.restore(manager.latest_checkpoint)
for _ in range(3):
    train_step(net, x, optimizer)
    step.assign_add(1)
path = manager.save()

fresh, number = Net(), tf.Variable(0)
again = tf.train.Checkpoint(step=number, net=fresh)
status = again.restore(tf.train.latest_checkpoint(folder))
status.assert_existing_objects_matched()
before = len(fresh.variables)
fresh(x)

bias = tf.Variable(tf.zeros([2]))
part = tf.train.Checkpoint(net=tf.train.Checkpoint(l1=tf.train.Checkpoint(bias=bias)))
part.restore(path).expect_partial()
RESULT = {
    "step": number,
    "before": before,
    "restored": fresh.l1.bias,  # Keras 3 gives the kernel its initial value again, so that is not compared
    "bias": bias,
    "file": os.path.basename(path).split(".")[0],
}
