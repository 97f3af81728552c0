"""Tables of functions by TensorFlow 1's names, each of which records where a graph is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.compat.v1.recording import Recorded


class Table(dict[str, Any]):
    """Functions by name."""

    def op(
        self,
        type: str,
        *names: str,
        default: str | None = None,
        draws: bool = False,
        of_sizes: Callable[..., Any] | None = None,
    ) -> Callable[[Callable[..., Any]], Recorded]:
        """Enter a function under names, its own if there are none, as operations of the type."""

        def enter(function: Callable[..., Any]) -> Recorded:
            recorded = Recorded(function, type, default, draws, of_sizes)
            for name in names or (function.__name__.rstrip("_"),):
                self[name] = recorded
            return recorded

        return enter
