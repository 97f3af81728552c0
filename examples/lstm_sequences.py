"""Remember numbers for a long time: an LSTM on sequences of different lengths, bucketed, padded and masked.

    python examples/lstm_sequences.py [--steps N] [--checkpoint DIR]

Each element of a sequence is a number from 0 to 1 and a mark, and two are marked: what is to be found is the sum of
these two.  To say 1 always is wrong by 1/6, squared, and 3 000 steps lead to less than a twentieth of that.  With a
folder the run is saved now and then, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow import layers

SEED = 19
BATCH = 32
STEPS = 100  # of an "epoch": after each of them a line of progress, and a checkpoint
SHORTEST, LONGEST = 5, 30
BLANK = -1.0  # what sequences are padded with, and the mask hides


def sequences(count: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Sequences float32[length, 2] of numbers and marks, and the sums float32[1] of the marked ones."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        length = random.integers(SHORTEST, LONGEST + 1)
        sequence = np.zeros((length, 2), np.float32)
        sequence[:, 0] = random.random(length)
        marked = random.choice(length, 2, replace=False)
        sequence[marked, 1] = 1
        yield sequence, sequence[marked, :1].sum(axis=0)


def batches(count: int, seed: int) -> hf.data.Dataset:
    """Batches of sequences of like lengths, padded to the longest of their bucket."""
    spec = hf.TensorSpec((None, 2), hf.float32), hf.TensorSpec((1,), hf.float32)
    data = hf.data.Dataset.from_generator(lambda: sequences(count, seed), output_signature=spec).cache()
    return data.bucket_by_sequence_length(
        lambda sequence, _: sequence.shape[0],
        bucket_boundaries=[13, 22],
        bucket_batch_sizes=[BATCH] * 3,
        padding_values=(BLANK, 0.0),
        pad_to_bucket_boundary=False,
        drop_remainder=True,
    )


def network() -> hf.Sequential:
    """One LSTM, whose state is left alone where the mask hides a step, and a dense layer."""
    model = hf.Sequential(
        [
            hf.Input((None, 2)),
            layers.Masking(BLANK),
            layers.LSTM(32),
            layers.Dense(1),
        ]
    )
    model.compile(hf.optimizers.Adam(5e-3, global_clipnorm=1.0), "mse")
    return model


def train(steps: int, folder: Path | None = None, verbose: Any = "auto") -> tuple[hf.Sequential, list[float]]:
    """The trained network, and the losses of the epochs that were done now."""
    hf.random.set_seed(SEED)
    model = network()
    run = hf.checkpoint.Checkpoint(model=model, optimizer=model.optimizer, epoch=0)
    callbacks = []
    if folder is not None:
        manager = hf.checkpoint.CheckpointManager(run, folder, max_to_keep=2)
        manager.restore_or_initialize()

        def save(epoch: int, logs: Any) -> None:
            run.epoch = epoch + 1
            manager.save()

        callbacks.append(hf.callbacks.LambdaCallback(on_epoch_end=save))
    data = batches(4000, SEED).shuffle(100, seed=SEED).repeat().skip(run.epoch * STEPS)
    history = model.fit(
        data.prefetch(hf.data.AUTOTUNE),
        initial_epoch=run.epoch,
        epochs=steps // STEPS,
        steps_per_epoch=STEPS,
        callbacks=callbacks,
        verbose=verbose,
    )
    return model, history.history.get("loss", [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000, help="steps of training in all, in hundreds (3000)")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="where the run is saved, and goes on from")
    options = parser.parse_args()
    model, _ = train(options.steps, options.checkpoint)
    print(f"squared error for sequences never seen: {model.evaluate(batches(1000, SEED + 1), verbose=0):.5f}")
    for sequence, wanted in sequences(3, SEED + 2):
        found = model.predict(sequence[None], verbose=0)
        print(f"{len(sequence):2} numbers: found {found.item():.3f}, the sum is {wanted.item():.3f}")


if __name__ == "__main__":
    main()
