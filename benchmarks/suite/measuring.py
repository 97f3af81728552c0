"""The sides are asked in turn: each lives in a process of its own, since waiting threads of one would take the cores of
another.  For the same reason nobody is asked before all threads of the side before are at rest: so each finds the
machine as quiet, and its own threads as sleepy, as any other.  Every result is compared with hybridflow's before
anything is timed."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.suite import resting, worker
from benchmarks.suite.libraries import OUR_EAGER, OURS
from benchmarks.suite.programs import CASES, KIND_OF

_ROOT = Path(__file__).parents[2]  # where the package of the workers is found
_THREADS = ("HF_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def environment(threads: int) -> dict[str, str]:
    """The variables of a process whose libraries are to use so many threads, and NumPy the kernels of this machine."""
    found = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    found |= dict.fromkeys(_THREADS, str(threads))
    found["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if threads == 1:
        found["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return found


class TooLong(Exception):
    """A side did not answer in time; its process is gone."""


class Side:
    """The process of one side, started when it is first asked."""

    def __init__(self, name: str, threads: int) -> None:
        self.name, self.threads = name, threads
        self._process: subprocess.Popen[bytes] | None = None

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", worker.__name__, self.name, str(self.threads)]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(self.threads), cwd=_ROOT
        )

    def ask(self, request: dict[str, Any]) -> None:
        if self._process is None:
            self._process = self._started()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the answer will say that it ended
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def answer(self, seconds: float) -> Any:
        """What it says within that time; raises TooLong, and RuntimeError when the process ends."""
        assert self._process is not None and self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            self.end(at_once=True)
            raise TooLong
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._process = None
            raise RuntimeError(f"its process ended with status {status}")
        return json.loads(line)

    def rest(self) -> None:
        """Return when its threads have nothing to do any more."""
        if self._process is not None:
            resting.wait(self._process.pid)

    def end(self, at_once: bool = False) -> None:
        if self._process is not None:
            if at_once:
                self._process.kill()
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
            self._process = None


class Plan:
    """How thoroughly programs are measured: rounds, seconds of a sample, and how long a side may take to answer."""

    def __init__(self, quick: bool, limit: float, minutes: float) -> None:
        self.least, self.most = (1, 1) if quick else (3, 15)
        self.sample = 0.002 if quick else 0.02
        self.budget = 0.0 if quick else 3.0  # seconds for the rounds of one program
        self.limit, self.with_limits = limit, not quick
        self.end = time.perf_counter() + minutes * 60  # no program begins after it


def measured(
    threads: int, peers: Sequence[str], names: Sequence[str], plan: Plan, told: Callable[[str], None]
) -> dict[str, Any]:
    """The figures of all programs, as the suite writes them to JSON."""
    sides = {name: Side(name, threads) for name in (OURS, OUR_EAGER, *peers)}
    machines = [Side(worker.LIMITS, 1) for _ in range(threads)]
    limits: list[dict[str, Any]] = []
    programs: dict[str, Any] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for k, name in enumerate(names):
                if time.perf_counter() > plan.end:
                    break
                if plan.with_limits and k % 20 == 0:
                    limits.append(_limits(machines, plan))
                start = time.perf_counter()
                programs[name] = _program(name, sides, plan, folder)
                told(f"{k + 1} of {len(names)}: {name}, {time.perf_counter() - start:.1f} s")
    finally:
        for side in (*sides.values(), *machines):
            side.end(at_once=True)
    left = [name for name in names if name not in programs]
    return {"threads": threads, "sides": list(sides), "limits": _middle(limits), "programs": programs, "left": left}


def _limits(machines: list[Side], plan: Plan) -> dict[str, Any]:
    """What one core can do, and what all threads can do at once."""
    found: dict[str, Any] = {}
    for title, chosen in (("one", machines[:1]), ("all", machines)):
        for side in chosen:
            side.ask({"limits": True})
        answers = [side.answer(plan.limit + 60) for side in chosen]
        found[title] = {key: sum(answer[key] for answer in answers) for key in answers[0]}
    return found


def _middle(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each limit."""
    return {
        title: {key: float(np.median([sample[title][key] for sample in samples])) for key in samples[0][title]}
        for title in (samples[0] if samples else ())
    }


def _program(name: str, sides: dict[str, Side], plan: Plan, folder: str) -> dict[str, Any]:
    """One program: what each side answered, and who is faster."""
    row: dict[str, Any] = {"kind": KIND_OF[name], "sides": {}}
    expected: list[np.ndarray] | None = None
    for side in sides.values():
        path = os.path.join(folder, "results.npz")
        answer = _asked(side, {"prepare": name, "results": path}, plan.limit)
        row["sides"][side.name] = answer
        if answer["state"] != "ready":
            continue
        with np.load(path) as found:
            parts = [found[key] for key in found.files]
        expected = parts if expected is None else expected
        wrong = _difference(parts, expected, CASES[name].tolerance)
        if wrong:
            answer.update(state="differs", why=wrong)
    _timed(row, sides, plan)
    return row


def _asked(side: Side, request: dict[str, Any], limit: float) -> Any:
    side.ask(request)
    try:
        answer = side.answer(limit)
        side.rest()
        return answer
    except TooLong:
        return {"state": "failed", "why": f"no answer within {limit:.0f} s"}
    except RuntimeError as error:
        return {"state": "failed", "why": str(error)}


def _timed(row: dict[str, Any], sides: dict[str, Side], plan: Plan) -> None:
    """Rounds in which all sides that are ready take turns."""
    samples: dict[str, list[float]] = {n: [] for n, answer in row["sides"].items() if answer["state"] == "ready"}
    end = time.perf_counter() + plan.budget
    for done in range(plan.most):
        if done >= plan.least and time.perf_counter() > end:
            break
        for name in [name for name in samples if row["sides"][name]["state"] == "ready"]:
            answer = _asked(sides[name], {"sample": plan.sample}, plan.limit)
            if isinstance(answer, float):
                samples[name].append(answer)
            else:
                row["sides"][name].update(answer)
    for name, values in samples.items():
        if row["sides"][name]["state"] == "ready":
            low, median, high = np.percentile(values, [25, 50, 75])
            row["sides"][name].update(median=float(median), low=float(low), high=float(high))
    _judged(row)


def _judged(row: dict[str, Any]) -> None:
    """The best peer, and its time and that of our own eager mode over ours."""
    times = {name: answer["median"] for name, answer in row["sides"].items() if "median" in answer}
    peers = [name for name in times if name not in (OURS, OUR_EAGER)]
    row["best"] = min(peers, key=times.__getitem__, default=None) if OURS in times else None
    row["ratio"] = times[row["best"]] / times[OURS] if row["best"] else None
    row["eager"] = times[OUR_EAGER] / times[OURS] if OURS in times and OUR_EAGER in times else None


def _difference(parts: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> str:
    """What is wrong with the results, or nothing.  Shapes are compared but for their ones, values relative to the
    largest."""
    if len(parts) != len(expected):
        return f"{len(parts)} results, not {len(expected)}"
    for k, (part, other) in enumerate(zip(parts, expected)):
        if part.squeeze().shape != other.squeeze().shape:
            return f"result {k} has the shape {part.shape}, not {other.shape}"
        if other.size:
            scale = max(1.0, float(np.abs(other.astype(np.float64, copy=False)).max()))
            wrong = ~np.isclose(
                part.reshape(other.shape), other, rtol=tolerance, atol=tolerance * scale, equal_nan=True
            )
            if wrong.any():
                return f"{int(wrong.sum())} of {other.size} elements of result {k} differ"
    return ""
