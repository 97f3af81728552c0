"""Learn to read handwritten digits with a convolutional network whose training loop is written by hand.

    python examples/digits_by_hand.py [--steps N] [--checkpoint DIR]

What ``examples/digits_convolutional.py`` leaves to ``fit`` is done here: a compiled step with a tape, a pipeline of
data, metrics, a schedule, and checkpoints that hold all of it, the place in the data too.  600
steps read at least 98.5 % of the test images rightly.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import hybridflow as hf
from hybridflow import layers

SEED = 5
BATCH = 64
EVERY = 100  # steps between two lines of progress, and between two checkpoints


def load() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The 1797 digits that come with scikit-learn, in random order: 1400 to learn from, and the others."""
    digits = load_digits()
    order = hf.random.Generator(SEED).permutation(len(digits.target)).numpy()
    images = digits.images[order, :, :, None].astype(np.float32) / 16
    labels = digits.target[order]
    return (images[:1400], labels[:1400]), (images[1400:], labels[1400:])


class Network(hf.Module):
    """Two convolutions of 3x3, one pooling, and two dense layers, called one after the other."""

    def __init__(self) -> None:
        self.conv_1 = layers.Conv2D(32, 3, padding="same", activation="relu")
        self.conv_2 = layers.Conv2D(64, 3, padding="same", activation="relu")
        self.dense = layers.Dense(64, activation="relu")
        self.to_logits = layers.Dense(10)
        self.dropped = hf.random.Generator(SEED)

    def __call__(self, images: hf.Tensor, training: bool = False) -> hf.Tensor:
        seen = hf.nn.max_pool2d(self.conv_2(self.conv_1(images)), 2, 2, "VALID")
        seen = hf.nn.dropout(seen, 0.25, training=training, generator=self.dropped)
        seen = self.dense(hf.reshape(seen, (images.shape[0], -1)))
        return self.to_logits(hf.nn.dropout(seen, 0.4, training=training, generator=self.dropped))


class Run:
    """The network and all that its training is made of."""

    def __init__(self, steps: int, folder: Path | None = None) -> None:
        hf.random.set_seed(SEED)
        self.steps = steps
        train, self.test = load()
        data = hf.data.Dataset.from_tensor_slices(train).shuffle(1400, seed=SEED).repeat()
        self.batches = iter(data.batch(BATCH, drop_remainder=True).prefetch(hf.data.AUTOTUNE))
        self.network = Network()
        self.network(hf.zeros((1, 8, 8, 1)))  # makes the weights
        rate = hf.optimizers.schedules.CosineDecay(2e-3, steps, alpha=0.01)
        self.optimizer = hf.optimizers.AdamW(rate, weight_decay=1e-3)
        self.loss, self.accuracy = hf.metrics.Mean(), hf.metrics.SparseCategoricalAccuracy()
        self.manager = None
        if folder is not None:
            checkpoint = hf.checkpoint.Checkpoint(
                network=self.network, optimizer=self.optimizer, dropped=self.network.dropped, data=self.batches
            )
            self.manager = hf.checkpoint.CheckpointManager(checkpoint, folder, max_to_keep=2)
            self.manager.restore_or_initialize()

    @hf.function
    def step(self, images: hf.Tensor, labels: hf.Tensor) -> hf.Tensor:
        with hf.GradientTape() as tape:
            logits = self.network(images, training=True)
            loss = hf.losses.softmax_cross_entropy(labels, logits)
        weights = self.network.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.loss.update_state(loss)
        self.accuracy.update_state(labels, logits)
        return loss

    def train(self, until: int | None = None) -> list[float]:
        """Go on until the last step, or that many, are done; the losses of those that were done now."""
        first, last = self.optimizer.iterations.item(), self.steps if until is None else until
        losses: list[float] = []
        started = time.perf_counter()
        for done in range(first + 1, last + 1):
            losses.append(self.step(*next(self.batches)).item())
            if done % EVERY == 0 or done == last:
                spent = (time.perf_counter() - started) / len(losses)
                mean, share = self.loss.result().item(), self.accuracy.result().item()
                print(f"step {done:4}  loss {mean:.4f}  accuracy {share:.2%}  {spent * 1e3:.2f} ms a step")
                self.loss.reset_state()
                self.accuracy.reset_state()
                if self.manager is not None:
                    self.manager.save()
        return losses

    @hf.function
    def read(self, images: hf.Tensor) -> hf.Tensor:
        return hf.argmax(self.network(images), axis=-1)

    def tested(self) -> float:
        """The share of the test images that it reads rightly."""
        images, labels = self.test
        return np.mean(self.read(hf.asarray(images)).numpy() == labels).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600, help="steps of training in all (600)")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="where the run is saved, and goes on from")
    options = parser.parse_args()
    run = Run(options.steps, options.checkpoint)
    run.train()
    print(f"{run.tested():.2%} of the test images are read rightly")


if __name__ == "__main__":
    main()
