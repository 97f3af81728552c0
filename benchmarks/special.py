"""Special functions of a million numbers, beside SciPy's, on one thread.

    python benchmarks/special.py [--only NAME] [--rounds N]

Both sides take turns.  Printed are the medians in milliseconds, the spread of ours (largest over least), and SciPy's
over ours.
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

import numpy as np
import scipy.special

import hybridflow as hf

COUNT = 1_000_000
POSITIVE, INSIDE, SHARE = (0.1, 9.0), (-0.99, 0.99), (0.01, 0.99)
# name: the ranges of its operands
PROGRAMS: dict[str, tuple[tuple[float, float], ...]] = {
    **dict.fromkeys(
        ("gammaln", "gamma", "digamma", "erfc", "erfcx", "i0e", "i1e", "j0", "j1", "k0", "k1"), (POSITIVE,)
    ),
    **dict.fromkeys(("expi", "spence", "entr"), (POSITIVE,)),
    **dict.fromkeys(("erfinv", "log_ndtr"), (INSIDE,)),
    **dict.fromkeys(("ndtri", "logit"), (SHARE,)),
    **dict.fromkeys(("xlogy", "gammainc", "gammaincc"), (POSITIVE, POSITIVE)),
    "zeta": ((1.5, 9.0), POSITIVE),
    "betainc": (POSITIVE, POSITIVE, SHARE),
}


def measured(sides: list[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """The seconds of each call, in turns."""
    for run in sides:
        run()
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for run, taken in zip(sides, times):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    hf.config.set_num_threads(1)
    for dtype in ("float32", "float64"):
        ratios = []
        for name, ranges in PROGRAMS.items():
            if options.only not in name:
                continue
            rng = np.random.default_rng(0)
            arrays = [rng.uniform(*r, COUNT).astype(dtype) for r in ranges]
            tensors, compiled = [hf.asarray(a) for a in arrays], hf.function(getattr(hf.special, name))
            theirs = getattr(scipy.special, name)
            ours, peer = measured(
                [lambda c=compiled, t=tensors: c(*t), lambda f=theirs, a=arrays: f(*a)], options.rounds
            )
            ratios.append(statistics.median(peer) / statistics.median(ours))
            print(
                f"{name:10s} {dtype} {statistics.median(ours) * 1e3:8.2f} (spread {max(ours) / min(ours):.2f})"
                f" SciPy {statistics.median(peer) * 1e3:8.2f}, ratio {ratios[-1]:.2f}",
                flush=True,
            )
        print(f"geometric mean {dtype}: {statistics.geometric_mean(ratios):.2f}", flush=True)


if __name__ == "__main__":
    main()
