"""Learn to read handwritten digits twice, eagerly and compiled; the losses are the same to the bit at every step.

20 epochs read at least 97 % of the test images rightly; ``--quick`` trains less, for a first look.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import hybridflow as hf

SEED = 3
BATCH = 32


class Data(NamedTuple):
    train_images: hf.Tensor  # float32[1400, 8, 8], from 0 to 1
    train_labels: hf.Tensor  # int64[1400]
    test_images: hf.Tensor
    test_labels: hf.Tensor


def load() -> Data:
    """The 1797 digits that come with scikit-learn, in random order, 1400 of them to learn from."""
    digits = load_digits()
    order = hf.random.Generator(SEED).permutation(len(digits.target))
    images = hf.take(hf.asarray(digits.images.astype(np.float32) / 16), order, axis=0)
    labels = hf.take(hf.asarray(digits.target.astype(np.int64)), order, axis=0)
    return Data(images[:1400], labels[:1400], images[1400:], labels[1400:])


class Classifier:
    """64-96-10 with dropout, trained by gradient descent with momentum."""

    def __init__(self) -> None:
        random = hf.random.Generator(SEED)
        self.w1 = hf.Variable(random.normal((64, 96), stddev=(2 / 64) ** 0.5), name="w1")
        self.b1 = hf.Variable(hf.zeros((96,)), name="b1")
        self.w2 = hf.Variable(random.normal((96, 10), stddev=(2 / 96) ** 0.5), name="w2")
        self.b2 = hf.Variable(hf.zeros((10,)), name="b2")
        self.weights = [self.w1, self.b1, self.w2, self.b2]
        self.velocities = [hf.Variable(hf.zeros(w.shape), trainable=False) for w in self.weights]
        self.dropout = hf.random.Generator(SEED)

    def logits(self, images: hf.Tensor, training: bool) -> hf.Tensor:
        flat = hf.reshape(images, (images.shape[0], 64))
        hidden = hf.nn.relu(flat @ self.w1 + self.b1)
        hidden = hf.nn.dropout(hidden, 0.1, training=training, generator=self.dropout)
        return hidden @ self.w2 + self.b2

    def train_step(self, images: hf.Tensor, labels: hf.Tensor) -> hf.Tensor:
        with hf.GradientTape() as tape:
            loss = hf.losses.softmax_cross_entropy(labels, self.logits(images, training=True))
        gradients = tape.gradient(loss, self.weights)
        for weight, velocity, gradient in zip(self.weights, self.velocities, gradients):
            velocity.assign(0.9 * velocity - 0.05 * gradient)
            weight.assign_add(velocity)
        return loss

    def accuracy(self, images: hf.Tensor, labels: hf.Tensor) -> float:
        found = hf.argmax(self.logits(images, training=False), axis=-1)
        return hf.mean(hf.astype(found == labels, hf.float32)).item()


class Outcome(NamedTuple):
    losses: np.ndarray  # float32, one per step
    accuracy: float  # on the test images
    seconds_per_step: float


def train(data: Data, epochs: int, decorate: Callable[[Callable], Callable]) -> Outcome:
    """Train a new classifier whose step went through ``decorate``."""
    model = Classifier()
    step = decorate(model.train_step)
    shuffle = hf.random.Generator(SEED + 1)
    losses, seconds = [], []
    for _ in range(epochs):
        order = shuffle.permutation(1400).numpy()
        for first in range(0, 1400 - BATCH + 1, BATCH):
            batch = hf.asarray(order[first : first + BATCH])
            images, labels = hf.take(data.train_images, batch, axis=0), hf.take(data.train_labels, batch, axis=0)
            started = time.perf_counter()
            losses.append(step(images, labels).item())
            seconds.append(time.perf_counter() - started)
    accuracy = model.accuracy(data.test_images, data.test_labels)
    return Outcome(np.array(losses, np.float32), accuracy, float(np.median(seconds)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="5 epochs")
    options = parser.parse_args()
    epochs = 5 if options.quick else options.epochs
    data = load()
    eager = train(data, epochs, lambda step: step)
    graph = train(data, epochs, hf.function)
    assert np.array_equal(eager.losses.view(np.int32), graph.losses.view(np.int32)), "the losses differ"
    print(f"{eager.losses.size} steps, loss {eager.losses[0]:.4f} -> {eager.losses[-1]:.4f}, bit for bit the same")
    print(f"test accuracy {graph.accuracy:.2%}")
    print(f"eager {eager.seconds_per_step * 1e6:.0f} µs per step")
    print(
        f"graph {graph.seconds_per_step * 1e6:.0f} µs per step, {eager.seconds_per_step / graph.seconds_per_step:.1f}x"
    )


if __name__ == "__main__":
    main()
