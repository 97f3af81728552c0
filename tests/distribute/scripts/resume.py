"""Four epochs of fit, which are interrupted after two where the third argument says so: run by test_processes.py."""

import hashlib
import sys
from pathlib import Path

import numpy as np

import hybridflow as hf

folder, is_cut = Path(sys.argv[1]), sys.argv[2] == "cut"
rng = np.random.default_rng(0)
x, y = rng.normal(size=(40, 6)).astype(np.float32), rng.integers(0, 3, 40)

hf.random.set_seed(4)
with hf.distribute.MirroredStrategy(replicas=4).scope():
    model = hf.Sequential([hf.layers.Dense(8, activation="relu"), hf.layers.Dropout(0.3), hf.layers.Dense(3)])
    model.compile("adam", hf.losses.SparseCategoricalCrossentropy(from_logits=True))


class Cut(hf.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if is_cut and epoch == 2:
            hf.distribute.barrier()  # the first process has logged the epoch before
            raise KeyError("cut")


callbacks = [
    hf.callbacks.BackupAndRestore(folder, delete_checkpoint=False),
    hf.callbacks.ModelCheckpoint(folder / "model-{epoch}.safetensors", save_weights_only=True),
    hf.callbacks.CSVLogger(folder / "log.csv", append=True),
    Cut(),
]
model.fit(x, y, batch_size=12, epochs=4, verbose=0, callbacks=callbacks)
before = [v.numpy() for v in model.variables]
model.load_weights(folder / "model-4.safetensors")
assert all((a == b.numpy()).all() for a, b in zip(before, model.variables))
manager = hf.checkpoint.CheckpointManager(hf.checkpoint.Checkpoint(model=model), folder / "kept", max_to_keep=2)
for _ in range(3):
    manager.save()
assert len(manager.checkpoints) == 2
print(hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.variables)).hexdigest()[:16])
