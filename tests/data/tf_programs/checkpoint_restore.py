import tensorflow as tf
import tempfile, os

d = tempfile.mkdtemp()
model = tf.keras.Sequential(
    [
        tf.keras.Input((2,)),
        tf.keras.layers.Dense(3, kernel_initializer="ones"),
        tf.keras.layers.Dense(1, kernel_initializer="ones"),
    ]
)
opt = tf.keras.optimizers.Adam(0.1)
step = tf.Variable(0, dtype=tf.int64)
ckpt = tf.train.Checkpoint(step=step, optimizer=opt, net=model)
manager = tf.train.CheckpointManager(ckpt, os.path.join(d, "ck"), max_to_keep=2)
RESULT = {"latest0": manager.latest_checkpoint is None}
x = tf.ones([4, 2])


def train():
    with tf.GradientTape() as t:
        loss = tf.reduce_mean(tf.square(model(x) - 1))
    opt.apply_gradients(zip(t.gradient(loss, model.trainable_variables), model.trainable_variables))
    step.assign_add(1)
    return loss


losses = []
for _ in range(3):
    losses.append(train())
    path = manager.save()
RESULT["losses"] = losses
RESULT["kept"] = [os.path.basename(p).split(".")[0] for p in manager.checkpoints]
before = model.get_weights()
train()
train()
status = ckpt.restore(manager.latest_checkpoint)
status.assert_existing_objects_matched()
RESULT["step"], RESULT["same"] = step, all((a == b).all() for a, b in zip(before, model.get_weights()))
RESULT["next"] = train()
RESULT["iterations"] = int(opt.iterations)
model.save_weights(os.path.join(d, "w.weights.h5"))
train()
model.load_weights(os.path.join(d, "w.weights.h5"))
RESULT["w"] = model.get_weights()[0]
