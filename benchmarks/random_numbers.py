"""What a million random numbers cost, beside NumPy's and PyTorch's.

    python benchmarks/random_numbers.py [--json] [--rounds N]

The three take turns in one process, on one thread, each with a generator of its own.  Figures are milliseconds: medians
of the rounds, and how far the middle half of ours spreads.
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

COUNT = 1_000_000
WARM = 5  # draws before anything is timed: what is compiled is compiled by then
LOGITS = np.log(np.array([1.0, 2.0, 3.0, 1.0, 0.5, 0.5, 1.0, 1.0], np.float32))
CHANCES = np.exp(LOGITS.astype(np.float64)) / np.exp(LOGITS.astype(np.float64)).sum()

Draw = Callable[[], Any]


class Case(NamedTuple):
    ours: Draw
    numpy: Draw
    torch: Draw | None


def cases() -> dict[str, Case]:
    g, rng, logits = hf.random.Generator(1), np.random.default_rng(1), hf.asarray(LOGITS)
    size, f32 = (COUNT,), np.float32
    of_torch: dict[str, Draw] = {} if torch is None else torch_draws()

    def case(name: str, ours: Draw, numpy: Draw) -> tuple[str, Case]:
        return name, Case(ours, numpy, of_torch.get(name))

    return dict(
        [
            case("uniform", lambda: g.uniform(size), lambda: rng.random(COUNT, dtype=f32)),
            case("uniform float64", lambda: g.uniform(size, dtype=hf.float64), lambda: rng.random(COUNT)),
            case("normal", lambda: g.normal(size), lambda: rng.standard_normal(COUNT, dtype=f32)),
            case("normal float64", lambda: g.normal(size, dtype=hf.float64), lambda: rng.standard_normal(COUNT)),
            case("exponential", lambda: g.exponential(size), lambda: rng.standard_exponential(COUNT, dtype=f32)),
            case("bernoulli", lambda: g.bernoulli(0.3, size), lambda: rng.random(COUNT, dtype=f32) < 0.3),
            case("integers below 10", lambda: g.randint(size, 0, 10), lambda: rng.integers(0, 10, COUNT)),
            case("8 categories", lambda: g.categorical(logits, size), lambda: rng.choice(8, COUNT, p=CHANCES)),
            case("gamma 2.5", lambda: g.gamma(size, 2.5), lambda: rng.standard_gamma(2.5, COUNT, dtype=f32)),
            case("gamma 0.5", lambda: g.gamma(size, 0.5), lambda: rng.standard_gamma(0.5, COUNT, dtype=f32)),
            case("poisson 4", lambda: g.poisson(size, 4.0), lambda: rng.poisson(4.0, COUNT)),
            case("poisson 100", lambda: g.poisson(size, 100.0), lambda: rng.poisson(100.0, COUNT)),
            case("binomial 100", lambda: g.binomial(size, 100, 0.3), lambda: rng.binomial(100, 0.3, COUNT)),
            case("permutation", lambda: g.permutation(COUNT), lambda: rng.permutation(COUNT)),
        ]
    )


def torch_draws() -> dict[str, Draw]:
    chances = torch.tensor(CHANCES)

    def full(value: float) -> Any:
        return torch.full((COUNT,), value)

    return {
        "uniform": lambda: torch.rand(COUNT),
        "uniform float64": lambda: torch.rand(COUNT, dtype=torch.float64),
        "normal": lambda: torch.randn(COUNT),
        "normal float64": lambda: torch.randn(COUNT, dtype=torch.float64),
        "exponential": lambda: torch.empty(COUNT).exponential_(),
        "bernoulli": lambda: torch.empty(COUNT, dtype=torch.bool).bernoulli_(0.3),
        "integers below 10": lambda: torch.randint(0, 10, (COUNT,)),
        "8 categories": lambda: torch.multinomial(chances, COUNT, replacement=True),
        "gamma 2.5": lambda: torch._standard_gamma(full(2.5)),
        "gamma 0.5": lambda: torch._standard_gamma(full(0.5)),
        "poisson 4": lambda: torch.poisson(full(4.0)),
        "poisson 100": lambda: torch.poisson(full(100.0)),
        "binomial 100": lambda: torch.binomial(full(100.0), full(0.3)),
        "permutation": lambda: torch.randperm(COUNT),
    }


def measured(case: Case, rounds: int) -> dict[str, float]:
    ways = {"ours": case.ours, "numpy": case.numpy, **({} if case.torch is None else {"torch": case.torch})}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for k in range(WARM + rounds):
        for way, draw in ways.items():
            start = time.perf_counter()
            draw()
            if k >= WARM:
                times[way].append((time.perf_counter() - start) * 1e3)
    found = {way: statistics.median(values) for way, values in times.items()}
    low, _, high = statistics.quantiles(times["ours"], n=4)
    return {**found, "spread": (high - low) / 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    results = {name: measured(case, options.rounds) for name, case in cases().items()}
    if options.json:
        print(json.dumps(results))
        return
    print(f"{'ms for 1 000 000 numbers':26} {'ours':>8} {'±':>6} {'NumPy':>8} {'PyTorch':>8}")
    for name, r in results.items():
        print(f"{name:26} {r['ours']:8.2f} {r['spread']:6.2f} {r['numpy']:8.2f} {r.get('torch', float('nan')):8.2f}")


if __name__ == "__main__":
    main()
