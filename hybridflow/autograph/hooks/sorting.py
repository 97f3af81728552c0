"""``max``, ``min``, ``sorted`` and ``list.sort`` of Python's, where tensors decide about the order.

Keys are made by calling the user's function once for each value, as any other function is called.  Where no tensor
decides, Python's own function compares.  Else the program compares, just as Python does: NaNs, and equal values, end up
where they do there.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hybridflow.array import elementwise, reductions, shapes
from hybridflow.autograph.hooks.comparisons import depends, equal, greater, less
from hybridflow.autograph.hooks.per_choice import frame_of_user
from hybridflow.autograph.runtime import branch_merge, except_clauses
from hybridflow.autograph.runtime.indexed_select import common_scalars, select
from hybridflow.autograph.runtime.sort_order import MOST, order_of, total_order_of
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import literal, scalar
from hybridflow.errors import ConcretizationError, HybridflowError, TraceError
from hybridflow.guards import builtin_reads
from hybridflow.guards.code_ownership import is_users_class
from hybridflow.guards.container_reads import before_operator
from hybridflow.guards.guard_builder import active

Function = Callable[..., Any]
Matrix = Any  # of bools: a tensor, or an array where Python knows all of them

_Compared = type(functools.cmp_to_key(lambda a, b: 0)(0))

called: list[Callable[[Any], Any]] = []
"""What to call for a function of the user's: ``recorder`` adds what knows that."""


def _keys(values: Sequence[Any], key: object) -> Sequence[Any]:
    if key is None:
        return values
    call = called[0](key)
    return [call(value) for value in values]


def _values(iterable: Any) -> list[Any]:
    recording = active.recording
    if recording is not None:
        recording.note(builtin_reads.iterate, iterable)
    return list(iterable)


def _note_operators(keys: Iterable[Any], *names: str) -> None:
    """Follow the code of the user's that compares keys."""
    recording = active.recording
    for key in keys if recording is not None else ():
        assert recording is not None
        recording.note(before_operator, key, *names)


def extreme(better: Function, name: str) -> Callable[[Function], Function]:
    """``max`` or ``min``, which take what is ``better``: of equal values the first one."""

    def special(find: Function) -> Function:
        def call(*args: object, **kwargs: object) -> Any:
            if not args or kwargs.keys() - {"key", "default"} or active.recording is None:
                return find(*args, **kwargs)
            key = kwargs.get("key")
            candidates = args if len(args) > 1 else _values(args[0])
            if not candidates or (key is None and not any(map(_may_depend, candidates))):
                return find(candidates, **kwargs) if len(args) == 1 else find(*args, **kwargs)
            keys = _keys(candidates, key)
            if not any(map(_may_depend, keys)):
                _note_operators(keys, name)
                return candidates[find(range(len(candidates)), key=keys.__getitem__)]
            return _best(better, candidates, keys)

        return call

    return special


def _may_depend(value: object) -> bool:
    """Whether comparisons of a value may give a tensor."""
    return depends(value) or is_users_class(type(value)) or type(value) is _Compared


class _DependsError(Exception):
    """A comparison has given a tensor."""


class _Watched:
    """A key that Python's own function compares as long as no tensor decides."""

    __slots__ = ("_key",)

    def __init__(self, key: object) -> None:
        self._key = key

    def __lt__(self, other: _Watched) -> bool:
        result = less(self._key, other._key)
        if not isinstance(result, bool):
            raise _DependsError
        return result


def _best(better: Function, values: Sequence[Any], keys: Sequence[Any]) -> Any:
    best, best_key = values[0], keys[0]
    for value, key in zip(values[1:], keys[1:]):
        is_better = better(key, best_key)
        if isinstance(is_better, bool):
            best, best_key = (value, key) if is_better else (best, best_key)
            continue
        is_same, frame = keys is values, frame_of_user()  # whose code has to be converted only here
        best = branch_merge.select(is_better, value, best, frame)
        best_key = best if is_same else branch_merge.select(is_better, key, best_key, frame)
    return best


def sorted_(sort: Function) -> Function:
    def call(*args: object, **kwargs: object) -> Any:
        if len(args) != 1 or kwargs.keys() - {"key", "reverse"} or active.recording is None:
            return sort(*args, **kwargs)
        values = _values(args[0])
        ordered = _in_order(values, **kwargs)
        return sort(values, **kwargs) if ordered is None else ordered

    return call


def method_sort(value: list[Any], sort: Function) -> Function:
    """``list.sort``"""

    def call(*args: object, **kwargs: object) -> None:
        if args or kwargs.keys() - {"key", "reverse"} or active.recording is None:
            return sort(*args, **kwargs)
        ordered = _in_order(_values(value), **kwargs)
        if ordered is None:
            return sort(**kwargs)
        value[:] = ordered
        return None

    return call


def _in_order(values: list[Any], key: Any = None, reverse: Any = False) -> list[Any] | None:
    """The values in order; None where no tensor decides about that, and no key had to be made to know."""
    if key is None and not any(map(_may_depend, values)):
        return None
    keys = _keys(values, key)
    watched = list(map(_Watched, keys)) if any(map(_may_depend, keys)) else keys
    if watched is keys:
        _note_operators(keys, "__lt__", "__gt__")
    with contextlib.suppress(_DependsError):  # texts before tensors may have decided
        return [values[k] for k in sorted(range(len(values)), key=watched.__getitem__, reverse=reverse)]
    if len(values) < 2:
        return values
    if reverse:
        keys, values = keys[::-1], values[::-1]
    order = _sort_items(values, keys)
    return order[::-1] if reverse else order


def _sort_items(values: list[Any], keys: Sequence[Any]) -> list[Any]:
    frame, count = frame_of_user(), len(values)
    if _is_total(keys):
        order = total_order_of(_tensor(_pairs(keys)[0]), count)
    elif count > MOST:
        raise ConcretizationError(
            "sort",
            f"the order of {count} values depends on tensors, where a NaN may be among them: so many are not sorted by "
            "Python's rules. Write hf.sort(hf.stack(values)), or hf.argsort, and index with what it says.",
        )
    else:
        order = order_of(_tensor(_pairs(keys)[0]), count)
    places = [elementwise.astype(order[k], dtypes.int32) for k in range(count)]
    are_apart = len(set(map(id, values))) == count
    return [select(place, values, frame, order if are_apart else None) for place in places]


def _is_total(keys: Sequence[Any]) -> bool:
    """Whether of two keys one is less, or both are equal."""
    scalars = common_scalars(keys)
    return scalars is not None and not dtypes.is_float(scalars[0].dtype)


def _pairs(keys: Sequence[Any]) -> tuple[Matrix, Callable[[], Matrix]]:
    """Of each two keys whether one is less; and what says whether they are equal."""
    scalars = common_scalars(keys)
    if scalars is not None:
        row = shapes.stack(list(scalars))
        one, other = shapes.expand_dims(row, axis=1), shapes.expand_dims(row, axis=0)
        return elementwise.less(one, other), lambda: _or(elementwise.equal(one, other), _identical(keys))
    if any(map(depends, keys)) and _are_rows(keys):
        return _of_columns(keys)
    return _by_pairs(less, keys), lambda: _by_pairs(equal, keys)


def _are_rows(keys: Sequence[Any]) -> bool:
    """Whether keys are lists, or tuples, of one length."""
    first = keys[0]
    return type(first) in (list, tuple) and all(type(key) is type(first) and len(key) == len(first) for key in keys)


def _of_columns(keys: Sequence[Any]) -> tuple[Matrix, Callable[[], Matrix]]:
    """Of lists or tuples of one length: the first items that differ decide."""
    count = len(keys)
    before: Matrix = np.zeros((count, count), bool)
    same: Matrix = np.ones((count, count), bool)
    for column in zip(*keys):
        if isinstance(same, np.ndarray) and not (same & ~np.eye(count, dtype=bool)).any():
            break
        try:
            same_column, alike = _column(column)
        except (TypeError, HybridflowError) as error:  # they cannot be compared: nobody does if all are equal
            if isinstance(error, TraceError):
                raise
            same_column, alike = np.zeros((count, count), bool), functools.partial(_by_pairs, equal, column)
            differs = _and(same, _not(alike()))
            except_clauses.require(frame_of_user(), elementwise.logical_not(reductions.any(_tensor(differs))), error)
        before = _or(before, _and(same, same_column))
        same = _and(same, alike())
    return before, lambda: same


def _column(items: Sequence[Any]) -> tuple[Matrix, Callable[[], Matrix]]:
    if any(map(depends, items)):
        return _pairs(items)
    _note_operators(items, "__lt__", "__eq__")
    alike = np.array([[one is other or bool(one == other) for other in items] for one in items])
    smaller = np.array([[not alike[i, j] and bool(a < b) for j, b in enumerate(items)] for i, a in enumerate(items)])
    return smaller, lambda: alike


def _identical(keys: Sequence[Any]) -> np.ndarray:
    """Which keys are one object, which equals itself although it may be NaN."""
    return np.array([[one is other for other in keys] for one in keys])


def _by_pairs(ask: Function, keys: Sequence[Any]) -> Matrix:
    count = len(keys)
    equalities = [ask is equal if i == j else ask(one, keys[j]) for i, one in enumerate(keys) for j in range(count)]
    if all(isinstance(one, bool) for one in equalities):
        return np.array(equalities).reshape(count, count)
    parts = [scalar(one, dtypes.bool_, "sort") if isinstance(one, bool) else one for one in equalities]
    return shapes.reshape(shapes.stack(parts), (count, count))


def _tensor(matrix: Matrix) -> Tensor:
    return literal(matrix) if isinstance(matrix, np.ndarray) else matrix


def _and(one: Matrix, other: Matrix) -> Matrix:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one & other
    return elementwise.logical_and(_tensor(one), _tensor(other))


def _not(one: Matrix) -> Matrix:
    return ~one if isinstance(one, np.ndarray) else elementwise.logical_not(one)


def _or(one: Matrix, other: Matrix) -> Matrix:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one | other
    return elementwise.logical_or(_tensor(one), _tensor(other))


MAX = extreme(greater, "__gt__")
MIN = extreme(less, "__lt__")
