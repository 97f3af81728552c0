"""One of many values, by its number: of tensors of one type, of numbers, and of what is nested alike, one is read where
the program runs; else it is a ``Choice``."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from hybridflow.array import elementwise, shapes
from hybridflow.autograph.runtime import object_trees
from hybridflow.autograph.runtime.aliasing import record_selected
from hybridflow.autograph.runtime.choices import Choice, is_choice, options_of
from hybridflow.autograph.runtime.exception_handlers import without_handlers
from hybridflow.autograph.runtime.phi import as_typed, can_merge, code_of, same_constant
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import TABLE
from hybridflow.core import pytree
from hybridflow.core.promotion import is_pythons
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import cast, literal
from hybridflow.tracing.control_nodes import emit_cond
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_number import weak_of
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

_FEW = 8  # values that are compared one by one
_SMALL = 64  # elements of tensors that are stacked; of larger ones a branch reads one


def select(code: Tensor, values: Sequence[Any], frame: FrameType | None = None, order: object = None) -> Any:
    """The value of the number ``code``, which is one of those that there are; for ``frame``, where somebody may know
    them as objects.  Numbers of one ``order`` are different ones."""
    first, *rest = values
    if all(same_constant(first, value) for value in rest):
        return first
    weak = _common_weak(values)
    if weak is not None:
        return weak.scalar(_row(code, [weak.tensor(value) for value in values], values, weak.dtype))
    dtype = _common_dtype(values)
    if dtype is not None:
        row = _row(code, [as_typed(value, dtype) for value in values], values, dtype)
        if frame is not None:
            record_selected(row, code, values, frame, order)
        return row
    if all(object_trees.is_container(value) for value in values) and not any(is_choice(x) for x in values):
        flat = [object_trees.flatten(value, object_trees.changeable_parts(value)) for value in values]
        if all(structure == flat[0][1] for _, structure in flat):
            columns = [select(code, column, frame, order) for column in zip(*(leaves for leaves, _ in flat))]
            result = pytree.unflatten(flat[0][1], columns)
            if frame is not None:
                record_selected(result, code, values, frame, order)
            return result
    return _choice(code, values, frame, order)


def common_scalars(values: Sequence[Any]) -> Sequence[Tensor] | None:
    """Scalars as tensors of one dtype; None if there is none that holds them all, or if some are not scalars."""
    weak = _common_weak(values)
    if weak is not None:
        return [weak.tensor(value) for value in values]
    dtype = _common_dtype(values)
    if dtype is None:
        return None
    tensors = [as_typed(value, dtype) for value in values]
    return tensors if all(not tensor.shape for tensor in tensors) else None


def _common_weak(values: Sequence[Any]) -> Any:
    """How all of some numbers go through a program; None if some are none."""
    result: Any = None
    for value in values:
        weak = weak_of(value)
        if weak is None:
            return None
        result = weak if result is None else result.joined(weak)
        if result is None:
            return None
    return result


def _common_dtype(values: Sequence[Any]) -> np.dtype[Any] | None:
    """The dtype of tensors of one type, numbers that it holds among them; None for others."""
    tensors = [value for value in values if isinstance(value, Tensor) and weak_of(value) is None]
    if tensors and all(can_merge(tensors[0], value) for value in values):
        return tensors[0].dtype
    return None


def _row(code: Tensor, tensors: Sequence[Tensor], values: Sequence[Any], dtype: np.dtype[Any]) -> Tensor:
    """One of tensors of one type."""
    if all(is_pythons(value) and not isinstance(value, Tensor) for value in values) and len(values) > _FEW:
        table = literal(np.array([np.asarray(value, dtype) for value in values]))
        with without_handlers():
            return apply(TABLE["take"], table, cast(code, dtypes.int64), axis=0)
    size = tensors[0].size
    if len(tensors) <= _FEW and size == 1:
        result = tensors[-1]
        for k in range(len(tensors) - 2, -1, -1):
            result = elementwise.where(elementwise.equal(code, k), tensors[k], result)
        return result
    if isinstance(size, int) and size <= _SMALL:
        with without_handlers():
            return apply(TABLE["take"], shapes.stack(list(tensors)), cast(code, dtypes.int64), axis=0)
    regions = [SubTrace("an item of a table") for _ in tensors]
    outputs: list[list[Tensor]] = []
    for region, tensor in zip(regions, tensors):
        with region.entered():
            outputs.append([SymbolicTensor(region.node_of(tensor), region)])
    return emit_cond(code, regions, outputs)[0]


def _choice(code: Tensor, values: Sequence[Any], frame: FrameType | None, order: object) -> Choice:
    """A choice of values without one type, those that are alike joined."""
    slots: list[list[tuple[int, Any]]] = []  # the numbers of values that go into one, which is made of options
    places: list[list[int]] = []
    for value in values:
        slot_numbers = []
        for option in options_of(value):
            slot_number = next((k for k, slot in enumerate(slots) if can_merge(slot[0][1], option)), len(slots))
            if slot_number == len(slots):
                slots.append([])
            slots[slot_number].append((len(places), option))
            slot_numbers.append(slot_number)
        places.append(slot_numbers)
    options = []
    for slot in slots:
        known = dict(slot)
        anything = slot[0][1]
        options.append(
            select(code, [known.get(k, anything) for k in range(len(values))], frame, order)
            if len(known) > 1
            else anything
        )
    codes = [
        code_of(value, slot_numbers) if is_choice(value) else slot_numbers[0]
        for value, slot_numbers in zip(values, places)
    ]
    if all(type(slot_numbers) is int for slot_numbers in codes) and codes == list(range(len(codes))):
        return Choice(cast(code, dtypes.int32), options)
    return Choice(as_typed(select(code, codes), dtypes.int32), options)
