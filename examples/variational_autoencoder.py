"""Learn to draw handwritten digits: a variational autoencoder with a training step of its own, and ``fit``.

    python examples/variational_autoencoder.py [--steps N] [--checkpoint DIR]

An encoder says for each image which two numbers it may stand for, a decoder draws the image that two numbers stand for.
In the end digits are drawn in the terminal, along a walk through what the numbers mean.
With a folder the run is saved now and then, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import hybridflow as hf
from hybridflow import layers

SEED = 13
BATCH = 64
STEPS = 100  # of an "epoch": after each of them a line of progress, and a checkpoint


class Sampling(layers.Layer):
    """Draws from a normal distribution so that derivatives reach its mean and its variance, and adds to what is trained
    how far it is from the standard normal one."""

    def __init__(self) -> None:
        super().__init__()
        self.random = hf.random.Generator(SEED)

    def call(self, mean: hf.Tensor, log_variance: hf.Tensor) -> hf.Tensor:
        divergence = hf.square(mean) + hf.exp(log_variance) - log_variance - 1
        self.add_loss(0.5 * hf.mean(hf.sum(divergence, axis=-1)))
        return mean + hf.exp(0.5 * log_variance) * self.random.normal(mean.shape)


class VAE(hf.Model):
    """Images of 64 pixels from 0 to 1 and, drawn from what they stand for, logits of the same."""

    def __init__(self, numbers: int = 2, width: int = 128) -> None:
        super().__init__()
        self.numbers = numbers
        self.encoder = hf.Sequential([layers.Dense(width, "relu"), layers.Dense(width, "relu")])
        self.mean = layers.Dense(numbers)
        self.log_variance = layers.Dense(numbers)
        self.sampling = Sampling()
        self.decoder = hf.Sequential([layers.Dense(width, "relu"), layers.Dense(width, "relu"), layers.Dense(64)])
        self.means = [hf.metrics.Mean(name) for name in ("loss", "error", "divergence")]

    def call(self, images: hf.Tensor) -> hf.Tensor:
        seen = self.encoder(images)
        return self.decoder(self.sampling(self.mean(seen), self.log_variance(seen)))

    def train_step(self, images: hf.Tensor) -> dict[str, hf.Tensor]:
        """What ``fit`` compiles and does for each batch."""
        with hf.GradientTape() as tape:
            logits = self(images)
            error = hf.mean(hf.sum(hf.losses.sigmoid_cross_entropy(images, logits, reduction="none"), axis=-1))
            divergence = sum(self.losses)
            loss = error + divergence
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
        for mean, value in zip(self.means, (loss, error, divergence)):
            mean.update_state(value)
        return {mean.name: mean.result() for mean in self.means}

    def drawn(self, numbers: Any) -> np.ndarray:
        """float32[images, 8, 8] for what they stand for, [images, numbers]."""
        return hf.sigmoid(self.decoder(hf.asarray(numbers, hf.float32))).numpy().reshape(-1, 8, 8)


def batches() -> hf.data.Dataset:
    """The 1797 digits that come with scikit-learn, again and again, in an order that is another one each time."""
    images = load_digits().data.astype(np.float32) / 16
    return hf.data.Dataset.from_tensor_slices(images).shuffle(len(images), seed=SEED).repeat().batch(BATCH)


def train(steps: int, folder: Path | None = None, verbose: Any = "auto") -> tuple[VAE, list[float]]:
    """The trained model, and the losses of the epochs that were done now."""
    hf.random.set_seed(SEED)
    model = VAE()
    model.compile(hf.optimizers.Adam(1e-3))
    model(hf.zeros((1, 64)))  # makes the weights
    run = hf.checkpoint.Checkpoint(model=model, optimizer=model.optimizer, epoch=0)
    callbacks = []
    if folder is not None:
        manager = hf.checkpoint.CheckpointManager(run, folder, max_to_keep=2)
        manager.restore_or_initialize()

        def save(epoch: int, logs: Any) -> None:
            run.epoch = epoch + 1
            manager.save()

        callbacks.append(hf.callbacks.LambdaCallback(on_epoch_end=save))
    data = batches().skip(run.epoch * STEPS)
    history = model.fit(
        data.prefetch(hf.data.AUTOTUNE),
        initial_epoch=run.epoch,
        epochs=steps // STEPS,
        steps_per_epoch=STEPS,
        callbacks=callbacks,
        verbose=verbose,
    )
    return model, history.history.get("loss", [])


def shown(images: np.ndarray) -> str:
    """Images side by side, for a terminal."""
    shades = np.array(list(" .:-=+*#%@"))
    rows = shades[(np.concatenate(images, axis=1) * 9.99).astype(int)]
    return "\n".join("".join(shade * 2 for shade in row) for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000, help="steps of training in all, in hundreds (4000)")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="where the run is saved, and goes on from")
    options = parser.parse_args()
    model, _ = train(options.steps, options.checkpoint)
    for height in (-1.2, 0, 1.2):
        print(shown(model.drawn([[x, height] for x in (-1.5, -0.75, 0, 0.75, 1.5)])))


if __name__ == "__main__":
    main()
