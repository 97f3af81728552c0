import os
import tempfile

import numpy as np
import tensorflow as tf


def build():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((3,)),
            tf.keras.layers.Dense(4, activation="relu", name="hidden"),
            tf.keras.layers.Dense(2, name="out"),
        ]
    )


a, b = build(), build()
x = np.ones((2, 3), "float32")
folder = tempfile.mkdtemp()
b.set_weights(a.get_weights())
config = a.get_config()
c = tf.keras.Sequential.from_config(config)
c.set_weights(a.get_weights())
d = tf.keras.models.clone_model(a)
checkpoint = tf.train.Checkpoint(model=a, step=tf.Variable(3))
manager = tf.train.CheckpointManager(checkpoint, os.path.join(folder, "ckpts"), max_to_keep=2)
for _ in range(3):
    checkpoint.step.assign_add(1)
    manager.save()
again = tf.train.Checkpoint(model=b, step=tf.Variable(0))
again.restore(manager.latest_checkpoint)
RESULT = {
    "same": bool(np.allclose(a(x), b(x))),
    "config": bool(np.allclose(a(x), c(x))),
    "cloned": [tuple(w.shape) for w in d.weights],
    "kept": len(manager.checkpoints),
    "step": int(again.step),
    "layers": [l.name for l in a.layers],
    "get": a.get_layer("hidden").units,
    "index": a.get_layer(index=1).name,
    "shapes": [a.input_shape, a.output_shape],
}
