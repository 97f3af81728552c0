"""Which schedules are the fastest on this machine: all that a compiled call's kernels may have, timed in turn."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridflow.compiler.program import KernelInfo
from hybridflow.eager import measured_schedules
from hybridflow.errors import ArgumentError
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.jit.inspection import Table, Text
from hybridflow.jit.profiling import FEWEST, MOST, WARM_UP, KernelTimer

SECONDS = 2.0  # that runs last together, where nobody says how many
GAIN = 0.97  # of the usual schedule's time: what takes more than that is not worth a change, nor ...
SURE = 0.75  # ... what is not the faster one in so many of the runs

COLUMNS = ("kernel", "µs", "usual µs", "gain", "candidates", "schedule", "usual schedule", "facts")
_DETAILS = COLUMNS[COLUMNS.index("usual schedule") :]


@dataclass(frozen=True)
class Tuning:
    """The kernels of one signature that have several schedules: what the best one takes, what the usual one took, as
    medians of ``runs`` runs in microseconds, and how many were compared.  ``file`` is where the best ones are kept for
    this machine; None where there is no folder for them, and they last as long as the process."""

    function: str
    runs: int
    kernels: Table
    file: str | None

    def __str__(self) -> str:
        return self._text(repr(self.kernels))

    __repr__ = __str__

    def wide(self) -> Text:
        """All columns, and cells as long as they are."""
        return Text(self._text(self.kernels.wide()))

    def _text(self, table: str) -> str:
        if not len(self.kernels):
            return f"{self.function} has no kernel with several schedules"
        changed = sum(row["schedule"] != row["usual schedule"] for row in self.kernels)
        where = "this process" if self.file is None else self.file
        return f"{self.function}: {changed} other schedules, of {self.runs} runs each, kept in {where}\n{table}"


@dataclass
class _Candidate:
    """One program: the kernels with their schedules, and the seconds that they took in each run."""

    kernels: Sequence[KernelInfo]
    timer: KernelTimer
    seconds: list[np.ndarray]


def tune(concrete: ConcreteFunction, leaves: Sequence[Any], runs: int | None) -> Tuning:
    """Time all schedules of the kernels of a program, and keep the best.

    Raises ArgumentError for less than one run, DeviceError where the call would not run on the CPU, and the error of a
    check that fails.
    """
    from hybridflow.runtime.machine import host_target

    if runs is not None and (not isinstance(runs, int) or runs < 1):
        raise ArgumentError("tune", f"runs is {runs!r}. Give a number of runs, 1 or more.")
    candidates = list(_candidates(concrete, leaves))
    count = _run(candidates, runs)
    rows: list[tuple[Any, ...]] = []
    best: dict[str, str] = {}
    for facts, (info, times) in _by_facts(candidates).items():
        usual = candidates[0].kernels[info].schedule
        chosen = best[facts] = _fastest(times, usual)
        medians = [float(np.median(times[schedule])) for schedule in (chosen, usual)]
        gain = medians[1] / max(medians[0], 1e-12)
        name = candidates[0].kernels[info].name
        microseconds = [1e6 * seconds for seconds in medians]
        rows.append((name, *microseconds, gain, len(times), chosen, usual, facts))
    rows.sort(key=lambda row: -row[2])
    file = measured_schedules.keep(host_target.target(), best) if best else None
    return Tuning(concrete.name, count, Table(COLUMNS, rows, _DETAILS), file)


def _candidates(concrete: ConcreteFunction, leaves: Sequence[Any]) -> Iterator[_Candidate]:
    """A program for each number of a schedule."""
    number, count = 0, 1
    while number < count:
        with measured_schedules.forced(number):
            executable, arrays, changed = concrete.timed(leaves)
        kernels = executable.program.kernels
        count = max([count, *(kernel.candidates for kernel in kernels)])
        yield _Candidate(kernels, KernelTimer(executable, arrays, changed), [])
        number += 1


def _run(candidates: Sequence[_Candidate], runs: int | None) -> int:
    """Run all programs in turn, so that what else the machine does falls on all of them alike; how often."""
    if len(candidates) == 1:
        return 0
    end = time.perf_counter() + SECONDS
    count = 0
    for k in range(WARM_UP + (MOST if runs is None else runs)):
        if runs is None and count >= FEWEST and time.perf_counter() > end:
            break
        for candidate in candidates:
            seconds = candidate.timer.run()
            if k >= WARM_UP:
                candidate.seconds.append(seconds)
        count += k >= WARM_UP
    return count


def _fastest(times: dict[str, np.ndarray], usual: str) -> str:
    """The schedule that takes least, unless that is little less than the usual one, or chance."""

    def ratio(schedule: str) -> float:
        durations, others = times[schedule], np.maximum(times[usual], 1e-12)
        # Other programs make medians long, and what was not interrupted is short: both have to say the same.
        quotient = max(float(np.median(durations / others)), float(durations.min() / others.min()))
        return quotient if np.mean(durations < others) >= SURE else 1.0

    best = min(times, key=ratio)
    return best if ratio(best) < GAIN else usual


def _by_facts(candidates: Sequence[_Candidate]) -> dict[str, tuple[int, dict[str, np.ndarray]]]:
    """For each kernel with several schedules, by its facts: its number, and the seconds that each schedule took in each
    run.  Kernels of the same facts have the same code: they count together."""
    numbers: dict[str, int] = {}
    by_facts: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
    for candidate in candidates:
        here: dict[tuple[str, str], np.ndarray] = {}
        for number, of_runs in candidate.timer.by_kernel(candidate.seconds):
            kernel = candidate.kernels[number]
            if kernel.candidates > 1:
                numbers.setdefault(kernel.facts, number)
                key = kernel.facts, kernel.schedule
                here[key] = here.get(key, 0.0) + of_runs
        for (facts, schedule), of_runs in here.items():
            by_facts[facts].setdefault(schedule, of_runs)  # those that have few begin anew: the first time counts
    return {facts: (numbers[facts], times) for facts, times in by_facts.items()}
