"""What runs in the process of one side: it answers requests, one JSON line each, with one JSON line.

``{"prepare": name, "results": path}`` makes the arguments, calls the program once or, if it trains, three times, and
writes the results; the answer says ``ready``, ``absent`` (the library has no such thing) or ``failed`` and why.
``{"sample": seconds}`` answers with the median seconds of calls over about that time.  ``{"limits": true}`` is for the
side that measures the machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 3  # of programs that train: their losses are compared
LIMITS = "limits"  # the side that measures the machine
_SHORT = 1e-4  # seconds that a measured stretch of calls lasts at least


class Worker:
    """The program that was prepared last, on one library."""

    def __init__(self, side: str, threads: int) -> None:
        from benchmarks.suite.libraries import SIDES

        # Not all libraries keep to the number of threads that they are told.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        self.library = SIDES[side](threads)
        self.run: Callable[..., Any] | None = None
        self.given: list[Any] = []

    def prepare(self, name: str, path: str) -> dict[str, Any]:
        from benchmarks.suite.libraries import NotOffered

        self.run, self.given = None, []
        gc.collect()
        try:
            return self._prepared(name, path)
        except NotOffered as reason:
            return {"state": "absent", "why": str(reason)}
        except Exception as error:
            return {"state": "failed", "why": f"{type(error).__name__}: {error}"[:300]}

    def _prepared(self, name: str, path: str) -> dict[str, Any]:
        from benchmarks.suite.case import leaves, made_ready
        from benchmarks.suite.programs import CASES

        case, own = CASES[name], self.library
        run, given = made_ready(case, own)
        start = time.perf_counter()
        results = [run(*given)]
        first = time.perf_counter() - start
        if case.trained:
            results += [run(*given) for _ in range(STEPS - 1)]
        own.settle()
        parts = [own.numpy(x) for x in leaves(results)]
        np.savez(path, *parts)
        moved = sum(own.numpy(x).nbytes for x in leaves(given)) + sum(x.nbytes for x in parts)
        self.run, self.given = run, given
        return {
            "state": "ready",
            "first": first,
            "bytes": moved,
            "temporary": own.temporary(run, given),
            "operations": own.operations(run, given),
        }

    def sample(self, seconds: float) -> float:
        """Seconds of a call: the median over stretches of calls."""
        run, given = self.run, self.given
        assert run is not None
        run(*given)  # threads that sleep are awake, what another program left in caches is gone
        count, taken = 1, 0.0
        while True:
            start = time.perf_counter()
            for _ in range(count):
                run(*given)
            taken = time.perf_counter() - start
            if taken >= _SHORT:
                break
            count *= 2
        times, end = [taken / count], time.perf_counter() + seconds - taken
        while time.perf_counter() < end:
            start = time.perf_counter()
            for _ in range(count):
                run(*given)
            times.append((time.perf_counter() - start) / count)
        return float(np.median(times))


class Machine:
    """What one core can do, measured by the loops of ``hybridflow.cli.machine_peaks``."""

    def __init__(self) -> None:
        from hybridflow.cli import machine_peaks, measure

        self.loops = machine_peaks.Machine(budget=0.5)
        self.timing = measure.timing

    def measured(self) -> dict[str, float]:
        """Bytes per second read and copied, multiply-adds and the like of float32 per second."""
        timings = {name: self.timing([run(1) for _ in range(3)]) for name, run in self.loops.samplers.items()}
        found = self.loops.limits(timings)
        return {"read": found.read, "copy": found.copy, "flops": found.flops}


def serve(side: str, threads: int) -> None:
    """Answer the requests on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    machine = Machine() if side == LIMITS else None
    worker = None if machine else Worker(side, threads)
    for line in sys.stdin:
        request = json.loads(line)
        if machine is not None:
            answer: Any = machine.measured()
        elif worker is not None and "prepare" in request:
            answer = worker.prepare(request["prepare"], request["results"])
        elif worker is not None:
            answer = worker.sample(request["sample"])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("side")
    parser.add_argument("threads", type=int)
    options = parser.parse_args()
    serve(options.side, options.threads)
