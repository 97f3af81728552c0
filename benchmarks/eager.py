"""What an eager operation on small tensors costs.

    python benchmarks/eager.py [--json] [--only WORDS] [--rounds N]

Each operation is done by hybridflow, by NumPy and, where it is installed, by PyTorch on one thread, in turn: one round
times a batch of calls of each.  Figures are microseconds per call: the median of the rounds, and how far the middle
half of ours spreads.  The last lines give the geometric means of our times over theirs.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import math
import operator
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

Call = Callable[[], Any]
BATCH = 200
WARM = 40  # calls before anything is timed: plans are made, caches filled


class Arrays(NamedTuple):
    """The operands: matrices of 3 x 4, one of 4 x 3, a row, a mask, a vector of ten, positions, and logits."""

    x: Any
    y: Any
    z: Any
    row: Any
    mask: Any
    v: Any
    w: Any
    at: Any


class Case(NamedTuple):
    ours: Call
    numpy: Call | None
    torch: Call | None


def operands() -> tuple[Arrays, Arrays, Arrays]:
    """The same operands for hybridflow, NumPy and PyTorch."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((3, 4)).astype(np.float32) for _ in range(2))
    row, v, w = (rng.standard_normal(n).astype(np.float32) for n in (4, 10, 10))
    given = Arrays(x, y, np.ascontiguousarray(y.T), row, x > 0, v, w, np.array([2, 0, 1]))
    theirs = Arrays(*map(torch.from_numpy, given)) if torch is not None else given
    return Arrays(*map(hf.asarray, given)), given, theirs


def makers() -> tuple[Call, Call, Call]:
    """What makes float32 arrays of nested lists in hybridflow, NumPy and PyTorch."""
    return (
        hf.asarray,
        functools.partial(np.asarray, dtype=np.float32),
        torch.tensor if torch is not None else np.asarray,
    )


def cases() -> dict[str, Case]:
    """The operations by name."""
    h, n, t = operands()
    found: dict[str, Case] = {}

    def add(name: str, ours: Call, numpy: Call | None = None, pytorch: Call | None = None) -> None:
        found[name] = Case(ours, numpy, pytorch if torch is not None else None)

    add("x + y", lambda: h.v + h.w, lambda: n.v + n.w, lambda: t.v + t.w)
    add("x * 2.0", lambda: h.v * 2.0, lambda: n.v * 2.0, lambda: t.v * 2.0)
    add("-x", lambda: -h.v, lambda: -n.v, lambda: -t.v)
    add("x > y", lambda: h.v > h.w, lambda: n.v > n.w, lambda: t.v > t.w)
    add("x[0]", lambda: h.v[0], lambda: n.v[0], lambda: t.v[0])
    add("x[1:3]", lambda: h.v[1:3], lambda: n.v[1:3], lambda: t.v[1:3])
    add("x ** 2", lambda: h.x**2, lambda: n.x**2, lambda: t.x**2)
    add("relu", lambda: hf.nn.relu(h.x), lambda: np.maximum(n.x, 0), lambda: torch.relu(t.x))
    add(
        "maximum(x, row)",
        lambda: hf.maximum(h.x, h.row),
        lambda: np.maximum(n.x, n.row),
        lambda: torch.maximum(t.x, t.row),
    )
    add(
        "where(mask, x, y)",
        lambda: hf.where(h.mask, h.x, h.y),
        lambda: np.where(n.mask, n.x, n.y),
        lambda: torch.where(t.mask, t.x, t.y),
    )
    add(
        "where(mask, x, 0)",
        lambda: hf.where(h.mask, h.x, 0.0),
        lambda: np.where(n.mask, n.x, np.float32(0)),
        lambda: torch.where(t.mask, t.x, 0.0),
    )
    add("clip", lambda: hf.clip(h.x, 0.0, 1.0), lambda: np.clip(n.x, 0, 1), lambda: torch.clip(t.x, 0.0, 1.0))
    for name in ("exp", "tanh", "square", "abs"):
        add(
            name,
            *(functools.partial(getattr(module, name), x) for module, x in ((hf, h.x), (np, n.x), (torch or np, t.x))),
        )
    add("sum", lambda: hf.sum(h.x), lambda: np.sum(n.x), lambda: torch.sum(t.x))
    add("sum(axis=1)", lambda: hf.sum(h.x, axis=1), lambda: np.sum(n.x, axis=1), lambda: torch.sum(t.x, dim=1))
    add("mean", lambda: hf.mean(h.x), lambda: np.mean(n.x), lambda: torch.mean(t.x))
    add("var", lambda: hf.var(h.x), lambda: np.var(n.x), lambda: torch.var(t.x))
    add("max(axis=1)", lambda: hf.max(h.x, axis=1), lambda: np.max(n.x, axis=1), lambda: torch.amax(t.x, dim=1))
    add("argmax", lambda: hf.argmax(h.x, axis=1), lambda: np.argmax(n.x, axis=1), lambda: torch.argmax(t.x, dim=1))
    add("softmax", lambda: hf.nn.softmax(h.x), None, lambda: torch.softmax(t.x, -1))
    add("matmul", lambda: hf.matmul(h.x, h.z), lambda: np.matmul(n.x, n.z), lambda: torch.matmul(t.x, t.z))
    add(
        "einsum",
        lambda: hf.einsum("ij,jk->ik", h.x, h.z),
        lambda: np.einsum("ij,jk->ik", n.x, n.z),
        lambda: torch.einsum("ij,jk->ik", t.x, t.z),
    )
    add("concat", lambda: hf.concat([h.x, h.y]), lambda: np.concatenate([n.x, n.y]), lambda: torch.concat([t.x, t.y]))
    add("stack", lambda: hf.stack([h.x, h.y]), lambda: np.stack([n.x, n.y]), lambda: torch.stack([t.x, t.y]))
    add("take", lambda: hf.take(h.x, h.at, 0), lambda: np.take(n.x, n.at, 0), lambda: torch.index_select(t.x, 0, t.at))
    add("sort", lambda: hf.sort(h.x), lambda: np.sort(n.x), lambda: torch.sort(t.x))
    add(
        "cumulative_sum",
        lambda: hf.cumulative_sum(h.x, 1),
        lambda: np.cumsum(n.x, 1),
        lambda: torch.cumsum(t.x, 1),
    )
    add(
        "mean_squared_error",
        lambda: hf.losses.mean_squared_error(h.x, h.y),
        None,
        lambda: torch.nn.functional.mse_loss(t.x, t.y),
    )
    add("astype", lambda: hf.astype(h.x, hf.float64), lambda: n.x.astype(np.float64), lambda: t.x.to(torch.float64))
    add("reshape", lambda: hf.reshape(h.x, (4, 3)), lambda: np.reshape(n.x, (4, 3)), lambda: torch.reshape(t.x, (4, 3)))
    add(
        "permute_dims",
        lambda: hf.permute_dims(h.x, (1, 0)),
        lambda: np.transpose(n.x, (1, 0)),
        lambda: torch.permute(t.x, (1, 0)),
    )
    add("expand_dims", lambda: hf.expand_dims(h.x, 0), lambda: np.expand_dims(n.x, 0), lambda: torch.unsqueeze(t.x, 0))
    add("repr", lambda: repr(h.v), lambda: repr(n.v), lambda: repr(t.v))
    add("asarray([[..]])", *(functools.partial(make, [[1.0, 2.0], [3.0, 4.0]]) for make in makers()))
    add(
        "meshgrid",
        lambda: hf.meshgrid(h.v, h.w),
        lambda: np.meshgrid(n.v, n.w),
        lambda: torch.meshgrid(t.v, t.w, indexing="xy"),
    )
    add("np.sum(x)", lambda: np.sum(h.v), lambda: np.sum(n.v), lambda: torch.sum(t.v))
    add("ndarray * x", lambda: n.w * h.v, lambda: n.w * n.v, lambda: t.w * t.v)
    add(
        "np.concatenate([x, y])",
        lambda: np.concatenate([h.v, h.w]),
        lambda: np.concatenate([n.v, n.w]),
        lambda: torch.concat([t.v, t.w]),
    )
    square = [[2.0, 1.0], [1.0, 3.0]]
    given = [(module.linalg, make(square)) for module, make in zip((hf, np, torch or np), makers())]
    for name in ("inv", "det", "cholesky", "qr", "svd", "eigh", "slogdet"):
        add(f"linalg.{name}", *(functools.partial(getattr(module, name), x) for module, x in given))
    add("linalg.solve", *(functools.partial(module.solve, x, x) for module, x in given))
    add(
        "linalg.cross",
        *(
            functools.partial(module.cross, x, x)
            for module, x in ((m.linalg, make([1.0, 2.0, 3.0])) for m, make in zip((hf, np, torch or np), makers()))
        ),
    )
    add("x[0] = 1.0", *(functools.partial(operator.setitem, make([1.0, 2.0, 3.0]), 0, 1.0) for make in makers()))
    add("split", lambda: hf.split(h.x, 2, 1), lambda: np.split(n.x, 2, 1), lambda: torch.split(t.x, 2, 1))
    add("zeros", lambda: hf.zeros((3, 4)), lambda: np.zeros((3, 4), np.float32), lambda: torch.zeros((3, 4)))
    add("arange", lambda: hf.arange(10), lambda: np.arange(10), lambda: torch.arange(10))
    rng = np.random.default_rng(0)
    add("random.normal", lambda: hf.random.normal((3,)), lambda: rng.standard_normal(3), lambda: torch.randn((3,)))
    return found


def timed(call: Call) -> float:
    """Microseconds per call, in a batch."""
    started = time.perf_counter()
    for _ in range(BATCH):
        call()
    return (time.perf_counter() - started) / BATCH * 1e6


def measured(case: Case, rounds: int) -> dict[str, float]:
    """Medians of the calls that the case has, taken in turn, and the spread of ours."""
    calls = {name: call for name, call in case._asdict().items() if call is not None}
    for call in calls.values():
        for _ in range(WARM):
            call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(timed(call))
    quarters = statistics.quantiles(times["ours"], n=4)
    return {**{name: statistics.median(ts) for name, ts in times.items()}, "spread": quarters[2] - quarters[0]}


def mean_ratio(rows: dict[str, dict[str, float]], other: str) -> float:
    """The geometric mean of our times over those of ``other``."""
    ratios = [row["ours"] / row[other] for row in rows.values() if other in row]
    return math.exp(statistics.mean(map(math.log, ratios))) if ratios else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="comma-separated words, one of which names must contain")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    words = options.only.split(",")
    rows: dict[str, dict[str, float]] = {}
    if not options.json:
        print(f"{'operation':20}{'torch':>8}{'numpy':>8}{'ours':>8}{'+-':>7}{'ours/torch':>12}")
    for name, case in cases().items():
        if not any(word in name for word in words):
            continue
        rows[name] = row = measured(case, options.rounds)
        if not options.json:
            ratio = f"{row['ours'] / row['torch']:12.2f}" if "torch" in row else ""
            others = "".join(f"{row[other]:8.2f}" if other in row else f"{'':8}" for other in ("torch", "numpy"))
            print(f"{name:20}{others}{row['ours']:8.2f}{row['spread']:7.2f}{ratio}", flush=True)
    means = {other: mean_ratio(rows, other) for other in ("torch", "numpy")}
    if options.json:
        print(json.dumps({"microseconds": rows, "geometric_means": means}))
    else:
        print("\n".join(f"geometric mean of ours/{other}: {value:.2f}" for other, value in means.items()))


if __name__ == "__main__":
    main()
