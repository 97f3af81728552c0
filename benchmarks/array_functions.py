"""Array functions of a million numbers, compiled, beside NumPy's and, where it is installed, JAX's, on one thread.

    python benchmarks/array_functions.py [--only NAME] [--rounds N]

All sides take turns.  Printed are the medians of the CPU time in milliseconds, and those of the others over ours, from
the worst on.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

import hybridflow as hf

try:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = jnp = None

N = 1_000_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=N).astype(np.float32)
HOLES = np.where(RNG.uniform(size=N) < 0.1, np.nan, X).astype(np.float32).reshape(1000, 1000)
PLACES = np.linspace(-4, 4, 1000, dtype=np.float32)
FEW = np.hanning(33).astype(np.float32)
I = RNG.integers(0, 1000, N)
BITS = RNG.uniform(size=N) < 0.5
BYTES = RNG.integers(0, 256, N // 8).astype(np.uint8)
POINTS = RNG.normal(size=(N // 10, 2)).astype(np.float32)
ROWS = X.reshape(1000, 1000)
# A function of a module and of arrays; True where the function has no JAX of its own.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "nansum": (lambda m, x: m.nansum(x, axis=1), (HOLES,)),
    "nanmean": (lambda m, x: m.nanmean(x, axis=0), (HOLES,)),
    "nanvar": (lambda m, x: m.nanvar(x, axis=1), (HOLES,)),
    "nanmax": (lambda m, x: m.nanmax(x, axis=1), (HOLES,)),
    "nanargmax": (lambda m, x: m.nanargmax(x, axis=1), (HOLES,)),
    "nancumsum": (lambda m, x: m.nancumsum(x, axis=1), (HOLES,)),
    "cummax": (lambda m, x: _accumulated(m, "cummax", "maximum", x), (X,)),
    "cummax of rows": (lambda m, x: _accumulated(m, "cummax", "maximum", x), (ROWS,)),
    "cumlogsumexp": (lambda m, x: _accumulated(m, "cumlogsumexp", "logaddexp", x), (X,)),
    "ediff1d": (lambda m, x: m.ediff1d(x), (X,)),
    "trapezoid": (lambda m, x: m.trapezoid(x), (X,)),
    "gradient": (lambda m, x: m.gradient(x), (X,)),
    "unwrap": (lambda m, x: m.unwrap(x * 3), (X,)),
    "interp": (lambda m, x, p: m.interp(x, p, p * p), (X, PLACES)),
    "convolve": (lambda m, x, w: m.convolve(x, w), (X, FEW)),
    "convolve, long": (lambda m, x, w: m.convolve(x, w), (X[:100_000], X[:1000])),
    "correlate": (lambda m, x, w: m.correlate(x, w, "same"), (X, FEW)),
    "polyval": (lambda m, x: m.polyval(m.asarray([1.0, -2.0, 3.0, 0.5], dtype="float32"), x), (X,)),
    "polyfit": (lambda m, x, y: m.polyfit(x, y, 3), (X[:10_000], X[10_000:20_000])),
    "digitize": (lambda m, x, p: m.digitize(x, p), (X, PLACES)),
    "histogramdd": (lambda m, x: m.histogramdd(x, (20, 20))[0], (POINTS,)),
    "bincount": (lambda m, i, w: _bincount(m, i, w), (I, X)),
    "unique": (lambda m, i: m.unique(i) if m is not jnp else m.unique(i, size=1000), (I,)),
    "partition": (lambda m, x: m.partition(x, 1000), (X,)),
    "argpartition": (lambda m, x: m.argpartition(x, 1000), (X,)),
    "partition of rows": (lambda m, x: m.partition(x, 5, axis=1), (ROWS,)),
    "lexsort": (lambda m, i, x: m.lexsort((x, i)), (I, X)),
    "select": (lambda m, x: m.select([x < 0, x > 1], [x * 2, x * x], 0.5), (X,)),
    "choose": (lambda m, i, x: m.choose(i % 3, [x, -x, x + x]), (I, X)),
    "rot90": (lambda m, x: m.rot90(x) + 0, (ROWS,)),
    "kron": (lambda m, x, y: m.kron(x, y), (ROWS[:20, :50], ROWS[:20, :50])),
    "vander": (lambda m, x: m.vander(x, 8), (X[:100_000],)),
    "unravel_index": (lambda m, i: m.unravel_index(i, (10, 10, 10)), (I,)),
    "ravel_multi_index": (lambda m, i: m.ravel_multi_index((i, i), (1000, 1000)), (I,)),
    "bitwise_count": (lambda m, i: m.bitwise_count(i), (I,)),
    "packbits": (lambda m, b: m.packbits(b), (BITS,)),
    "unpackbits": (lambda m, b: m.unpackbits(b), (BYTES,)),
    "divmod": (lambda m, x: m.divmod(x, 0.75), (X,)),
    "fmod": (lambda m, x: m.fmod(x, 0.75), (X,)),
    "exp2": (lambda m, x: m.exp2(x), (X,)),
    "cbrt": (lambda m, x: m.cbrt(x), (X,)),
    "cbrt, float64": (lambda m, x: m.cbrt(x), (X.astype(np.float64),)),
    "frexp": (lambda m, x: m.frexp(x), (X,)),
    "ldexp": (lambda m, x, i: m.ldexp(x, i), (X, (I % 64).astype(np.int32))),
    "modf": (lambda m, x: m.modf(x), (X,)),
    "fmax": (lambda m, x: m.fmax(x, 0.5), (HOLES,)),
    "heaviside": (lambda m, x: m.heaviside(x, 0.5), (X,)),
    "deg2rad": (lambda m, x: m.deg2rad(x), (X,)),
    "sliding windows": (lambda m, x: _windows(m, x).max(axis=-1), (X,)),
    "rolling, 100": (lambda m, x: _rolling(m, x, 100), (X,)),
    "put_along_axis": (lambda m, x, i: _put(m, x, i), (ROWS, I.reshape(1000, 1000)[:, :10])),
    "apply_along_axis": (lambda m, x: m.apply_along_axis(lambda v: v[::-1] * v.sum(), 1, x), (ROWS,)),
}


def _accumulated(m: Any, ours: str, theirs: str, x: Any) -> Any:
    if m is np:
        return getattr(np, theirs).accumulate(x, axis=-1)
    return getattr(m if m is hf else jax.lax, ours)(x, axis=x.ndim - 1)


def _bincount(m: Any, i: Any, w: Any) -> Any:
    return m.bincount(i, w) if m is np else m.bincount(i, w, length=1000)


def _windows(m: Any, x: Any) -> Any:
    if m is hf:
        return hf.sliding_window_view(x, 8)
    if m is np:
        return np.lib.stride_tricks.sliding_window_view(x, 8)
    return jnp.stack([x[k : x.shape[0] - 7 + k] for k in range(8)], axis=-1)


def _rolling(m: Any, x: Any, n: int) -> Any:
    if m is hf:
        return hf.rolling(x, n, "max")
    if m is np:
        return np.lib.stride_tricks.sliding_window_view(x, n).max(axis=-1)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (n,), (1,), "valid")


def _put(m: Any, x: Any, i: Any) -> Any:
    if m is np:
        x = x.copy()
        np.put_along_axis(x, i, 1.0, 1)
        return x
    return m.put_along_axis(x, i, 1.0, axis=1, **({} if m is hf else {"inplace": False}))


def measured(sides: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The median of the CPU seconds of each, in turns."""
    end = time.perf_counter() + 0.6  # kernels are compiled anew once they are used often
    while time.perf_counter() < end:
        for run in sides:
            run()
    time.sleep(0.3)
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for run, taken in zip(sides, times):
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
    return [statistics.median(taken) for taken in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    hf.config.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = []
    for name, (call, arrays) in PROGRAMS.items():
        if options.only not in name or (
            not hasattr(hf, name.split(",")[0].split()[0]) and name[:3] in ("cbr", "fre", "lde")
        ):
            continue
        tensors = [hf.asarray(a) for a in arrays]
        compiled = hf.function(lambda *v, call=call: call(hf, *v)) if name != "unique" else lambda i: hf.unique(i)
        sides: list[Callable[[], Any]] = [
            lambda c=compiled, t=tensors: c(*t),
            lambda c=call, a=arrays: c(np, *a),
        ]
        if jax is not None:
            given = [jnp.asarray(a) for a in arrays]
            of_jax = jax.jit(lambda *v, call=call: call(jnp, *v))
            try:
                jax.block_until_ready(of_jax(*given))
                sides.append(lambda f=of_jax, g=given: jax.block_until_ready(f(*g)))
            except Exception as error:
                print(f"{name}: JAX refuses: {type(error).__name__}", file=sys.stderr)
        rows.append((name, measured(sides, options.rounds)))
    rows.sort(key=lambda row: min(row[1][1:]) / row[1][0])
    for name, (ours, theirs, *more) in rows:
        of_jax_ = f"  JAX {more[0] * 1e3:9.3f} ({more[0] / ours:6.2f})" if more else ""
        print(f"{name:20s} {ours * 1e3:9.3f}  NumPy {theirs * 1e3:9.3f} ({theirs / ours:6.2f}){of_jax_}", flush=True)
    print(f"geometric mean over NumPy: {statistics.geometric_mean(t[1] / t[0] for _, t in rows):.2f}")


if __name__ == "__main__":
    main()
