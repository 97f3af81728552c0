"""Into how many pieces the kernels of some programs may be cut, and how long they take on one thread.

    python benchmarks/units.py [--json]

A piece is ``grain`` units of a phase.  A program is as parallel as the phases in which it spends its time, so the
figure to look at is the greatest number of pieces; the others are short phases, such as the carries of a scan.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["HF_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf
from hybridflow.runtime import host_interface

LARGE = 1 << 24
REPEATS = 5

PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "sum of 16M": (lambda x: hf.sum(x), [(LARGE,)]),
    "concat of two 8M": (lambda x, y: hf.concat([x, y]), [(LARGE // 2,), (LARGE // 2,)]),
    "pad of 16M": (lambda x: hf.pad(x, ((3, 5),)), [(LARGE,)]),
    "cumulative sum of 16M": (lambda x: hf.cumulative_sum(x), [(LARGE,)]),
    "argsort of 16M": (lambda x: hf.argsort(x), [(LARGE,)]),
    "sum(axis=0) of 1000x1000": (lambda x: hf.sum(x, axis=0), [(1000, 1000)]),
    "[4, 2^20] + bias": (lambda x, b: x + b, [(4, 1 << 20), (1 << 20,)]),
    "cumulative sum of 1000x1000, axis 1": (lambda x: hf.cumulative_sum(x, axis=1), [(1000, 1000)]),
    "argsort of 1000x1000": (lambda x: hf.argsort(x), [(1000, 1000)]),
    "scatter_add of 1M into 1M": (
        lambda x, u: hf.scatter_add(x, hf.remainder(hf.arange(1 << 20) * 7919, 1 << 20), u),
        [(1 << 20,), (1 << 20,)],
    ),
    "matrix 4096x4096 times vector": (lambda x, v: x @ v, [(4096, 4096), (4096,)]),
}


class Counting:
    """A host that runs each loop in one piece and notes into how many it might have been cut."""

    def __init__(self) -> None:
        self.pieces: list[int] = []
        self.struct = host_interface.Host(workers=2)
        kind = type(self.struct.parallel_for)
        self.struct.parallel_for = kind(self._run)

    def _run(self, host: int, task: int, args: int, units: int, grain: int, least: int, work: int) -> None:
        self.pieces.append(-(-units // grain))
        if units:
            host_interface.TASK(task)(args, 0, units, 0)


def measured(function: Callable[..., Any], shapes: list[tuple[int, ...]]) -> dict[str, Any]:
    """The pieces of each phase, and the least time of some calls in place, in microseconds."""
    rng = np.random.default_rng(0)
    arguments = [hf.constant(rng.standard_normal(shape, np.float32)) for shape in shapes]
    compiled = hf.function(function)
    compiled(*arguments)
    host = Counting()
    with host_interface.use(host.struct):
        compiled.get_concrete_function(*arguments)(*arguments)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        compiled(*arguments)
        times.append(time.perf_counter() - start)
    return {"pieces": host.pieces, "microseconds": round(1e6 * min(times), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    found = {name: measured(*program) for name, program in PROGRAMS.items()}
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print(f"{'program':<38}{'most pieces':>12}{'phases':>8}{'us, one thread':>16}")
    for name, row in found.items():
        print(f"{name:<38}{max(row['pieces'], default=0):>12}{len(row['pieces']):>8}{row['microseconds']:>16}")


if __name__ == "__main__":
    main()
