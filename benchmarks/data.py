"""Microseconds an element of pipelines of cheap elements, with and without what they call taken off.

    python benchmarks/data.py [--json]

The function of ``map`` alone is timed in a plain loop over the same elements, in turns with the pipelines.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    found: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        for name, run in pipelines().items():
            found.setdefault(name, []).append(seconds(run) / COUNT * 1e6)
    rows = {
        name: {"median_us": statistics.median(times), "least_us": min(times), "most_us": max(times)}
        for name, times in found.items()
    }
    if parser.parse_args().json:
        print(json.dumps(rows, indent=2))
        return
    for name, row in rows.items():
        print(f"{name:32}{row['median_us']:8.3f} µs an element ({row['least_us']:.3f} to {row['most_us']:.3f})")


if __name__ == "__main__":
    main()
