"""Dense layers with weights of 8 and 4 bits, beside the same layers with floats and PyTorch's.

    python benchmarks/quantized.py [--json] [--rounds N] [--width N]

All take turns in one process, on HF_NUM_THREADS threads.  Figures are microseconds, medians of the rounds with the
quarters of the spread.  PyTorch is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_NUM_THREADS", "1")
os.environ["OMP_NUM_THREADS"] = os.environ["HF_NUM_THREADS"]
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf

SCHEMES: dict[str, Callable[[Any], Any]] = {
    "float32": lambda model: None,
    "int8 weights": hf.quantize.weights,
    "int4 weights": lambda model: hf.quantize.weights(model, "int4"),
    "int4 weights, groups of 128": lambda model: hf.quantize.weights(model, "int4", group_size=128),
    "int8 dynamic": hf.quantize.dynamic,
    "int8 static": lambda model: hf.quantize.static(model, np.ones((2, model.layers[0].kernel.shape[0]), np.float32)),
}


def calls(width: int, batch: int) -> dict[str, Callable[[], Any]]:
    """Two dense layers of that width, in each of the schemes."""
    x = hf.asarray(np.random.default_rng(0).normal(size=(batch, width)), dtype="float32")
    made: dict[str, Callable[[], Any]] = {}
    for name, quantize in SCHEMES.items():
        model = hf.Sequential([hf.Input((width,)), *(hf.layers.Dense(width, use_bias=False) for _ in range(2))])
        quantize(model)
        compiled = hf.function(lambda x, model=model: model(x))
        made[name] = lambda compiled=compiled: compiled(x)
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(int(os.environ["HF_NUM_THREADS"]))
        theirs = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(2)))
        operand = torch.tensor(x.numpy())

        def call() -> Any:
            with torch.inference_mode():
                return theirs(operand)

        made["torch float32"] = call
    return made


def measured(width: int, batch: int, rounds: int) -> dict[str, list[float]]:
    """Microseconds: the median and the quarters of the spread."""
    programs = calls(width, batch)
    for call in programs.values():
        call()
    seen: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, call in programs.items():
            start = time.perf_counter()
            call()
            seen[name].append(1e6 * (time.perf_counter() - start))
    return {name: statistics.quantiles(times, n=4) for name, times in seen.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--width", type=int, default=2048)
    options = parser.parse_args()
    results = {batch: measured(options.width, batch, options.rounds) for batch in (1, 8, 64)}
    if options.json:
        print(json.dumps(results))
        return
    for batch, rows in results.items():
        print(f"batch {batch}, two layers {options.width} x {options.width}")
        for name, (low, median, high) in rows.items():
            print(
                f"  {name:30} {median:9.0f}  ({low:.0f} to {high:.0f})  {rows['float32'][1] / median:5.2f} of float32"
            )


if __name__ == "__main__":
    main()
