"""The table of operators: by domain, name and the opset since which a meaning holds.

A meaning is one function ``f(call, *operands, **attributes)``.  It takes tensors, and None for operands that are left
out; operands at the places that are ``raw`` come as they are known: arrays of NumPy while they are (see
``host_values``).  It returns one result or a tuple of them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

LAST = 28  # the newest opset that the meanings below were compared with
ML, MICROSOFT, TRAINING = "ai.onnx.ml", "com.microsoft", "ai.onnx.preview.training"
# The modules whose functions are the meanings.
_MODULES = (
    "elementwise",
    "shapes",
    "indexing",
    "reductions",
    "products",
    "windows",
    "sampling",
    "images",
    "normalization",
    "recurrent",
    "quantization",
    "control_flow",
    "sequences",
    "random",
    "microsoft",
    "classic",
    "training",
    "signal",
    "interpolation",
    "strings",
)


class Operator(NamedTuple):
    """A meaning: what it does, and what it takes."""

    function: Callable[..., Any]
    since: int
    until: int
    raw: frozenset[int]
    elementwise: bool  # operands of one layout have results of that layout
    keeps_layout: bool  # it takes operands with their channels last as they are
    attributes: frozenset[str]


_TABLE: dict[tuple[str, str], list[Operator]] = {}


def operator(
    *names: str,
    since: int = 1,
    until: int = LAST,
    domain: str = "",
    raw: Collection[int] = (),
    elementwise: bool = False,
    keeps_layout: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function into the table as the meaning of operators whose schema has one of these versions."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters.values()
        attributes = frozenset(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        row = Operator(function, since, until, frozenset(raw), elementwise, keeps_layout, attributes)
        for name in names:
            _TABLE.setdefault((domain, name), []).append(row)
        return function

    return enter


def find(domain: str, op: str, version: int) -> Operator | None:
    """The meaning that an operator has had since opset ``version``, where there is one here."""
    _load()
    for row in _TABLE.get((domain, op), ()):
        if row.since <= version <= row.until:
            return row
    return None


def _load() -> None:
    if not _TABLE:
        for name in _MODULES:
            importlib.import_module(f"hybridflow.onnx.meanings.{name}")
