"""Errors that ops raise when the program runs, where the function that is traced catches them itself.

What an op is given is looked at before it: the block is left, as by an error of the user's, where the op would raise
one, and the op is recorded where it raises none.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np

from hybridflow.array import elementwise, reductions
from hybridflow.autograph.runtime import except_clauses, exception_handlers, undo_log
from hybridflow.autograph.runtime.state import active
from hybridflow.compiler.ops import floor_division, indexing
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.eager import dispatch
from hybridflow.eager.operands import scalar
from hybridflow.effects import runtime_raise
from hybridflow.effects.runtime_text import RuntimeText
from hybridflow.errors import DivisionError, HybridflowError, IndexRangeError, is_internal
from hybridflow.tracing import number_errors

Attrs = Mapping[str, Any]


def _in_range(op: Any, inputs: Sequence[Tensor], attrs: Attrs) -> tuple[Tensor, BaseException] | None:
    """Whether all indices lie inside of the axis, and the error if not; None if none is looked at."""
    x, indices = inputs[:2]
    attrs = op.canon(tuple([part.type for part in inputs]), attrs)
    axis = attrs["axis"]
    read = inputs[2] if len(inputs) > 2 else None
    size = x.shape[axis]
    shape = op.infer(*[part.type for part in inputs], **attrs).shape if read is None else read.shape
    if 0 in shape:
        return None
    low, high = (scalar(extent, indices.dtype, op.name) for extent in (-size, size))
    ok = elementwise.logical_and(elementwise.greater_equal(indices, low), elementwise.less(indices, high))
    return _all(ok), IndexRangeError(op.name, indexing._message(x.shape, axis))


def _divides(op: Any, inputs: Sequence[Tensor], attrs: Attrs) -> tuple[Tensor, BaseException] | None:
    """Whether no divisor is zero."""
    divisor = inputs[1]
    if divisor.dtype.kind not in "iu" or 0 in divisor.shape:
        return None
    return _all(elementwise.not_equal(divisor, 0)), DivisionError(op.name, floor_division._MESSAGE)


def _all(ok: Tensor) -> Tensor:
    return reductions.all(ok) if ok.shape else ok


_OPS: dict[str, tuple[type[HybridflowError], Callable[..., tuple[Tensor, BaseException] | None]]] = {
    "take": (IndexRangeError, _in_range),
    "take_along_axis": (IndexRangeError, _in_range),
    "scatter_add": (IndexRangeError, _in_range),
    "scatter_set": (IndexRangeError, _in_range),
    "scatter_add_along_axis": (IndexRangeError, _in_range),
    "floor_divide": (DivisionError, _divides),
    "remainder": (DivisionError, _divides),
}


def guard_op_error(op: Any, inputs: Sequence[Tensor], attrs: Attrs) -> Any:
    """What comes of an op whose error something comes to know; None if it is to be recorded as it is."""
    if not active.handlers or op.name not in _OPS or attrs.get("known"):
        return None
    kind, looked_at = _OPS[op.name]
    frame = _catching(kind)
    if frame is None:
        return None
    with exception_handlers.without_handlers():
        check = looked_at(op, inputs, attrs)
    if check is None:
        return None
    except_clauses.require(frame, *check)
    with exception_handlers.without_handlers():
        return dispatch.apply(op, *inputs, **attrs)


def fails(ok: Tensor, kind: type[BaseException], make: Callable[..., BaseException], values: Sequence[Any]) -> bool:
    """Leave the block where ``ok`` is False with an error of a ``kind`` that is made of values then, if something comes
    to know of it."""
    frame = _catching(kind)
    if frame is None:
        return False
    error = kind.__new__(kind)
    error.args = (RuntimeText(lambda *known: str(make(*known)), *values),)
    except_clauses.require(frame, ok, error)
    return True


def fails_in_python(
    ok: Tensor, python: Callable[..., Any], kinds: Sequence[type[Exception]], *operands: Tensor
) -> bool:
    """The same of an error that a function of Python's raises of numbers."""
    frame = next((candidate for kind in kinds if (candidate := _catching(kind)) is not None), None)
    if frame is None:
        return False
    said = _python_error(python, kinds, [operand.dtype.kind for operand in operands])
    if said is None:
        return False
    except_clauses.require(frame, ok, said)
    return True


_SAMPLES = (0, 1, -1)


def _python_error(
    python: Callable[..., Any], kinds: Sequence[type[Exception]], numbers: Sequence[str]
) -> Exception | None:
    """The error of a function of Python's that raises but one, of some numbers of its."""
    if len(kinds) > 1:
        return None
    types = [float if kind == "f" else int for kind in numbers]
    for sample in np.ndindex(*[len(_SAMPLES)] * len(types)):
        try:
            python(*[kind(_SAMPLES[k]) for kind, k in zip(types, sample)])
        except kinds[0] as error:
            error.__traceback__ = None
            return error
        except Exception:
            continue
    return None


_EXPRESSIONS = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def _catching(kind: type[BaseException]) -> FrameType | None:
    """The frame whose block is left by an exception that the running code raises, if something comes to know of it."""
    if not active.handlers:
        return None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    # What code of ours has to tidy up it has tidied up when the program runs.
    guard = exception_handlers.handler_for(kind, frame, users_alone=True)
    if guard is None:
        return None
    if now().trace is not _trace_of_paths():
        exception_handlers.check_not_caught(kind)
    while frame is not None and frame is not guard.frame and (is_internal(frame.f_code.co_filename) or _is_part(frame)):
        frame = frame.f_back
    return frame


def _is_part(frame: FrameType) -> bool:
    """Whether code is part of what calls it: an expression, or what makes items for it."""
    return frame.f_code.co_name in _EXPRESSIONS or bool(frame.f_code.co_flags & inspect.CO_GENERATOR)


def _trace_of_paths() -> Any:
    """The trace into which what the running path does is recorded."""
    side = undo_log.innermost_branch()
    while side is not None and side.region is None:
        side = side.enclosing
    if side is not None:
        return side.region
    trace: Any = now().trace
    return trace.root


dispatch.guards.append(guard_op_error)
number_errors.handlers.append(fails_in_python)
runtime_raise.handlers.append(fails)
