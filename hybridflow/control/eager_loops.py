"""Loops as Python runs them, outside of compiled functions: with the dtypes that compiled ones have.

``plain_while`` and ``plain_for`` take and return what ``tracing.structured_control`` does; ``run_while`` and
``run_for`` are the ones or the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.array.shapes import stack
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import transaction
from hybridflow.core.context import now, tracing
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor, exclusive, filled, weak_cast
from hybridflow.errors import HybridflowError
from hybridflow.tracing.structured_control import Body, Carry, Iteration, condition, trace_for, trace_while, values_of
from hybridflow.tracing.trace import Trace


def run_while(
    stage: str,
    cond: Callable[[list[Tensor]], Any],
    body: Callable[[list[Tensor]], Sequence[Any]],
    carried: Sequence[Any],
    names: Sequence[str],
    maximum: int | None = None,
) -> list[Tensor]:
    """What is carried after iterations of ``body`` while ``cond`` holds, at most ``maximum`` ones."""
    run = plain_while if now().trace is None else trace_while
    return run(stage, cond, body, carried, names, maximum)


def run_for(
    stage: str,
    length: Any,
    body: Iteration,
    carried: Sequence[Any],
    stacked: Sequence[Tensor],
    names: Sequence[str],
    reverse: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """The carries after ``length`` iterations of ``body(carries, slices)``, and the stacks of what the iterations
    made."""
    run = plain_for if now().trace is None else trace_for
    return run(stage, length, body, carried, stacked, names, reverse)


def plain_while(
    stage: str,
    cond: Callable[..., Any],
    body: Callable[..., Any],
    carried: Sequence[Any],
    names: Sequence[str],
    maximum: int | None = None,
) -> list[Tensor]:
    loop = _Loop(stage, carried, names)

    def goes_on(values: list[Tensor]) -> bool:
        return (maximum is None or loop.iterations < int(maximum)) and bool(condition(stage, cond(values)))

    def iteration(values: list[Tensor], _: list[Tensor]) -> tuple[Sequence[Any], Sequence[Any]]:
        return body(values), ()

    return loop.run(goes_on, iteration, list, ())[0]


def plain_for(
    stage: str,
    length: int,
    body: Iteration,
    carried: Sequence[Any],
    stacked: Sequence[Tensor],
    names: Sequence[str],
    reverse: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    loop = _Loop(stage, carried, names)

    def slices() -> list[Tensor]:
        position = length - 1 - loop.iterations if reverse else loop.iterations
        return [x[position] for x in stacked]

    types = [x.type.with_shape(x.shape[1:]) for x in stacked]
    values, stacks = loop.run(lambda _: loop.iterations < length, body, slices, types)
    if not stacks:
        return values, [filled(0, type.dtype, (0, *type.shape), stage) for type in loop.output_types]
    return values, [stack(parts[::-1] if reverse else parts) for parts in map(list, zip(*stacks))]


class _Widened(Exception):
    """A number that a loop starts with has another dtype than was thought: the loop begins anew."""


class _Loop:
    """A loop in plain Python.  ``turns`` are those that were done; ``output_types`` what iterations would have made, if
    there were none."""

    def __init__(self, stage: str, carried: Sequence[Any], names: Sequence[str]) -> None:
        self.stage, self.iterations = stage, 0
        self.output_types: list[TensorType] = []
        self.carries = [Carry(stage, name, x) for name, x in zip(names, values_of(stage, carried))]

    def run(
        self, goes_on: Callable[[list[Tensor]], bool], iteration: Iteration, slices: Callable[[], list[Tensor]],
        types: Sequence[TensorType],
    ) -> tuple[list[Tensor], list[list[Tensor]]]:  # fmt: skip
        """The carries after the last iteration, and what each iteration made.  ``types`` are those of the slices."""
        while True:
            try:
                if not any(carry.weak for carry in self.carries):
                    return self._run(goes_on, iteration, slices, types)
                return transaction.run(lambda: self._run(goes_on, iteration, slices, types))
            except _Widened:
                continue

    def _run(
        self, goes_on: Callable[..., Any], iteration: Iteration, slices: Callable[..., Any], types: Sequence[TensorType]
    ) -> tuple[list[Tensor], list[list[Tensor]]]:
        stage = self.stage
        self.iterations = 0
        values = [exclusive(carry.began(stage)) for carry in self.carries]
        stacked: list[list[Tensor]] = []
        while goes_on(values):
            results, more = iteration(values, slices())
            ends = values_of(stage, results)
            same_types = [carry.widen(stage, x) for carry, x in zip(self.carries, ends)]
            if not all(same_types):
                raise _Widened
            values = [weak_cast(x, carry.dtype, stage) for carry, x in zip(self.carries, ends)]
            stacked.append(values if more is None else [as_tensor(x, stage) for x in more])
            self.iterations += 1
        if not self.iterations and (types or any(carry.weak for carry in self.carries)):
            self._look(iteration, types)
            values = [carry.began(stage) for carry in self.carries]
        return values, stacked

    def _look(self, iteration: Iteration, types: Sequence[TensorType]) -> None:
        """Find the types of what an iteration makes without running it; carries get the dtypes that they would have.
        Nothing is known where the body cannot be traced, because it looks at values."""
        try:
            with tracing(Trace(self.stage)):
                body = Body(self.stage, self.carries, types)
                body.trace_to_fixed_point(iteration)
                self.output_types = [x.type for x in body.stacked]
        except HybridflowError:
            pass
