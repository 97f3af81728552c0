"""The fuzzer is not blind: faults that are planted in the compiler are seen as other bits.

Each fault is there while compiled functions are called, and not for the eager side.  Checks of the compiler's own that
would notice it are taken out: they are nets of their own (``loops.sound``, ``codegen.cut``).
"""

from __future__ import annotations

import contextlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hybridflow.compiler import pipeline
from hybridflow.compiler.codegen.core.unit_ranges import UnitRanges
from hybridflow.compiler.codegen.nests import elementwise
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.loops import buffer_assignment
from hybridflow.compiler.target import Target
from tests.support import compare_programs
from tests.support.fuzz import fast_compiler, found_difference
from tests.support.programs import Settings
from tests.support.random_programs import random_program, turned_program

pytestmark = pytest.mark.code

Plant = Callable[[pytest.MonkeyPatch], None]


def _as_found(*_: Any) -> None:
    """In the place of a check."""


def planes_of_tiles(patch: pytest.MonkeyPatch) -> None:
    """Where a map goes in tiles each piece does whole planes, as it did when it asked for its part too early."""
    text = textwrap.dedent(inspect.getsource(elementwise.ElementwiseNest._map_in_tiles))
    asks = "start, stop = self._bounds(across)"
    assert text.count(asks) == 1
    namespace = dict(vars(elementwise))
    exec(text.replace(asks, f"{asks}; start, stop = 0, code.extent(across.extent)"), namespace)
    patch.setattr(elementwise.ElementwiseNest, "_map_in_tiles", namespace["_map_in_tiles"])


def lost_barrier(patch: pytest.MonkeyPatch) -> None:
    """All kernels share one wave, whatever they read of each other's."""
    right = buffer_assignment.waves

    def wrong(*given: Any) -> tuple[list[Any], list[int]]:
        kernels, numbers = right(*given)
        return kernels, [0] * len(numbers)

    patch.setattr(buffer_assignment, "waves", wrong)
    patch.setattr(pipeline, "check_plan", _as_found)


def swapped_operand(patch: pytest.MonkeyPatch) -> None:
    """Differences the other way round."""
    right = pipeline.optimize

    def wrong(graph: Graph, target: Target | None = None) -> Graph:
        found = right(graph, target)
        for node in found.nodes:
            if node.op.name == "subtract":
                object.__setattr__(node, "inputs", node.inputs[::-1])
        return found

    patch.setattr(pipeline, "optimize", wrong)


def whole_planes(patch: pytest.MonkeyPatch) -> None:
    """A piece does all turns of an inner loop, where it should begin and end within."""
    right = UnitRanges.bounds

    def wrong(cut: UnitRanges, var: Any) -> tuple[Any, Any]:
        part = right(cut, var)
        return (0, cut._code.extent(var.extent)) if len(cut._loops) > 1 else part

    patch.setattr(UnitRanges, "bounds", wrong)


def read_after_written(patch: pytest.MonkeyPatch) -> None:
    """A result may take the memory of any operand, wherever its elements are read."""
    patch.setattr(buffer_assignment, "read_in_place", lambda kernel, is_leaf: set(kernel.inputs))


FAULTS: dict[str, tuple[Plant, str, int]] = {  # the fault, which programs, and of how many it is seen in one at least
    "planes of tiles": (planes_of_tiles, "turned", 60),
    "lost barrier": (lost_barrier, "random", 60),
    "swapped operand": (swapped_operand, "random", 40),
    "whole planes": (whole_planes, "turned", 40),
    "read after written": (read_after_written, "turned", 40),
}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Plant], None]:
    """Plants a fault for calls of compiled functions."""
    right = compare_programs._compiled_so

    def plant(fault: Plant) -> None:
        @contextlib.contextmanager
        def wrong(settings: Settings) -> Iterator[None]:
            with pytest.MonkeyPatch.context() as patch, right(settings):
                fault(patch)
                yield

        monkeypatch.setattr(compare_programs, "_compiled_so", wrong)

    return plant


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_seen(name: str, planted: Callable[[Plant], None]) -> None:
    fault, kind, count = FAULTS[name]
    make = turned_program if kind == "turned" else random_program
    planted(fault)
    seen = []
    with fast_compiler():
        for seed in range(count):
            program = make(seed)
            found = found_difference(program)
            if found is not None and found.kind in ("value", "state", "held"):
                seen.append(seed)
                break
    assert seen, f"{count} programs do not show it"
