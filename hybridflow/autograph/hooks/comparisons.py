"""Comparisons of Python's whose result may depend on tensors: of values, and item by item of lists and tuples."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.array import elementwise, shapes
from hybridflow.autograph.hooks.per_choice import frame_of_user
from hybridflow.autograph.runtime import aliasing, conditional, except_clauses
from hybridflow.autograph.runtime.choices import Choice
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import literal, scalar
from hybridflow.errors import ArgumentError, HybridflowError, TraceError
from hybridflow.guards.container_reads import before_operator
from hybridflow.guards.guard_builder import active
from hybridflow.tracing import symbolic_number
from hybridflow.tracing.symbolic_number import is_number
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


_EXACT = 2**53  # whole numbers up to here are floats
_TENSORS = (SymbolicTensor, Tensor, Variable, Choice)


def depends(value: Any) -> bool:
    """Whether it depends on a tensor what a value is, or what a list or tuple holds."""
    if isinstance(value, SymbolicTensor):
        return value._known() is None
    if type(value) in (list, tuple):
        return any(map(depends, value))
    return isinstance(value, (Variable, Choice))


def truth(value: object) -> Any:
    """The truth of what a comparison gave: a bool, or a tensor of one."""
    return conditional.truth(value) if depends(value) else bool(value)


def both(a: ArrayLike, b: ArrayLike) -> Any:
    """``a and b`` of truths."""
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else elementwise.logical_and(a, b)


def either(a: ArrayLike, b: ArrayLike) -> Any:
    """``a or b`` of truths."""
    if a is True or b is True:
        return True
    return b if a is False else a if b is False else elementwise.logical_or(a, b)


def opposite(a: ArrayLike) -> Any:
    return not a if isinstance(a, bool) else elementwise.logical_not(a)


def _compare(name: str, compare: Callable[[Any, Any], Any], a: object, b: object) -> Any:
    recording = active.recording
    if recording is not None:
        for value in (a, b):
            if not isinstance(value, _TENSORS):
                recording.note(before_operator, value, name)
    return truth(compare(a, b))


def equal(a: Any, b: Any) -> Any:
    """``a == b`` as lists ask it of their items: one object equals itself."""
    if a is b:
        return True
    if type(a) is type(b) and type(a) in (list, tuple) and (depends(a) or depends(b)):
        result: Any = len(a) == len(b)
        for one, other in zip(a, b):
            if result is False:
                break
            result = both(result, equal(one, other))
        return result
    if isinstance(a, SymbolicTensor) and isinstance(b, SymbolicTensor) and not (is_number(a) or is_number(b)):
        _check_no_nan_of_both(a, b)
    return _compare("__eq__", operator.eq, a, b)


def _check_no_nan_of_both(a: SymbolicTensor, b: SymbolicTensor) -> None:
    """A NaN equals itself, as an object, and no other one: where it is not known which it is, it is an error."""
    if not (dtypes.is_float(a.dtype) and dtypes.is_float(b.dtype) and aliasing.may_alias(a, b)):
        return
    are_nan = elementwise.logical_and(elementwise.not_equal(a, a), elementwise.not_equal(b, b))
    error = ArgumentError(
        "compare", "a NaN is looked for, and a tensor decides whether it is the very one. Compare with hf.isnan."
    )
    except_clauses.require(frame_of_user(), elementwise.logical_not(are_nan), error)


def less(a: object, b: object) -> Any:
    """``a < b``"""
    return _before("__lt__", operator.lt, a, b)


def greater(a: Any, b: Any) -> Any:
    """``a > b``"""
    return _before("__gt__", operator.gt, a, b)


def _before(name: str, compare: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if not (type(a) is type(b) and type(a) in (list, tuple) and (depends(a) or depends(b))):
        return _compare(name, compare, a, b)
    result: Any = False
    same: Any = True  # all items up to here
    for one, other in zip(a, b):
        alike = equal(one, other)
        if alike is not True:
            here = both(same, opposite(alike))  # the first that differ decide
            result = either(result, both(here, _where_needed(here, name, compare, one, other)))
            same = both(same, alike)
        if same is False:
            return result
    return either(result, both(same, compare(len(a), len(b))))


class Row:
    """A list or a tuple that is compared, where tensors decide about what it holds."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> Any:
        return _answer(equal(self.held, _items_of(other)))

    def __ne__(self, other: object) -> Any:
        return _answer(opposite(equal(self.held, _items_of(other))))

    def __lt__(self, other: object) -> Any:
        return _answer(less(self.held, _items_of(other)))

    def __gt__(self, other: object) -> Any:
        return _answer(greater(self.held, _items_of(other)))

    def __le__(self, other: object) -> Any:
        return _answer(_before("__le__", operator.le, self.held, _items_of(other)))

    def __ge__(self, other: object) -> Any:
        return _answer(_before("__ge__", operator.ge, self.held, _items_of(other)))


def _items_of(value: object) -> Any:
    return value.held if type(value) is Row else value


def _answer(value: Any) -> Any:
    return value if isinstance(value, bool) else symbolic_number.number_of(value)


def _where_needed(here: ArrayLike, name: str, compare: Callable[[Any, Any], Any], a: object, b: object) -> Any:
    """A comparison that Python makes ``here`` alone: one that cannot be made is an error there."""
    try:
        return _before(name, compare, a, b)
    except (TypeError, HybridflowError) as error:
        if isinstance(here, bool) or isinstance(error, TraceError):
            raise
        except_clauses.require(frame_of_user(), elementwise.logical_not(here), error)
        return False


def hits(known: Sequence[Any], value: Any) -> Tensor:
    """Of each of some values, of which there is one at least, whether it equals ``value``."""
    table = _table(known) if is_number(value) else None
    if table is not None and (table.dtype == np.float64 or value.kind is not float):
        kind = float if table.dtype == np.float64 else int
        return elementwise.equal(literal(table), symbolic_number.number_tensor(value, kind))
    matches = [equal(one, value) for one in known]
    return shapes.stack([scalar(one, dtypes.bool_, "convert") if isinstance(one, bool) else one for one in matches])


def _table(known: Sequence[Any]) -> np.ndarray | None:
    """Plain numbers as an array; None if there are others, or some that an array would round."""
    if not all(type(one) in (bool, int, float) for one in known):
        return None
    if any(type(one) is float for one in known):
        exact = all(type(one) is float or abs(one) <= _EXACT for one in known)
        return np.array(known, np.float64) if exact else None
    return np.array(known, np.int64) if all(-(2**63) <= one < 2**63 for one in known) else None
