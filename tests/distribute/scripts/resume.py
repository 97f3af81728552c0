"""Three epochs of fit, which end before that where the second argument says so: run by test_processes.py.

``whole`` goes on to the end.  ``7:0:SIGTERM`` has rank 0 get that signal after the seventh batch that is taken here, in
the first process that is started in the folder for this.
"""

import hashlib
import os
import signal
import sys
from pathlib import Path

import numpy as np

import hybridflow as hf
from hybridflow.optimizers import sharded_state

sharded_state.SMALLEST = 1


class Signal(hf.callbacks.Callback):
    def __init__(self, folder, when):
        self.file, (self.left, self.rank, self.name) = folder / when.replace(":", "-"), when.split(":")

    def on_train_batch_end(self, batch, logs=None):
        self.left = int(self.left) - 1
        if self.left == 0 and hf.distribute.process_index() == int(self.rank) and not self.file.exists():
            self.file.touch()
            os.kill(os.getpid(), getattr(signal, self.name))


def save_in_pieces(folder):
    x = hf.Variable(np.arange(1000))
    manager = hf.checkpoint.CheckpointManager(hf.checkpoint.Checkpoint(x=x), folder, sharded=True)
    manager.save(wait=False)
    x.assign_add(x)
    manager.wait()
    manager.restore()
    assert x.numpy().tolist() == list(range(1000))
    assert len(list(folder.glob("*.pieces/*"))) == hf.distribute.process_count() * len(manager.checkpoints)
    hf.distribute.barrier()  # else one looks into the folder when another has begun anew


def train(folder, when):
    save_in_pieces(folder / f"pieces-{hf.distribute.process_count()}")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(76, 6)).astype(np.float32), rng.integers(0, 3, 76)
    hf.random.set_seed(4)
    with hf.distribute.MirroredStrategy(replicas=4, shard_optimizer=True).scope():
        model = hf.Sequential([hf.layers.Dense(8, activation="relu"), hf.layers.Dropout(0.3), hf.layers.Dense(3)])
        loss = hf.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, metrics=["accuracy"])
    callbacks = [
        hf.callbacks.BackupAndRestore(folder, save_freq=4, delete_checkpoint=False),
        hf.callbacks.ModelCheckpoint(folder / "model-{epoch}.safetensors", save_weights_only=True),
        hf.callbacks.CSVLogger(folder / "log.csv", append=True),
    ]
    if when != "whole":
        callbacks.append(Signal(folder, when))
    data = hf.data.Dataset.from_tensor_slices((x, y)).shuffle(20).batch(8)
    model.fit(data, epochs=3, verbose=0, callbacks=callbacks)
    before = [v.numpy() for v in model.variables]
    model.load_weights(folder / "model-3.safetensors")
    assert all((a == b.numpy()).all() for a, b in zip(before, model.variables))
    manager = hf.checkpoint.CheckpointManager(hf.checkpoint.Checkpoint(model=model), folder / "kept", max_to_keep=2)
    for _ in range(3):
        manager.save()
    assert len(manager.checkpoints) == 2
    return hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.variables)).hexdigest()[:16]


if __name__ == "__main__":
    print(train(Path(sys.argv[1]), sys.argv[2]))
