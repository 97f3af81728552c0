"""Differences of neighbouring elements."""

from __future__ import annotations

from typing import Any

from hybridflow.array.elementwise import not_equal, subtract
from hybridflow.array.shapes import concat, slice_axis
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor, exclusive, expand
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError


@operation
def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Finite differences: ``x[i + 1] - x[i]`` along ``axis``, ``n`` times; of bools where neighbours differ.
    ``prepend`` and ``append`` are put in front of ``x`` and behind it first, a scalar once in each place.  Unsigned
    integers wrap around.

    Raises ShapeError for a scalar, ArgumentError for a negative ``n``.

    Args:
        x: a tensor, or what becomes one: an array, a nested list or a number.
        n: how many times.
        axis: an axis; negative ones count from the end.
        prepend: what is put in front first.
        append: what is put behind first.

    Returns:
        A tensor that is ``n`` shorter along ``axis``.

    Raises:
        AxisError: for an axis that is not there.

    >>> hf.diff(hf.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    x = as_tensor(x, "diff")
    if not x.ndim:
        raise ShapeError("diff", f"a scalar ({x.type}) has no neighbours.")
    axis = type_rules.axis("diff", x.type, axis)
    times = type_rules.integer("diff", "n", n)
    if times < 0:
        raise ArgumentError("diff", f"n is {times}; it must not be negative.")
    if not times:
        return exclusive(x)
    ends = [None if part is None else _end(part, x, axis) for part in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    step = not_equal if dtypes.is_bool(x.dtype) else subtract
    for _ in range(times):
        extent = x.shape[axis]
        if extent == 0:
            return exclusive(x)
        x = step(slice_axis(x, axis, 1, extent), slice_axis(x, axis, 0, extent - 1))
    return x


def _end(part: Any, x: Tensor, axis: int) -> Tensor:
    """What stands at one end of ``x``."""
    part = as_tensor(part, "diff")
    return part if part.ndim else expand(part, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
