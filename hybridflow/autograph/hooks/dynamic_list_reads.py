"""What code asks of lists whose length a tensor decides, see ``autograph.runtime.dynamic_list``.

Where the code is in no loop of the program such a list is given its items; in one, the program finds what is asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.array import creation, elementwise, shapes
from hybridflow.array.indexing import take
from hybridflow.autograph.hooks import per_choice
from hybridflow.autograph.runtime import conditional, dynamic_list, state
from hybridflow.autograph.runtime.dynamic_list import DynamicList, is_dynamic
from hybridflow.autograph.runtime.iterables import Rows
from hybridflow.autograph.runtime.mutable_locations import location_of
from hybridflow.autograph.runtime.tensor_range import Counted
from hybridflow.autograph.runtime.undo_log import logged_write
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.types import same_extents
from hybridflow.core.context import current
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import scalar
from hybridflow.tracing import number_errors
from hybridflow.tracing.symbolic_number import number_of, number_tensor
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


def is_grown(value: object) -> bool:
    return state.active.grown and is_dynamic(value)


def _has_known_length(values: list[Any]) -> bool:
    """Whether the program is told how long a list is, from now on if it was not."""
    if dynamic_list.is_in_loop():
        return False
    dynamic_list.settle(values)
    return True


def length(values: list[Any]) -> Any:
    """``len(values)``"""
    return dynamic_list.length(values)


def decide_truth(value: Any) -> Any:
    """The truth of a value; a bool where that is one of how many items a list has, and the code in no loop."""
    if is_dynamic(value):
        if not dynamic_list.is_in_loop():
            dynamic_list.settle(value)
        return truth(value) if is_dynamic(value) else bool(value)
    value = per_choice.truth(value)
    if not isinstance(value, SymbolicTensor) or dynamic_list.is_in_loop() or not dynamic_list.is_of_length(value):
        return value
    return bool(dynamic_list.describe_length(elementwise.astype(conditional.truth(value), dtypes.int64)))


def truth(values: list[Any]) -> Any:
    """Whether there are any: a bool, or a tensor of one."""
    before, _, behind = dynamic_list.parts(values)
    if before or behind:
        return True
    count = length(values)
    if isinstance(count, SymbolicTensor):
        return elementwise.greater(number_tensor(count, int), 0)
    return bool(count > 0)


def _is_static(key: object, values: list[Any]) -> bool:
    """Whether an index is of an item that Python has."""
    if type(key) is not int:
        return False
    before, _, behind = dynamic_list.parts(values)
    return key < len(before) if key >= 0 else -key <= len(behind)


def item(values: list[Any], key: Any) -> Any:
    """``values[key]``"""
    if _is_static(key, values):
        return values[key]
    is_index = isinstance(key, (int, np.integer)) or (isinstance(key, SymbolicTensor) and key.size == 1)
    if is_index and not isinstance(key, bool):
        whole = dynamic_list.to_array(values)
        if whole is not None:
            row = _row(whole, key, "list index out of range")
            return dynamic_list.note_taken(whole.item(row))
    dynamic_list.settle_all(values)
    return values[key]


def _row(whole: DynamicList, key: object, text: str) -> Tensor:
    """The row of an index; the program ends with an IndexError where there is none."""
    row = dynamic_list.position(key, whole.length)
    _check_row(row, whole.length, text)
    return number_of(row)


def _check_row(row: Tensor, count: Tensor, text: str) -> None:
    fits = elementwise.logical_and(elementwise.greater_equal(row, 0), elementwise.less(row, count))

    def fail(row: int, count: int) -> Any:
        raise IndexError(text)

    fail.__name__ = "list"
    number_errors.fail_unless(fits, fail, (IndexError,), row, count)


def iterate(values: list[Any]) -> Any:
    """What takes the items of a list one after another."""
    before, grown, behind = dynamic_list.parts(values)
    assert grown is not None
    if dynamic_list.is_in_loop():
        whole = dynamic_list.to_array(values)
        if whole is None:
            raise dynamic_list.not_known()
        return Counted(number_of(whole.length), lambda k: dynamic_list.note_taken(whole.item(k)))
    dynamic_list.settle(values)
    before, grown, behind = dynamic_list.parts(values)
    rows = None if grown is None or before or behind else _rows(grown)
    if rows is not None:
        return Rows(rows)
    dynamic_list.settle_all(values)
    return values


def _rows(grown: DynamicList) -> Tensor | None:
    """The rows, if items are tensors."""
    is_plain = len(grown.stacks) == 1 and not grown.form.structure.children
    return grown.stacks[0] if is_plain and not grown.form.numbers else None


_MANY = 8


def as_rows(items: Sequence[Any]) -> Any:
    """Many tensors of one type in a list as rows, so that a loop of the program may walk over them; others as they
    are."""
    if type(items) not in (list, tuple) or len(items) <= _MANY or current.trace is None:
        return items
    first = items[0]
    if not isinstance(first, SymbolicTensor) or first.is_weak:
        return items
    if any(
        not isinstance(x, SymbolicTensor)
        or x.is_weak
        or x.dtype != first.dtype
        or not same_extents(x.shape, first.shape)
        for x in items
    ):
        return items
    return shapes.stack(list(items))


def materialize_lists(value: object) -> Any:
    """A value in which all lists have their items, for code that looks at them."""
    return dynamic_list.materialize_lists(value)


# ---- methods


def method(values: list[Any], name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """What to call for a method of such a list."""
    replacement = _METHODS.get(name)
    if replacement is not None:
        return functools.partial(replacement, values)
    if name in _KEEPING:
        return method

    def call(*args: object, **kwargs: object) -> Any:
        dynamic_list.settle_all(values)
        return method(*args, **kwargs)

    return call


_KEEPING = frozenset(("append", "clear", "copy"))


def _extend(values: list[Any], more: Any) -> None:
    if not is_dynamic(more):
        more = list(more)
    _put_item(values, [*values, *more])


def _insert(values: list[Any], index: Any, new: Any) -> None:
    before, _, behind = dynamic_list.parts(values)
    if isinstance(index, SymbolicTensor):
        insert_at(values, index, new)
        return
    if type(index) is int and 0 <= index <= len(before):
        _put_item(values, [*values[:index], new, *values[index:]])
        return
    if type(index) is int and index < 0 and -index <= len(behind):
        _put_item(values, [*values[:index], new, *values[index:]])
        return
    dynamic_list.settle_all(values)
    values.insert(index, new)


def insert_at(values: list[Any], index: SymbolicTensor, new: object) -> None:
    """``values.insert(index, new)``, where a tensor decides about the index; the list may be any."""
    known = None if is_dynamic(values) else len(values)
    whole = dynamic_list.to_array([*values, new])
    if whole is None:
        raise dynamic_list.no_form()
    count = elementwise.subtract(whole.length, 1)
    place = elementwise.clip(dynamic_list.position(index, count), 0, count)
    rows = creation.arange(whole.rows)
    source = elementwise.where(
        elementwise.less(rows, place),
        rows,
        elementwise.where(
            elementwise.equal(rows, place), count, elementwise.where(elementwise.greater(rows, count), rows, rows - 1)
        ),
    )
    result = whole._replace(stacks=tuple([take(x, source, axis=0) for x in whole.stacks]))
    _put_item(
        values, [result] if known is None else [dynamic_list.note_taken(result.item(k)) for k in range(known + 1)]
    )


def _pop(values: list[Any], index: Any = -1) -> Any:
    if _is_static(index, values):
        result = values[index]
        _put_item(values, [*values[:index], *values[index:][1:]])
        return result
    whole = dynamic_list.to_array(values) if dynamic_list.is_in_loop() else None
    if whole is None or type(index) is not int or index not in (-1, 0):
        dynamic_list.settle_all(values)
        return values.pop(index)
    count = whole.length
    last = elementwise.subtract(count, 1)
    row = last if index else scalar(0, dtypes.int64, "convert")
    _check_row(row, count, "pop from empty list")
    result = dynamic_list.note_taken(whole.item(number_of(row)))
    stacks = whole.stacks
    if index == 0:
        stacks = tuple([_shift_rows(x) for x in stacks])
    _put_item(values, [whole._replace(count=last, stacks=stacks)])
    return result


def _shift_rows(x: Tensor) -> Tensor:
    """The rows, each in the place of the one before it."""
    return shapes.concat([x[1:], x[:1]])


def _put_item(values: list[Any], items: list[Any]) -> None:
    place = location_of(values)
    assert place is not None
    logged_write(place, items)


_METHODS: dict[str, Callable[..., Any]] = {"extend": _extend, "insert": _insert, "pop": _pop}


class Writer:
    """A list whose length a tensor decides where an item of it is set or deleted."""

    __slots__ = ("_values",)

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __getitem__(self, key: object) -> Any:
        return item(self._values, key)

    def __setitem__(self, key: Any, new: Any) -> None:
        values = self._values
        if _is_static(key, values):
            values[key] = new
            return
        whole = dynamic_list.to_array([*values])
        form = None if whole is None else dynamic_list.Form.of(new)
        if isinstance(key, slice) or whole is None or form is None or whole.form.merge(form) is not whole.form:
            dynamic_list.settle_all(values)
            values[key] = new
            return
        row = _row(whole, key, "list assignment index out of range")
        _put_item(values, [whole.replace(row, dynamic_list.note_taken(new))])

    def __delitem__(self, key: Any) -> None:
        if key == -1 or key == 0:
            _pop(self._values, key)
            return
        dynamic_list.settle_all(self._values)
        del self._values[key]


# ---- operators and functions


def callable_for(function: object, function_called: Callable[..., Any]) -> Callable[..., Any]:
    """What to call for a function that is not the user's, and may be given such lists."""
    replacement = _FUNCTIONS.get(function) if isinstance(function, _HASHED) else None

    def call(*args: object, **kwargs: object) -> Any:
        if not state.active.grown:
            return function_called(*args, **kwargs)
        if replacement is not None and args and is_dynamic(args[0]):
            return replacement(function_called, *args, **kwargs)
        return function_called(
            *map(materialize_lists, args), **{name: materialize_lists(value) for name, value in kwargs.items()}
        )

    # Not by functools.wraps: while the user's code runs that has functions recorded which it calls.
    call.__wrapped__ = function_called  # type: ignore[attr-defined]
    name = getattr(function_called, "__name__", None)  # an object of the user's may say anything
    call.__name__ = name if isinstance(name, str) else "call"
    return call


def _len(builtin: object, values: Any) -> Any:
    return length(values)


def _list(builtin: object, values: Any) -> Any:
    return list(values)


def _bool(builtin: object, values: Any) -> Any:
    value = truth(values)
    return number_of(value) if isinstance(value, SymbolicTensor) else value


def _enumerate(builtin: Callable[..., object], values: Any, start: Any = 0) -> Any:
    walk = iterate(values)
    return walk.numbered(start) if isinstance(walk, Counted) else builtin(walk, start)


def _reverse(builtin: Callable[..., object], values: Any) -> Any:
    if dynamic_list.is_in_loop():
        whole = dynamic_list.to_array(values)
        if whole is not None:
            count = number_of(whole.length)
            return Counted(count, lambda k: dynamic_list.note_taken(whole.item(count - 1 - k)))
    return builtin(iterate(values))


def _stack(builtin: Callable[..., object], values: Any, *args: object, **kwargs: object) -> Any:
    """A function that stacks items: the rows are the stack."""
    rows = stack_items(values)
    if rows is None:
        dynamic_list.settle_all(values)
        return builtin(values, *args, **kwargs)
    axis = kwargs.pop("axis", args[0] if args else 0)
    if kwargs or len(args) > 1 or axis != 0:
        dynamic_list.settle_all(values)
        return builtin(values, *args, **({**kwargs, "axis": axis} if not args else kwargs))
    return rows


def _array(builtin: Callable[..., Any], values: Any, *args: object, **kwargs: object) -> Any:
    """A function that makes a tensor of what it is given."""
    rows = stack_items(values)
    if rows is None:
        dynamic_list.settle_all(values)
        rows = values
    return builtin(rows, *args, **kwargs)


def _concat(builtin: Callable[..., object], values: Any, *args: object, **kwargs: object) -> Any:
    rows = stack_items(values)
    axis = kwargs.get("axis", args[0] if args else 0)
    if rows is None or axis != 0 or len(rows.shape) < 2 or kwargs.keys() - {"axis"} or len(args) > 1:
        dynamic_list.settle_all(values)
        return builtin(values, *args, **kwargs)
    return shapes.reshape(rows, (rows.shape[0] * rows.shape[1], *rows.shape[2:]))


def stack_items(values: list[Any]) -> Tensor | None:
    """The items as a stack of which the program is told the number; None where they have to be taken one by one."""
    dynamic_list.settle(values)
    before, grown, behind = dynamic_list.parts(values)
    if grown is None or not isinstance(grown.count, Dim):
        return None
    rows = _rows(grown)
    if rows is None or any(not isinstance(x, Tensor) or x.dtype != rows.dtype for x in (*before, *behind)):
        return None
    ends = [[shapes.stack(part)] if part else [] for part in (before, behind)]
    return shapes.concat([*ends[0], rows, *ends[1]]) if before or behind else rows


_HASHED = (type, type(len), type(creation.asarray), type(shapes.stack))
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    len: _len,
    list: _list,
    bool: _bool,
    enumerate: _enumerate,
    reversed: _reverse,
    shapes.stack: _stack,
    np.stack: _stack,
    creation.asarray: _array,
    np.asarray: _array,
    np.array: _array,
    shapes.concat: _concat,
    np.concatenate: _concat,
}
