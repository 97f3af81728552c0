"""What Jacobians and Hessians cost, beside torch.func and JAX's.

    python benchmarks/hessians.py [--json] [--rounds N]

The Hessian of a small network's loss with respect to its weights, and the Jacobian of its outputs with respect to its
inputs, compiled.  The ways take turns in one process, on one thread.  Figures are microseconds: medians of the rounds,
and how far the middle half of ours spreads; and milliseconds of the first call.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ["HF_NUM_THREADS"] = "1"
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf

SECONDS = 5e-3  # of one round of one way
SIZES = ((4, 16, 8, 1), (16, 64, 32, 10))  # of the layers
BATCH = 32

Step = Callable[[], Any]


class Case(NamedTuple):
    name: str
    ways: dict[str, Step]


def data(sizes: tuple[int, ...]) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH, sizes[0])).astype(np.float32)
    weights = [
        (rng.normal(size=shape) / shape[0] ** 0.5).astype(np.float32) for shape in itertools.pairwise(sizes)
    ]  # fmt: skip
    return x, weights


def network(tanh: Callable[[Any], Any], x: Any, weights: Any) -> Any:
    *inner, last = weights
    for w in inner:
        x = tanh(x @ w)
    return x @ last


def ours(x: np.ndarray, weights: list[np.ndarray]) -> dict[str, Step]:
    given, parts = hf.asarray(x), [hf.asarray(w) for w in weights]

    def loss(w: Any) -> Any:
        return hf.mean(network(hf.tanh, given, w) ** 2)

    hessian = hf.function(hf.hessian(loss))
    jacobian = hf.function(hf.vmap(hf.jacrev(lambda row: network(hf.tanh, row, parts))))
    return {"hessian": lambda: hessian(parts), "jacobian": lambda: jacobian(given)}


def of_torch(x: np.ndarray, weights: list[np.ndarray]) -> dict[str, Step]:
    import torch

    torch.set_num_threads(1)
    given, parts = torch.from_numpy(x), [torch.from_numpy(w) for w in weights]

    def loss(w: Any) -> Any:
        return torch.mean(network(torch.tanh, given, w) ** 2)

    hessian = torch.func.hessian(loss)
    jacobian = torch.func.vmap(torch.func.jacrev(lambda row: network(torch.tanh, row, parts)))
    return {"hessian": lambda: hessian(parts), "jacobian": lambda: jacobian(given)}


def of_jax(x: np.ndarray, weights: list[np.ndarray]) -> dict[str, Step]:
    import jax
    import jax.numpy as jnp

    given, parts = jnp.asarray(x), [jnp.asarray(w) for w in weights]

    def loss(w: Any) -> Any:
        return jnp.mean(network(jnp.tanh, given, w) ** 2)

    hessian = jax.jit(jax.hessian(loss))
    jacobian = jax.jit(jax.vmap(jax.jacrev(lambda row: network(jnp.tanh, row, parts))))
    return {
        "hessian": lambda: jax.block_until_ready(hessian(parts)),
        "jacobian": lambda: jax.block_until_ready(jacobian(given)),
    }


def cases() -> list[Case]:
    peers = {"torch": of_torch, "jax": of_jax}
    makers = {"hybridflow": ours, **{name: make for name, make in peers.items() if importlib.util.find_spec(name)}}
    found = []
    for sizes in SIZES:
        made = {name: make(*data(sizes)) for name, make in makers.items()}
        title = "-".join(map(str, sizes))
        found += [
            Case(f"{what} of {title}, batch {BATCH}", {name: steps[what] for name, steps in made.items()})
            for what in ("hessian", "jacobian")
        ]
    return found


def seconds_of(step: Step, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def figures(case: Case, rounds: int) -> dict[str, Any]:
    first = {name: seconds_of(step, 1) * 1e3 for name, step in case.ways.items()}
    counts = {}
    for name, step in case.ways.items():
        seconds_of(step, 2)
        counts[name] = max(1, int(SECONDS / seconds_of(step, 3)))
    times: dict[str, list[float]] = {name: [] for name in case.ways}
    for _ in range(rounds):
        for name, step in case.ways.items():
            times[name].append(seconds_of(step, counts[name]) * 1e6)
    low, _, high = statistics.quantiles(times["hybridflow"], n=4)
    return {
        "case": case.name,
        "spread": (high - low) / statistics.median(times["hybridflow"]),
        **{name: statistics.median(own) for name, own in times.items()},
        **{f"first {name}": value for name, value in first.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    found = [figures(case, options.rounds) for case in cases()]
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for row in found:
        ways = [name for name in row if name not in ("case", "spread") and not name.startswith("first")]
        text = ", ".join(f"{name} {row[name]:.0f} us (first {row[f'first {name}']:.0f} ms)" for name in ways)
        print(f"{row['case']:38} {text}; spread {row['spread']:.0%}")


if __name__ == "__main__":
    main()
