"""Microseconds an element of pipelines of cheap elements; seconds of pipelines that sleep, beside the least possible.

    python benchmarks/data.py [--json] [--sleeping] [--peers]

The function of ``map`` alone is timed in a plain loop over the same elements, in turns with the pipelines.  With
``--peers`` those of tf.data and of PyTorch's DataLoader are timed too, where they are installed.

``--sleeping`` times what TensorFlow's guide to the performance of pipelines does: a data set that sleeps while it opens
a file and reads a sample, a function that sleeps, a step of training that sleeps; naive, with elements made in advance,
files in turns, parallel calls, and a cache.  The ideal follows from what sleeps at the same time as what.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

from hybridflow.data import AUTOTUNE, Dataset

COUNT, BATCH, REPEATS = 20_000, 32, 7


def same(x: Any) -> Any:
    return x


def pipelines() -> dict[str, Callable[[], Any]]:
    rows = Dataset.from_tensor_slices(np.ones((COUNT, 4), np.float32))
    held = list(rows)
    return {
        "function alone": lambda: map(same, held),
        "slices": lambda: rows,
        "slices, batch": lambda: rows.batch(BATCH),
        "slices, shuffle, batch": lambda: rows.shuffle(1000, seed=0).batch(BATCH),
        "slices, map": lambda: rows.map(same),
        "map, batch, prefetch": lambda: rows.map(same).batch(BATCH).prefetch(2),
        "map AUTOTUNE, batch, prefetch": lambda: rows.map(same, AUTOTUNE).batch(BATCH).prefetch(AUTOTUNE),
        "map x + 1, batch, prefetch": lambda: rows.map(lambda x: x + 1).batch(BATCH).prefetch(2),
        "range, filter, batch": lambda: Dataset.range(COUNT).filter(lambda x: True).batch(BATCH),
        "map by 2 threads, batch": lambda: rows.map(same, 2).batch(BATCH),
    }


def seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    for _ in run():
        pass
    return time.perf_counter() - begin


def of_tensorflow() -> dict[str, Callable[[], Any]]:
    try:
        import tensorflow as tf  # type: ignore[import-not-found]
    except ImportError:
        return {}
    rows, auto = tf.data.Dataset.from_tensor_slices(np.ones((COUNT, 4), np.float32)), tf.data.AUTOTUNE
    return {
        "tf.data: slices, batch": lambda: rows.batch(BATCH),
        "tf.data: map x + 1, batch, prefetch": lambda: rows.map(lambda x: x + 1).batch(BATCH).prefetch(2),
        "tf.data: the same, AUTOTUNE": lambda: rows.map(lambda x: x + 1, auto).batch(BATCH).prefetch(auto),
    }


def of_torch() -> dict[str, Callable[[], Any]]:
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return {}

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc,unused-ignore]
        held = torch.ones(COUNT, 4)

        def __len__(self) -> int:
            return COUNT

        def __getitem__(self, index: int) -> Any:
            return self.held[index] + 1

    return {"torch: DataLoader, x + 1, batch": lambda: torch.utils.data.DataLoader(Rows(), batch_size=BATCH)}


# Pipelines that sleep

OPEN, READ, WORK, STEP = 0.03, 0.015, 0.03, 0.01  # seconds, as in TensorFlow's guide
SAMPLES, EPOCHS, CALLS = 20, 2, 2


def artificial(*_: Any) -> Dataset:
    """A file that takes its time."""

    def samples() -> Any:
        time.sleep(OPEN)
        for number in range(SAMPLES):
            time.sleep(READ)
            yield number

    return Dataset.from_generator(samples)


def worked(x: Any) -> Any:
    time.sleep(WORK)
    return x


def sleeping() -> dict[str, tuple[Callable[[], Dataset], float]]:
    """Pipelines, and the seconds that an epoch takes at least; the cache's are those of the second epoch."""
    files = Dataset.range(2)
    steps, both = SAMPLES * STEP, 2 * SAMPLES
    mapped = OPEN + SAMPLES * (READ + WORK) + steps
    return {
        "naive": (artificial, OPEN + SAMPLES * READ + steps),
        "prefetch": (lambda: artificial().prefetch(AUTOTUNE), OPEN + SAMPLES * max(READ, STEP) + STEP),
        "interleave": (lambda: files.interleave(artificial), 2 * (OPEN + SAMPLES * READ + steps)),
        "parallel interleave": (
            lambda: files.interleave(artificial, num_parallel_calls=AUTOTUNE),
            OPEN + READ + both * max(READ / 2, STEP),
        ),
        "map": (lambda: artificial().map(worked), mapped),
        "parallel map": (
            lambda: artificial().map(worked, CALLS),
            OPEN + READ + WORK + (SAMPLES - 1) * max(READ, WORK / CALLS, STEP) + STEP,
        ),
        "map, cache": (lambda: artificial().map(worked).cache(), steps),
        "all": (
            lambda: files.interleave(artificial, num_parallel_calls=AUTOTUNE).map(worked, 4).cache().prefetch(AUTOTUNE),
            steps * 2,
        ),
    }


def epochs(make: Callable[[], Dataset]) -> float:
    """Seconds of the last of some epochs."""
    data = make()
    for _ in range(EPOCHS):
        begin = time.perf_counter()
        for _ in data:
            time.sleep(STEP)
        spent = time.perf_counter() - begin
    return spent


def show_sleeping(as_json: bool) -> None:
    rows = {}
    for name, (make, ideal) in sleeping().items():
        spent = statistics.median(epochs(make) for _ in range(3))
        rows[name] = {"seconds": spent, "ideal": ideal, "ratio": spent / ideal}
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    for name, row in rows.items():
        print(f"{name:24}{row['seconds']:8.3f} s an epoch, ideal {row['ideal']:.3f}: {row['ratio']:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sleeping", action="store_true")
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args()
    if given.sleeping:
        show_sleeping(given.json)
        return
    some = pipelines()
    if given.peers:
        some |= of_tensorflow() | of_torch()
    found: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        for name, run in some.items():
            found.setdefault(name, []).append(seconds(run) / COUNT * 1e6)
    rows = {
        name: {"median_us": statistics.median(times), "least_us": min(times), "most_us": max(times)}
        for name, times in found.items()
    }
    if given.json:
        print(json.dumps(rows, indent=2))
        return
    for name, row in rows.items():
        print(f"{name:40}{row['median_us']:8.3f} µs an element ({row['least_us']:.3f} to {row['most_us']:.3f})")


if __name__ == "__main__":
    main()
