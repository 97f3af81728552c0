import os
import tempfile

import tensorflow as tf

folder = tempfile.mkdtemp()
v = tf.Variable([1.0, 2.0])
optimizer = tf.keras.optimizers.Adam(0.1)
step = tf.Variable(0)
checkpoint = tf.train.Checkpoint(v=v, step=step)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
for k in range(3):
    v.assign_add([1.0, 1.0])
    step.assign_add(1)
    manager.save()
latest = tf.train.latest_checkpoint(folder)
v.assign([0.0, 0.0])
step.assign(0)
status = checkpoint.restore(manager.latest_checkpoint)
status.assert_consumed()
RESULT = {
    "v": v,
    "step": step,
    "kept": len(manager.checkpoints),
    "latest": latest == manager.latest_checkpoint,
    "none": tf.train.latest_checkpoint(os.path.join(folder, "nothing")),
}
