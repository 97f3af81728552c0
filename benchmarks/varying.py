"""What it costs that numbers and extents are open: calls with numbers, and programs for any size beside fixed ones.

    python benchmarks/varying.py [--json] [--rounds N]

Calls: one small program with a rate that is a tensor, a Python float that changes at each call, and an int.  Programs:
the same function traced for one size, and for any.  Sides run in turns (A B A B ...); figures are microseconds per
call, the median of the rounds, with the middle half of the ratios beside them.
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

import hybridflow as hf

PROGRAMS: dict[str, tuple[Callable[[Any], Any], tuple[int, int]]] = {
    "softmax of rows": (lambda x: hf.nn.softmax(x, axis=-1), (1000, 128)),
    "softmax of few rows": (lambda x: hf.nn.softmax(x, axis=-1), (32, 1000)),
    "sum of a chain": (lambda x: hf.sum(hf.tanh(x) * 2 + x), (1000, 300)),
    "sums of columns": (lambda x: hf.sum(x * x, axis=0), (1000, 300)),
    "product of matrices": (lambda x: x @ WEIGHT, (512, 256)),
    "layers": (lambda x: hf.nn.relu(hf.nn.relu(x @ WEIGHT + 1) @ WEIGHT) @ WEIGHT, (256, 256)),
    "small": (lambda x: x * 2 + 1, (4, 8)),
}
WEIGHT = hf.asarray(np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32))


def per_call(call: Callable[[], Any], seconds: float = 0.02) -> float:
    """Seconds of the processor per call, of as many as take about so long."""
    count, took = 1, 0.0
    while took < seconds:
        count *= 2
        start = time.process_time()
        for _ in range(count):
            call()
        took = time.process_time() - start
    return took / count


def compared(sides: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Any]:
    """The sides in turns: medians in microseconds, and the quartiles of their ratios to the first."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, call in sides.items():
            times[name].append(per_call(call) * 1e6)
    first = next(iter(times))
    found: dict[str, Any] = {}
    for name, own in times.items():
        ratios = sorted(a / b for a, b in zip(own, times[first]))
        quartiles = ratios[len(ratios) // 4], statistics.median(ratios), ratios[-1 - len(ratios) // 4]
        found[name] = {"us": round(statistics.median(own), 3), "ratio": [round(r, 3) for r in quartiles]}
    return found


def calls() -> dict[str, Callable[[], Any]]:
    f = hf.function(lambda x, rate: x * rate)
    x, rate = hf.ones(10), hf.constant(0.3)
    numbers = [0.1 + k / 64 for k in range(64)]
    for given in (rate, *numbers[:3], 2, 3, 4):
        f(x, given)
    turn = [0]

    def of_float() -> Any:
        turn[0] = (turn[0] + 1) & 63
        return f(x, numbers[turn[0]])

    def of_int() -> Any:
        turn[0] = (turn[0] + 1) & 63
        return f(x, turn[0] + 2)

    def of_tensor() -> Any:
        turn[0] = (turn[0] + 1) & 63
        return f(x, rate)

    return {"a tensor": of_tensor, "floats": of_float, "ints": of_int}


def sides_of(body: Callable[[Any], Any], shape: tuple[int, int]) -> dict[str, Callable[[], Any]]:
    rows, columns = shape
    x = hf.asarray(np.random.default_rng(1).normal(size=shape).astype(np.float32))
    fixed = hf.function(body, reduce_retracing=False)
    varying = hf.function(body)
    for n in (rows + 1, rows + 2, rows):
        varying(hf.ones((n, columns)))
    varying(x), fixed(x)
    return {"fixed": lambda: fixed(x), "open": lambda: varying(x)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    hf.config.set_num_threads(1)
    found = {"calls": compared(calls(), options.rounds)}
    for name, (body, shape) in PROGRAMS.items():
        found[name] = compared(sides_of(body, shape), options.rounds)
    if options.json:
        print(json.dumps(found))
        return
    for name, sides in found.items():
        print(name)
        for side, figures in sides.items():
            low, middle, high = figures["ratio"]
            print(f"    {side:10s} {figures['us']:10.3f} us   {middle:.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
