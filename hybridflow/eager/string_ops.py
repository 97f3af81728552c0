"""Ops on tensors of texts: what moves elements about, and what compares them, works on numbers that stand for them.

In a trace these are the codes of ``core.string_tensor``; outside of one they are the places in a table of the texts
that the operands hold.  Every other op refuses texts by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.core.context import current
from hybridflow.core.string_tensor import StringTensor, as_strings, of_codes, of_texts, trace_codes
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.errors import DTypeError

_MOVES = frozenset(
    (
        *("reshape", "broadcast", "transpose", "concat", "slice", "take", "take_along_axis", "reverse", "pad", "where"),
        *("scatter_set", "stop_gradient", "after", "windows"),
    )
)
Run = Callable[..., Any]  # ``dispatch.apply``
_COMPARES = frozenset(("equal", "not_equal"))


def apply(run: Run, op: Any, inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Any:
    """An op of which some inputs are texts.  Raises DTypeError for one that is of numbers alone."""
    name = op.name
    if name not in _MOVES and name not in _COMPARES:
        held = next(x for x in inputs if type(x) is StringTensor)
        if name == "add" and all(type(x) is StringTensor for x in inputs):
            return _join(*inputs)
        raise DTypeError(name, f"{held.type} holds texts, and {name} is of numbers. See hf.strings.")
    if name != "where" and name in _COMPARES | {"concat", "scatter_set"}:
        other = next(
            (x for x in inputs if type(x) is not StringTensor and not (name == "scatter_set" and _is_int(x))), None
        )
        if other is not None:
            raise DTypeError(name, f"{other.type} holds numbers, and other operands of {name} are texts.")
    known = current.trace is None or all(type(x) is not StringTensor or x.is_known for x in inputs)
    if known and current.trace is None:
        return _eager(run, op, inputs, attrs)
    codes = [trace_codes(x) if type(x) is StringTensor else x for x in inputs]
    outcome = run(op, *codes, **attrs)
    return outcome if name in _COMPARES else of_codes(outcome)


def _is_int(x: Tensor) -> bool:
    return x.dtype.kind in "iu"


def _eager(run: Run, op: Any, inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Any:
    places: dict[bytes, int] = {b"": 0}
    numbers: list[Tensor] = []
    for x in inputs:
        if type(x) is not StringTensor:
            numbers.append(x)
            continue
        texts = x.texts
        outcome = [places.setdefault(text, len(places)) for text in texts.ravel().tolist()]
        numbers.append(wrap(np.array(outcome, np.int64).reshape(texts.shape)))
    out = run(op, *numbers, **attrs)
    if op.name in _COMPARES:
        return out
    table: Any = np.empty(len(places), object)
    table[:] = list(places)
    return of_texts(np.asarray(table[out.numpy()], object))


joins: list[Any] = []
"""What puts texts together, element by element: ``strings`` adds it, which lies above."""


def _join(x: object, y: object) -> Any:
    return joins[0]([x, y])


def operands(stage: str, *values: object) -> list[Any]:
    """Operands of which some are texts, as texts: Python's and NumPy's too."""
    return [as_strings(value, stage) for value in values]
