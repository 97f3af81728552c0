"""Factorisations, triangular systems and a step of a Gaussian process, beside NumPy's, SciPy's, JAX's and torch's.

    python benchmarks/linalg.py [--only NAME] [--sizes 512,1000] [--threads 1] [--rounds N] [--cpu]

All sides take turns; peers that are not installed are left out.  Printed are the medians in milliseconds, the spread
of ours (largest over least), and the best peer's over ours.  With --cpu it is the time of processors, which another
load on the machine does not change much.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
_parser.add_argument("--only", default="")
_parser.add_argument("--sizes", default="512,1000")
_parser.add_argument("--threads", default="1")
_parser.add_argument("--rounds", type=int, default=9)
_parser.add_argument("--cpu", action="store_true")

Side = tuple[str, Callable[[], Any]]


def prepare(threads: str) -> None:
    """Settings that libraries read as they load."""
    os.environ.pop("OPENBLAS_CORETYPE", None)  # which would choose older kernels
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = threads
    if threads == "1":
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def peers() -> dict[str, Any]:
    """The modules that are installed."""
    found: dict[str, Any] = {}
    for name in ("numpy", "scipy.linalg", "jax", "torch"):
        try:
            found[name] = __import__(name, fromlist=["_"])
        except ImportError:
            print(f"{name} is not installed", file=sys.stderr)
    return found


def programs(n: int, dtype: str, libraries: dict[str, Any], threads: str) -> dict[str, list[Side]]:
    """The sides of each program, ours first."""
    import numpy as np

    import hybridflow as hf

    rng, ours = np.random.default_rng(0), hf.linalg
    general = rng.normal(size=(n, n)).astype(dtype)
    positive = (general @ general.T / n + np.eye(n)).astype(dtype)
    factor, sides = np.linalg.cholesky(positive), rng.normal(size=(n, n)).astype(dtype)
    points, values = rng.normal(size=(n, 4)).astype(dtype), rng.normal(size=n).astype(dtype)
    logs = np.array([0.1, 0.2, -2.0], dtype)
    g, p, f, s = (hf.asarray(x) for x in (general, positive, factor, sides))
    step = hf.function(hf.value_and_grad(_loss(hf, ours.cholesky, ours.cholesky_solve)))
    hf_args = [hf.asarray(x) for x in (logs, points, values)]
    found: dict[str, list[Side]] = {
        "cholesky": [("hf", lambda: ours.cholesky(p)), ("numpy", lambda: np.linalg.cholesky(positive))],
        "triangular_solve": [("hf", lambda: ours.triangular_solve(f, s))],
        "lu": [("hf", lambda: ours.lu_factor(g))],
        "qr": [("hf", lambda: ours.qr(g)), ("numpy", lambda: np.linalg.qr(general))],
        "solve": [("hf", lambda: ours.solve(g, s)), ("numpy", lambda: np.linalg.solve(general, sides))],
        "gaussian_process": [("hf", lambda: step(*hf_args))],
    }
    if (sp := libraries.get("scipy.linalg")) is not None:
        found["cholesky"] += [("scipy", lambda: sp.cholesky(positive, lower=True, check_finite=False))]
        found["triangular_solve"] += [
            ("scipy", lambda: sp.solve_triangular(factor, sides, lower=True, check_finite=False))
        ]
        found["lu"] += [("scipy", lambda: sp.lu_factor(general, check_finite=False))]
        found["qr"] += [("scipy", lambda: sp.qr(general, check_finite=False))]
    if (jax := libraries.get("jax")) is not None:
        from jax.scipy.linalg import cho_solve, lu_factor, solve_triangular

        jax.config.update("jax_enable_x64", True)
        jnp, ready = jax.numpy, jax.block_until_ready
        jg, jp, jf, js = (jnp.asarray(x) for x in (general, positive, factor, sides))
        jax_args = [jnp.asarray(x) for x in (logs, points, values)]
        calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
            "cholesky": (jnp.linalg.cholesky, (jp,)),
            "triangular_solve": (lambda a, b: solve_triangular(a, b, lower=True), (jf, js)),
            "lu": (lu_factor, (jg,)),
            "qr": (jnp.linalg.qr, (jg,)),
            "solve": (jnp.linalg.solve, (jg, js)),
        }
        for name, (function, args) in calls.items():
            compiled = jax.jit(function)
            found[name] += [("jax", lambda compiled=compiled, args=args: ready(compiled(*args)))]
        loss = _loss(jnp, jnp.linalg.cholesky, lambda c, b: cho_solve((c, True), b))
        jitted = jax.jit(jax.value_and_grad(loss))
        found["gaussian_process"] += [("jax", lambda: ready(jitted(*jax_args)))]
    if (torch := libraries.get("torch")) is not None:
        torch.set_num_threads(int(threads))
        tg, tp, tf, ts = (torch.from_numpy(x) for x in (general, positive, factor, sides))
        found["cholesky"] += [("torch", lambda: torch.linalg.cholesky(tp))]
        found["triangular_solve"] += [("torch", lambda: torch.linalg.solve_triangular(tf, ts, upper=False))]
        found["lu"] += [("torch", lambda: torch.linalg.lu_factor(tg))]
        found["qr"] += [("torch", lambda: torch.linalg.qr(tg))]
        found["solve"] += [("torch", lambda: torch.linalg.solve(tg, ts))]
    return found


def _loss(xp: Any, cholesky: Callable[..., Any], solve: Callable[..., Any]) -> Callable[..., Any]:
    """The negative log-likelihood of a Gaussian process with a squared exponential kernel."""

    def loss(logs: Any, x: Any, y: Any) -> Any:
        distance = xp.sum((x[:, None] - x[None]) ** 2, axis=-1)
        kernel = xp.exp(logs[0]) * xp.exp(-0.5 * distance * xp.exp(-2 * logs[1]))
        noise = (xp.exp(logs[2]) + 1e-3) * xp.eye(x.shape[0], dtype=x.dtype)
        factor = cholesky(kernel + noise)
        return 0.5 * xp.sum(y * solve(factor, y)) + xp.sum(xp.log(xp.linalg.diagonal(factor)))

    return loss


def measured(sides: list[Side], rounds: int, clock: Callable[[], float]) -> list[list[float]]:
    """The seconds of each call, in turns."""
    for _, run in sides:
        run()
        run()
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for (_, run), taken in zip(sides, times):
            start = clock()
            run()
            taken.append(clock() - start)
    return times


def main() -> None:
    options = _parser.parse_args()
    prepare(options.threads)
    libraries = peers()
    import hybridflow as hf

    hf.config.set_num_threads(int(options.threads))
    clock = time.process_time if options.cpu else time.perf_counter
    for dtype in ("float32", "float64"):
        for n in map(int, options.sizes.split(",")):
            for name, sides in programs(n, dtype, libraries, options.threads).items():
                if options.only not in name or len(sides) < 2:
                    continue
                times = measured(sides, options.rounds, clock)
                ours, *others = [1e3 * statistics.median(taken) for taken in times]
                spread = max(times[0]) / min(times[0])
                listed = "  ".join(f"{peer} {value:8.2f}" for (peer, _), value in zip(sides[1:], others))
                ratio = min(others) / ours
                print(f"{name:17} {dtype} {n:5}  {ours:8.2f} (x{spread:.2f})  {listed}  {ratio:5.2f}", flush=True)


if __name__ == "__main__":
    main()
