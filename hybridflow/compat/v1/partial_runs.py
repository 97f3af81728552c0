"""Runs of sessions in several steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybridflow.array.creation import asarray
from hybridflow.compat.v1.evaluation import Run, as_value, needed
from hybridflow.compat.v1.feed_fetch import Feed, as_fetched, unfed
from hybridflow.compat.v1.nodes import Operation, Tensor
from hybridflow.compat.v1.programs import Known, variables_of
from hybridflow.compat.v1.state import State


class PartialRun:
    """A run in several steps."""

    def __init__(self, state: State, targets: Sequence[Any], feeds: Sequence[Tensor]) -> None:
        self._targets, self._feeds = set(targets), set(feeds)
        self._state = Known(state, list(feeds))
        self._session = state
        self._values: dict[Tensor, Any] = {}
        self._done: set[Operation] = set()

    def more(self, fetches: Sequence[Any], feeds: Mapping[Tensor, Any]) -> list[Any]:
        for tensor, value in feeds.items():
            if tensor not in self._feeds:
                raise RuntimeError(f"{tensor.name!r} was not among the feeds of partial_run_setup, or is fed twice.")
            self._feeds.discard(tensor)
            self._values[tensor] = asarray(Feed(tensor)(value))
        for fetch in fetches:
            if fetch not in self._targets:
                raise RuntimeError(f"{fetch.name!r} was not among the fetches of partial_run_setup.")
        operations = [op for op in needed(fetches, self._values)[0] if op not in self._done]
        for op in operations:
            if op.type == "Placeholder":
                raise unfed(op)
        variables = variables_of(operations, [t for t in fetches if isinstance(t, Tensor)])
        self._session.check(variables.reads)
        run = Run(self._state, dict(self._values))
        run.do(operations)
        self._session.ready.update(variables.writes)
        self._done.update(op for op in operations if not op.is_reference)
        for op in operations:
            for tensor in op.outputs:
                if run.is_known(tensor):
                    self._values[tensor] = run.value(tensor)
        return [as_fetched(as_value(run.value(t))) if isinstance(t, Tensor) else None for t in fetches]
