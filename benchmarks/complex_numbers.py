"""Complex numbers: chains, functions and products, beside NumPy's and JAX's, on one thread.

    python benchmarks/complex_numbers.py [--only NAME] [--rounds N]

Sides take turns; JAX is left out where it is not installed.  Printed are the medians in milliseconds of CPU time of the
calling thread, the spread of ours (largest over least), and what each peer takes over ours.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

import hybridflow as hf

try:
    import jax
except ImportError:
    jax = None

COUNT, ROWS = 1_000_000, 512


def chain(np: Any, z: Any, w: Any) -> Any:
    return (z * w + z) * np.conj(w) - w * 0.5


def rotation(np: Any, z: Any, w: Any) -> Any:
    return np.exp(1j * np.real(w)) * z


def quotient(np: Any, z: Any, w: Any) -> Any:
    return z / w


def length(np: Any, z: Any, w: Any) -> Any:
    return np.abs(z - w)


def logarithm(np: Any, z: Any, w: Any) -> Any:
    return np.log(z)


def root(np: Any, z: Any, w: Any) -> Any:
    return np.sqrt(z)


def total(np: Any, z: Any, w: Any) -> Any:
    return np.sum(z * w)


def matmul(np: Any, z: Any, w: Any) -> Any:
    return z @ w


PROGRAMS: tuple[Callable[..., Any], ...] = (chain, rotation, quotient, length, logarithm, root, total, matmul)


def measured(sides: list[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """The seconds of each call, in turns."""
    for run in sides:
        for _ in range(3):
            run()
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for run, taken in zip(sides, times):
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    hf.config.set_num_threads(1)
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
    ratios: dict[str, list[float]] = {}
    for dtype in ("complex64", "complex128"):
        for program in PROGRAMS:
            if options.only not in program.__name__:
                continue
            rng = np.random.default_rng(0)
            shape = (ROWS, ROWS) if program is matmul else (COUNT,)
            arrays = [(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype) for _ in range(2)]
            tensors = [hf.asarray(a) for a in arrays]
            compiled = hf.function(lambda z, w, f=program: f(hf, z, w))
            sides = {
                "hybridflow": lambda c=compiled, t=tensors: c(*t),
                "NumPy": lambda f=program, a=arrays: f(np, *a),
            }
            if jax is not None:
                theirs = jax.jit(lambda z, w, f=program: f(jax.numpy, z, w))
                given = [jax.numpy.asarray(a) for a in arrays]
                sides["JAX"] = lambda c=theirs, t=given: c(*t).block_until_ready()
            times = dict(zip(sides, measured(list(sides.values()), options.rounds)))
            ours = times.pop("hybridflow")
            line = f"{program.__name__:10s} {dtype:10s} {statistics.median(ours) * 1e3:8.2f}"
            line += f" (spread {max(ours) / min(ours):.2f})"
            for peer, taken in times.items():
                ratio = statistics.median(taken) / statistics.median(ours)
                ratios.setdefault(peer, []).append(ratio)
                line += f"  {peer} {statistics.median(taken) * 1e3:8.2f}, ratio {ratio:.2f}"
            print(line, flush=True)
    for peer, found in ratios.items():
        print(f"geometric mean over {peer}: {statistics.geometric_mean(found):.2f}, least {min(found):.2f}")


if __name__ == "__main__":
    main()
