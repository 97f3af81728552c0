"""Learn to read handwritten digits with a convolutional network and ``fit``; take up again where a run was ended.

    python examples/digits_convolutional.py [--epochs N] [--folder DIR]

25 epochs read at least 98.5 % of the test images rightly.  With a folder the run is saved after each epoch, goes on
from there when it is started again, and leaves the network in a file that runs without this source.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import hybridflow as hf
from hybridflow import layers

SEED = 5


def load() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The 1797 digits that come with scikit-learn, in random order: 1400 to learn from, and the others."""
    digits = load_digits()
    order = hf.random.Generator(SEED).permutation(len(digits.target)).numpy()
    images = digits.images[order, :, :, None].astype(np.float32) / 16
    labels = digits.target[order]
    return (images[:1400], labels[:1400]), (images[1400:], labels[1400:])


def network() -> Any:
    """Two convolutions of 3x3, one pooling, and two dense layers."""
    model = hf.Sequential(
        [
            hf.Input((8, 8, 1)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.4),
            layers.Dense(10),
        ]
    )
    loss = hf.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(hf.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
    return model


def train(epochs: int, folder: Path | None = None, verbose: Any = "auto") -> tuple[Any, float]:
    """The trained network, and the share of test images that it reads rightly."""
    hf.random.set_seed(SEED)
    (images, labels), test = load()
    model = network()
    halve = hf.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=3)
    callbacks: list[Any] = [halve, hf.callbacks.TerminateOnNaN()]
    if folder is not None:
        callbacks.append(hf.callbacks.BackupAndRestore(folder))
    model.fit(images, labels, batch_size=64, epochs=epochs, callbacks=callbacks, verbose=verbose)
    if folder is not None:
        hf.saved.save(model, folder / "digits.hf")
    _, accuracy = model.evaluate(*test, verbose=0)
    return model, accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=25, help="passes over the images to learn from (25)")
    parser.add_argument("--folder", type=Path, help="where the run is saved, and the network in the end")
    options = parser.parse_args()
    model, accuracy = train(options.epochs, options.folder)
    model.summary()
    print(f"{accuracy:.2%} of the test images are read rightly")


if __name__ == "__main__":
    main()
