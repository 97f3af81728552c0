"""What the gradient of an eager program costs, beside the same step compiled, and PyTorch's.

    python benchmarks/gradients.py [--json] [--rounds N]

A tape is opened, the loss is computed op by op, and its gradient is asked for.  The three ways take turns in one
process, on one thread.  Figures are microseconds a step: medians of the rounds, and how far the middle half of the
eager ones spreads.
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
from typing import Any, NamedTuple

os.environ["HF_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf

if importlib.util.find_spec("torch") is not None:
    import torch

    torch.set_num_threads(1)
else:
    torch = None

Step = Callable[[], Any]
WARM = 12  # steps before anything is timed: functions, and the backward pass, are compiled by then
SECONDS = 2e-3  # of one round of one way


class Case(NamedTuple):
    step: Step
    torch: Step | None


def square() -> Case:
    """The sum of the squares of ten floats."""
    values = np.linspace(-1, 1, 10, dtype=np.float32)
    v = hf.asarray(values)

    def step() -> Any:
        with hf.GradientTape() as tape:
            tape.watch(v)
            y = hf.sum(v * v)
        return tape.gradient(y, v)

    if torch is None:
        return Case(step, None)
    t = torch.tensor(values, requires_grad=True)
    return Case(step, lambda: torch.autograd.grad(torch.sum(t * t), t))


def network(batch: int, inputs: int, hidden: int, classes: int) -> Case:
    """The cross-entropy of a network of two layers with respect to its weights."""
    rng = np.random.default_rng(0)
    x = rng.random((batch, inputs), np.float32)
    labels = np.eye(classes, dtype=np.float32)[rng.integers(0, classes, batch)]
    shapes = ((inputs, hidden), (hidden,), (hidden, classes), (classes,))
    weights = [0.1 * rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    variables = [hf.Variable(w) for w in weights]
    a, one_hot = hf.asarray(x), hf.asarray(labels)

    def step() -> Any:
        w1, b1, w2, b2 = variables
        with hf.GradientTape() as tape:
            h = hf.nn.relu(a @ w1 + b1)
            loss = hf.losses.softmax_cross_entropy(one_hot, h @ w2 + b2)
        return tape.gradient(loss, variables)

    if torch is None:
        return Case(step, None)
    ta, tl = torch.from_numpy(x), torch.from_numpy(labels)
    ts = [torch.tensor(w, requires_grad=True) for w in weights]

    def theirs() -> Any:
        h = torch.relu(ta @ ts[0] + ts[1])
        return torch.autograd.grad(torch.nn.functional.cross_entropy(h @ ts[2] + ts[3], tl), ts)

    return Case(step, theirs)


def cases() -> dict[str, Case]:
    return {
        "sum(v * v), 10 floats": square(),
        "64-128-10 network, batch 64": network(64, 64, 128, 10),
        "8-16-4 network, batch 8": network(8, 8, 16, 4),
        "784-512-10 network, batch 64": network(64, 784, 512, 10),
    }


def round_of(step: Step, count: int) -> float:
    """Microseconds of one of ``count`` steps."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count * 1e6


def figures(case: Case, rounds: int) -> dict[str, float]:
    ways: dict[str, Step] = {"eager": case.step, "compiled": hf.function(case.step)}
    if case.torch is not None:
        ways["torch"] = case.torch
    counts = {}
    for name, step in ways.items():
        round_of(step, WARM)
        counts[name] = max(1, int(SECONDS / (round_of(step, 3) * 1e-6)))
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, step in ways.items():
            times[name].append(round_of(step, counts[name]))
    found = {name: statistics.median(values) for name, values in times.items()}
    low, _, high = statistics.quantiles(times["eager"], n=4)
    return {**found, "spread": (high - low) / found["eager"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    found = {name: figures(case, given.rounds) for name, case in cases().items()}
    if given.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{'gradient of':30} {'eager':>9} {'spread':>7} {'compiled':>9} {'eager/it':>9} {'torch':>9} {'eager/it':>9}")
    for name, row in found.items():
        theirs = f"{row['torch']:9.1f} {row['eager'] / row['torch']:9.2f}" if "torch" in row else ""
        ratio = row["eager"] / row["compiled"]
        print(f"{name:30} {row['eager']:9.1f} {row['spread']:7.0%} {row['compiled']:9.1f} {ratio:9.2f} {theirs}")


if __name__ == "__main__":
    main()
