"""Loops as Python runs them, outside of compiled functions: with the dtypes that compiled ones have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.core import transaction
from hybridflow.core.context import tracing
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor, own, weak_cast
from hybridflow.errors import HybridflowError
from hybridflow.tracing.control import Body, Carry, values_of
from hybridflow.tracing.trace import Trace

Turn = Callable[[list[Tensor]], tuple[Sequence[Any], Sequence[Any]]]


class _Widened(Exception):
    """A number that a loop starts with has another dtype than was thought: the loop begins anew."""


class PlainLoop:
    """A loop in plain Python.  ``turns`` are those that were done."""

    def __init__(self, stage: str, carried: Sequence[Any], names: Sequence[str]) -> None:
        self.stage, self.turns = stage, 0
        self.carries = [Carry(stage, name, x) for name, x in zip(names, values_of(stage, carried))]

    def run(self, goes_on: Callable[[list[Tensor]], bool], turn: Turn) -> tuple[list[Tensor], list[list[Tensor]]]:
        """The carries after the last turn, and what each turn made."""
        if not any(carry.weak for carry in self.carries):
            return self._run(goes_on, turn)
        while True:
            try:
                return transaction.run(lambda: self._run(goes_on, turn))
            except _Widened:
                continue

    def _run(self, goes_on: Callable[[list[Tensor]], bool], turn: Turn) -> tuple[list[Tensor], list[list[Tensor]]]:
        stage = self.stage
        self.turns = 0
        values = [own(carry.began(stage)) for carry in self.carries]
        made: list[list[Tensor]] = []
        while goes_on(values):
            results, more = turn(values)
            found = values_of(stage, results)
            kept = [carry.takes(stage, x) for carry, x in zip(self.carries, found)]
            if not all(kept):
                raise _Widened
            values = [weak_cast(x, carry.dtype, stage) for carry, x in zip(self.carries, found)]
            made.append([as_tensor(x, stage) for x in more])
            self.turns += 1
        if not self.turns and any(carry.weak for carry in self.carries):
            self.traced(turn, ())
            values = [carry.began(stage) for carry in self.carries]
        return values, made

    def traced(self, turn: Turn, slices: Sequence[Any]) -> list[Any]:
        """The types of what a turn makes, found without running it; carries get the dtypes that they would have.
        Nothing where the body cannot be traced, because it looks at values."""
        try:
            with tracing(Trace(self.stage)):
                body = Body(self.stage, self.carries, slices)
                body.trace(lambda carries, given: turn([*carries, *given]))
                return [x.type for x in body.made]
        except HybridflowError:
            return []
