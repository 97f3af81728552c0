"""How long each kernel of a compiled call takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridflow.errors import ArgumentError, short_location
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.jit.inspection import Table, Text
from hybridflow.jit.native_entry import Refusal

SECONDS = 0.25  # that runs last together, where nobody says how many
FEWEST, MOST = 5, 1000
WARM_UP = 2  # runs that are not counted

COLUMNS = ("kernel", "lines", "µs", "±%", "share %", "GB/s", "GFLOP/s", "bytes", "flops", "ops", "wave")
_DETAILS = COLUMNS[COLUMNS.index("bytes") :]


@dataclass(frozen=True)
class Profile:
    """The kernels of one signature, the slowest first: medians of ``runs`` runs in microseconds, half the distance of
    their quartiles, and what that is of bytes read and written once each, and of arithmetic, where these are known.
    ``total`` is what all kernels take together; ``level`` is LLVM's of their machine code, the last one.  ``in_python``
    says why calls go by way of Python, which takes time beside that, and is None where native code answers them.
    Prints as text that fits the terminal; ``wide()`` is all of it.
    """

    function: str
    signature: str
    runs: int
    total: float
    kernels: Table
    in_python: str | None = None
    level: int = 2

    def __str__(self) -> str:
        return self._text(lambda table: repr(table))

    __repr__ = __str__

    def wide(self) -> Text:
        """All columns, and cells as long as they are."""
        return Text(self._text(Table.wide))

    def _text(self, shown: Callable[[Table], str]) -> str:
        count = len(self.kernels)
        if not count:
            return f"{self.function} has no kernels: nothing is computed when it is called"
        kernels = f"{count} kernel{'s' * (count > 1)}"
        called = "" if self.in_python is None else f"called by way of Python: {self.in_python}\n"
        head = f"{self.function}: {self.total:.2f} µs in {kernels}, medians of {self.runs} runs"
        return f"{head}, code of level {self.level}\n{called}{shown(self.kernels)}"


def profile(
    concrete: ConcreteFunction, leaves: Sequence[Any], runs: int | None, refusal: Refusal | None = None
) -> Profile:
    """Run the program of argument leaves that fit, and time its kernels.  Every run begins with the values that
    variables have now, and none of them changes.  ``refusal`` is why calls go by way of Python, if they do.

    Raises ArgumentError for less than one run, DeviceError where the call would not run on the CPU, and the error of a
    check that fails.
    """
    if runs is not None and (not isinstance(runs, int) or runs < 1):
        raise ArgumentError("profile", f"runs is {runs!r}. Give a number of runs, 1 or more.")
    executable, arrays, changed = concrete.timed(leaves)
    tasks = executable.program.tasks
    timer = KernelTimer(executable, arrays, changed)
    seconds = _times(timer, runs) if tasks else []
    by_kernel = dict(timer.by_kernel(seconds))
    kernels = list(by_kernel)
    of_kernels = np.stack(list(by_kernel.values()), 1) if by_kernel else np.zeros((0, 0))
    medians = np.median(of_kernels, axis=0) if by_kernel else np.zeros(0)
    rows = []
    for position in np.argsort(-medians, kind="stable"):
        low, high = np.quantile(of_kernels[:, position], (0.25, 0.75))
        share = medians[position] / max(medians.sum(), 1e-12)
        info = executable.program.kernels[kernels[position]]
        rows.append(_row(info, float(medians[position]), float(high - low) / 2, float(share)))
    total = float(np.median(of_kernels.sum(axis=1))) * 1e6 if tasks else 0.0
    signature = ", ".join(f"{path}: {type}" for path, type in concrete.arguments)
    reason = None if refusal is None else str(refusal)
    return Profile(
        concrete.name, signature, len(seconds), total, Table(COLUMNS, rows, _DETAILS), reason, executable.tiers.level
    )


class KernelTimer:
    """Runs an executable that is timed on arrays, of which those that are ``changed`` are copied for each run."""

    def __init__(self, executable: Any, arrays: Sequence[np.ndarray], changed: Sequence[int]) -> None:
        from hybridflow.runtime.profiling_host import ProfilingHost  # native code, loaded when somebody asks

        self.executable, self.arrays, self.changed = executable, arrays, changed
        self.tasks = executable.program.tasks
        self.host = ProfilingHost(len(self.tasks), executable.timing_team(arrays))

    def run(self) -> np.ndarray:
        """Run once; the seconds that each task took."""
        inputs = [array.copy() if i in self.changed else array for i, array in enumerate(self.arrays)]
        self.host.begin()
        self.executable.compute(inputs, self.executable.in_place, self.host.struct)
        return self.host.seconds()

    def by_kernel(self, seconds: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """For each kernel its number in the program, and the seconds that it took in each run."""
        times = np.array(seconds)
        for number in sorted(set(self.tasks)) if len(seconds) else ():
            yield number, times[:, np.equal(self.tasks, number)].sum(axis=1)


def _times(timer: KernelTimer, runs: int | None) -> list[np.ndarray]:
    """Of each run the seconds that each task took."""
    result: list[np.ndarray] = []
    end = 0.0
    for k in range(WARM_UP + (MOST if runs is None else runs)):
        if k == WARM_UP:
            end = time.perf_counter() + SECONDS
        if runs is None and len(result) >= FEWEST and time.perf_counter() > end:
            break
        seconds = timer.run()
        if k >= WARM_UP:
            result.append(seconds)
    return result


def _row(info: Any, seconds: float, spread: float, share: float) -> tuple[Any, ...]:
    rates = [None if work is None or not seconds else work / seconds * 1e-9 for work in (info.bytes, info.flops)]
    lines = tuple(map(short_location, info.lines))
    percent = 100 * spread / seconds if seconds else 0.0
    return info.name, lines, seconds * 1e6, percent, 100 * share, *rates, info.bytes, info.flops, info.ops, info.wave
