"""A host that runs programs in the least convenient way that the contract allows: it cuts every ``parallel_for`` at
random multiples of the grain, shuffles the pieces, and has several threads run them side by side."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hybridflow.compiler.program import Program
from hybridflow.runtime import cpu, host_interface
from tests.support.bits import same_bits

MOST_CUTS = 40


class CuttingHost:
    """``loops`` has the units and the number of pieces of each ``parallel_for`` so far, in order."""

    def __init__(self, seed: int, workers: int = 3) -> None:
        self._random = random.Random(seed)
        self._pool = ThreadPoolExecutor(workers)
        self._workers = workers
        self.loops: list[tuple[int, int]] = []
        self.errors: list[BaseException] = []
        self.struct = host_interface.Host(workers=workers)
        kind = type(self.struct.parallel_for)
        self.struct.parallel_for = kind(self._parallel_for)

    def _parallel_for(self, host: int, task: int, args: int, units: int, grain: int, least: int, work: int) -> None:
        try:  # ctypes would print an exception and go on
            pieces = self._pieces(units, grain)
            self.loops.append((units, len(pieces)))
            self._random.shuffle(pieces)
            function = host_interface.TASK(task)

            def work(worker: int) -> None:
                while pieces:
                    try:
                        begin, end = pieces.pop()
                    except IndexError:  # another thread took the last one
                        return
                    function(args, begin, end, worker)

            list(self._pool.map(work, range(self._workers)))
        except BaseException as error:
            self.errors.append(error)

    def _pieces(self, units: int, grain: int) -> list[tuple[int, int]]:
        grains = max(-(-units // grain) - 1, 0)  # places where it may be cut
        cuts = self._random.sample(range(1, grains + 1), self._random.randint(0, min(grains, MOST_CUTS)))
        bounds = [0, *(grain * c for c in sorted(cuts)), units]
        return [(a, b) for a, b in itertools.pairwise(bounds) if a < b]

    def close(self) -> None:
        self._pool.shutdown()
        if self.errors:
            raise self.errors[0]


@contextlib.contextmanager
def cutting(seed: int, workers: int = 3) -> Iterator[CuttingHost]:
    """Programs that Python starts inside of the block (not those that native code calls) run on such a host."""
    host = CuttingHost(seed, workers)
    try:
        with host_interface.use(host.struct):
            yield host
    finally:
        host.close()


def outcome(program: Program, arrays: Sequence[np.ndarray]) -> list[Any]:
    """The outputs and the updated inputs of a run on copies of the arrays, and the text of what was raised."""
    given = [np.array(a, order="C") for a in arrays]
    try:
        outputs = cpu.load(program).run(given)
        raised = ""
    except Exception as error:
        outputs, raised = [], f"{type(error).__name__}: {error}"
    return [raised, *outputs, *(a for a, slot in zip(given, program.inputs) if slot.updated)]


def check_cuts(program: Program, arrays: Sequence[np.ndarray], seeds: Sequence[int] = (0, 1, 2)) -> list[Any]:
    """Assert that however a program's units are cut, and whichever worker runs them when, its bits are those of a run
    in place, and its error the same.  Returns the outcome in place."""
    expected = outcome(program, arrays)
    for seed in seeds:
        with cutting(seed):
            got = outcome(program, arrays)
        assert got[0] == expected[0]
        assert len(got) == len(expected)
        assert all(same_bits(g, e) for g, e in zip(got[1:], expected[1:])), f"other bits at the cuts of seed {seed}"
    return expected
