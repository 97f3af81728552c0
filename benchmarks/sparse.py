"""Products with sparse matrices and message passing on a graph, beside SciPy, PyTorch and JAX.

    python benchmarks/sparse.py [--json] [--rounds N] [WORDS]

All take turns in one process, on HF_NUM_THREADS threads (JAX on all that it finds).  Figures are milliseconds by the
time of all processors and by the clock, the smallest of the rounds.  Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_NUM_THREADS", "1")
THREADS = os.environ["OMP_NUM_THREADS"] = os.environ["HF_NUM_THREADS"]
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np
import scipy.sparse

import hybridflow as hf

THERE = {name: importlib.util.find_spec(name) is not None for name in ("torch", "jax")}

Calls = dict[str, Callable[[], Any]]


def product(nodes: int, columns: int, edges: int) -> Calls:
    """A CSR matrix times a dense one, or a vector."""
    rng = np.random.default_rng(0)
    at = rng.integers(0, nodes, (2, edges))
    matrix = scipy.sparse.csr_array((rng.normal(size=edges).astype(np.float32), tuple(at)), shape=(nodes, nodes))
    x = rng.normal(size=(nodes, columns) if columns > 1 else nodes).astype(np.float32)
    ours, dense = hf.sparse.from_scipy(matrix), hf.asarray(x)
    compiled = hf.function(lambda a, x: a @ x)
    calls: Calls = {
        "ours": lambda: compiled(ours, dense).numpy(),
        "eager": lambda: ours @ dense,
        "scipy": lambda: matrix @ x,
    }
    if THERE["torch"]:
        import torch

        torch.set_num_threads(int(THREADS))
        theirs = torch.sparse_csr_tensor(matrix.indptr, matrix.indices, matrix.data, size=matrix.shape)
        operand = torch.tensor(x)
        calls["torch"] = lambda: theirs @ operand
    if THERE["jax"]:
        import jax
        from jax.experimental import sparse

        bcoo, there = sparse.BCOO.from_scipy_sparse(matrix), jax.numpy.asarray(x)
        jitted = jax.jit(lambda a, x: a @ x)
        calls["jax"] = lambda: jitted(bcoo, there).block_until_ready()
    return calls


def messages(nodes: int, columns: int, edges: int) -> Calls:
    """A message along each edge, added up at its end, and the derivatives of weights and features."""
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(0, nodes, edges)).astype(np.int32)
    starts = rng.integers(0, nodes, edges).astype(np.int32)
    weights = rng.normal(size=edges).astype(np.float32)
    x = rng.normal(size=(nodes, columns)).astype(np.float32)
    graph = hf.sparse.COO(np.stack([ends, starts], axis=1), weights, (nodes, nodes)).to_csr()
    features = hf.asarray(x)

    @hf.function
    def ours(graph: Any, features: Any) -> Any:
        def loss(weights: Any, features: Any) -> Any:
            return hf.sum(hf.nn.relu(graph.with_values(weights) @ features))

        return hf.grad(loss, argnums=(0, 1))(graph.values, features)

    calls: Calls = {"ours": lambda: ours(graph, features)[1].numpy()}
    if THERE["torch"]:
        import torch

        torch.set_num_threads(int(THREADS))
        to, of = torch.tensor(ends, dtype=torch.int64), torch.tensor(starts, dtype=torch.int64)
        w, f = torch.tensor(weights, requires_grad=True), torch.tensor(x, requires_grad=True)

        def theirs() -> Any:
            out = torch.zeros(nodes, columns).index_add(0, to, f[of] * w[:, None])
            return torch.autograd.grad(out.relu().sum(), (w, f))

        calls["torch"] = theirs
    if THERE["jax"]:
        import jax

        def loss(w: Any, f: Any) -> Any:
            return jax.numpy.sum(jax.nn.relu(jax.ops.segment_sum(f[starts] * w[:, None], ends, nodes)))

        gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))
        calls["jax"] = lambda: jax.block_until_ready(gradient(weights, x))
    return calls


CASES: dict[str, Callable[[], Calls]] = {
    "spmv 100k, 1M entries": lambda: product(100_000, 1, 1_000_000),
    "spmm 30k x 64, 300k entries": lambda: product(30_000, 64, 300_000),
    "spmm 100k x 32, 1M entries": lambda: product(100_000, 32, 1_000_000),
    "spmm 5k x 128, 50k entries": lambda: product(5_000, 128, 50_000),
    "messages 100k x 32, 1M edges": lambda: messages(100_000, 32, 1_000_000),
}


def measure(calls: Calls, rounds: int) -> dict[str, tuple[float, float]]:
    best = {name: (float("inf"), float("inf")) for name in calls}
    for k in range(rounds + 2):
        for name, call in calls.items():
            used, start = time.process_time(), time.perf_counter()
            call()
            spent = (time.process_time() - used) * 1e3, (time.perf_counter() - start) * 1e3
            if k >= 2:
                best[name] = min(best[name][0], spent[0]), min(best[name][1], spent[1])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    for name, case in CASES.items():
        if options.words and not any(word in name for word in options.words):
            continue
        found = measure(case(), options.rounds)
        if options.json:
            print(json.dumps({"case": name, "threads": THREADS, "ms": found}))
            continue
        print(f"{name}, {THREADS} threads")
        for who, (used, clock) in found.items():
            ratio = used / found["ours"][0], clock / found["ours"][1]
            print(
                f"  {who:6} {used:8.2f} ms of processors, {clock:8.2f} ms; {ratio[0]:5.2f} and {ratio[1]:5.2f} of ours"
            )


if __name__ == "__main__":
    main()
