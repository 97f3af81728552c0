"""What an epoch of ``fit`` costs: the same Keras program on hybridflow and on TensorFlow, but for its import.

    python benchmarks/epochs.py [--threads N] [--rounds N] [--peer PYTHON] [--json]

Sides have a process each, and take turns by epochs; the first one of each, which traces and compiles, is told apart.
Figures are seconds of an epoch: medians of the rounds, and how far the middle half of ours spreads.  ``--peer`` is an
interpreter that has TensorFlow (this one if it is not given); where it has none, ours are printed alone.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

OURS, PEER = SIDES = ("hybridflow.compat.tf", "tensorflow")
PEER_ASKED = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorflow') is None)"


def cifar(tf: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Two convolutions of 32 and two of 64 filters, each pair with a pool, and 512 units, on 2 000 random images."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((32, 32, 3)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.25),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(512, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(10, activation="softmax"),
        ]
    )
    return _compiled(tf, model, (2000, 32, 32, 3))


def dense(tf: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """64-128-10, on 6 400 rows."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((64,)), layers.Dense(128, activation="relu"), layers.Dense(10, "softmax")]
    )
    return _compiled(tf, model, (6400, 64))


def _compiled(tf: Any, model: Any, shape: tuple[int, ...]) -> tuple[Any, np.ndarray, np.ndarray]:
    model.compile(
        optimizer=tf.keras.optimizers.RMSprop(1e-4), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    random = np.random.default_rng(0)
    return model, random.random(shape, np.float32), random.integers(0, 10, shape[0])


MODELS: dict[str, Callable[[Any], tuple[Any, np.ndarray, np.ndarray]]] = {"CIFAR": cifar, "dense": dense}


def serve(side: str, threads: int) -> None:
    """Answer each line, the name of a model, with the seconds of its next epoch."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    tf = importlib.import_module(side)
    made: dict[str, Any] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            made[name] = MODELS[name](tf)
        model, x, y = made[name]
        start = time.perf_counter()
        model.fit(x, y, batch_size=32, epochs=1, verbose=0)
        print(time.perf_counter() - start, flush=True)


class Side:
    """The process of one side."""

    def __init__(self, side: str, python: str, threads: int) -> None:
        from benchmarks.suite.measuring import environment

        self._process = subprocess.Popen(
            [python, __file__, "--side", side, "--threads", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(threads),
            text=True,
        )

    def epoch(self, name: str) -> float:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(name, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


def measured(threads: int, rounds: int, peer: str) -> dict[str, dict[str, Any]]:
    has_peer = subprocess.run([peer, "-c", PEER_ASKED], check=False).returncode == 0
    sides = {OURS: Side(OURS, sys.executable, threads)}
    if has_peer:
        sides[PEER] = Side(PEER, peer, threads)
    found: dict[str, dict[str, Any]] = {}
    try:
        for name in MODELS:
            first = {side: process.epoch(name) for side, process in sides.items()}
            taken: dict[str, list[float]] = {side: [] for side in sides}
            for _ in range(rounds):
                for side, process in sides.items():
                    taken[side].append(process.epoch(name))
            middle = {side: statistics.median(all_) for side, all_ in taken.items()}
            low, _, high = statistics.quantiles(taken[OURS], n=4)
            found[name] = {"first": first, "epoch": middle, "spread": (high - low) / middle[OURS]}
    finally:
        for process in sides.values():
            process.end()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="threads of each side (2)")
    parser.add_argument("--rounds", type=int, default=7, help="how often the sides take turns (7)")
    parser.add_argument("--peer", default=sys.executable, help="a Python that has TensorFlow (this one)")
    parser.add_argument("--json", action="store_true", help="print the seconds as JSON")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side is not None:
        serve(args.side, args.threads)
        return
    found = measured(args.threads, args.rounds, args.peer)
    if args.json:
        print(json.dumps(found))
        return
    for name, row in found.items():
        ours, peer = row["epoch"][OURS], row["epoch"].get(PEER)
        beside = "" if peer is None else f", Keras on TensorFlow {peer:.3f} s, ours / theirs {ours / peer:.2f}"
        print(f"{name:8} an epoch {ours:.3f} s (spread {row['spread']:.0%}){beside}")
        print(f"{'':8} the first " + ", ".join(f"{seconds:.2f} s" for seconds in row["first"].values()))


if __name__ == "__main__":
    main()
