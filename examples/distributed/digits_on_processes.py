"""Training shared out over processes, with the same bits on any number of them.

    hybridflow run -n 1 examples/distributed/digits_on_processes.py
    hybridflow run -n 3 examples/distributed/digits_on_processes.py

Both print the same digest of the weights: the eight replicas are part of the program, the processes are not.
"""

from __future__ import annotations

import argparse
import hashlib
from typing import Any

import numpy as np

import hybridflow as hf

REPLICAS = 8


def pictures(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy bars, upright or level, in two places: four classes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, count)
    images = rng.normal(scale=0.5, size=(count, 8, 8, 1)).astype(np.float32)
    for image, label in zip(images, labels):
        place = slice(1, 3) if label % 2 else slice(5, 7)
        image[(place, slice(None)) if label < 2 else (slice(None), place)] += 1
    return images, labels


def network() -> Any:
    """A convolution, batch normalization over each replica's rows, and dropout."""
    return hf.Sequential(
        [
            hf.layers.Conv2D(8, 3, activation="relu"),
            hf.layers.BatchNormalization(),
            hf.layers.Flatten(),
            hf.layers.Dropout(0.3),
            hf.layers.Dense(4),
        ]
    )


def main() -> None:
    """Train, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--samples", type=int, default=1024)
    options = parser.parse_args()

    images, labels = pictures(options.samples)
    hf.random.set_seed(0)
    with hf.distribute.MirroredStrategy(replicas=REPLICAS).scope():
        model = network()
        loss = hf.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(hf.optimizers.Adam(0.003), loss, metrics=["accuracy"])
    history = model.fit(images, labels, batch_size=128, epochs=options.epochs, verbose=0).history
    digest = hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.variables)).hexdigest()[:16]
    print(f"{hf.distribute.process_count()} processes, {REPLICAS} replicas")
    print(f"accuracy {history['accuracy'][-1]:.3f}, weights {digest}")


if __name__ == "__main__":
    main()
