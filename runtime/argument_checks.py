"""What every executable checks of the arrays that a program is run on, whichever device they lie on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridflow import errors
from hybridflow.compiler.program import Program, Slot, value_at
from hybridflow.errors import ArgumentError, DTypeError, ShapeError
from hybridflow.runtime.dtypes import NUMPY


def bind_dims(program: Program, arrays: Sequence[Any]) -> dict[str, int]:
    """The values of the symbolic extents.  Raises ArgumentError or ShapeError where they cannot be read."""
    if len(arrays) != len(program.inputs):
        raise ArgumentError(program.name, f"{len(program.inputs)} arrays expected, {len(arrays)} given.")
    dims = {}
    for source in program.dims:
        array = arrays[source.input]
        if source.axis >= array.ndim:
            raise ShapeError(program.name, _mismatch(program, source.input, array))
        dims[source.name] = source.value(array.shape[source.axis])
    return dims


def check(program: Program, i: int, array: Any, dims: dict[str, int]) -> None:
    """Raises DTypeError or ShapeError unless the array is of the type of input ``i``."""
    slot = program.inputs[i]
    if array.dtype != NUMPY[slot.dtype]:
        raise DTypeError(program.name, _mismatch(program, i, array))
    if array.shape != extents(slot, dims):
        raise ShapeError(program.name, _mismatch(program, i, array))


def extents(slot: Slot, dims: dict[str, int]) -> tuple[int, ...]:
    return tuple(value_at(extent, dims) for extent in slot.shape)


def updated(program: Program) -> tuple[int, ...]:
    """The inputs whose new value the program computes."""
    return tuple(i for i, slot in enumerate(program.inputs) if slot.updated)


def in_place(program: Program) -> frozenset[int]:
    """Those whose new value may be written over the old one."""
    return frozenset(i for i, slot in enumerate(program.inputs) if slot.in_place)


def not_updatable(program: Program, i: int) -> ArgumentError:
    name = program.inputs[i].name or "state"
    return ArgumentError(program.name, f"input {i} ({name}) is updated in place; it must be writable and contiguous.")


def both_updated(program: Program, i: int, j: int) -> ArgumentError:
    return ArgumentError(program.name, f"inputs {i} and {j} are both updated and share memory.")


def raise_check(program: Program, status: int) -> None:
    """Raise the error of the check that a nonzero status stands for."""
    failed = program.checks[status - 1]
    raise getattr(errors, failed.error)(failed.stage, failed.message, failed.where)


def _mismatch(program: Program, i: int, array: Any) -> str:
    slot = program.inputs[i]
    actual = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    return f"input {i} is {actual}; {slot.dtype}[{','.join(map(str, slot.shape))}] expected."
