"""Interpolation between values at places that ascend."""

from __future__ import annotations

from typing import Any

from hybridflow.array.elementwise import (
    add,
    clip,
    divide,
    equal,
    greater,
    isnan,
    less,
    logical_and,
    multiply,
    remainder,
    subtract,
    where,
)
from hybridflow.array.indexing import take
from hybridflow.array.shapes import concat
from hybridflow.array.sorting import argsort, searchsorted
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import default_float
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import cast, common_dtype
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError


@operation
def interp(
    x: ArrayLike,
    xp: Any,
    fp: Any,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: object = None,
) -> Tensor:
    """Linear interpolation: the value at ``x`` of the line through the points (``xp``, ``fp``).

    Integers and bools become float32. NaN in ``x`` stays.

    Args:
        x: where values are asked for; any shape.
        xp: the places of the points, of one axis, ascending.
        fp: the values of the points, as many.
        left: the value below ``xp[0]``; that of the first point unless given.
        right: the value above ``xp[-1]``; that of the last point unless given.
        period: the period of ``x``; then ``xp`` may have any order, and ``left`` and ``right`` do not count.

    Returns:
        A float tensor of the shape of ``x``.

    Raises:
        ShapeError: where the points are no vectors of one size, or there are none.
        ArgumentError: for the period 0.

    >>> hf.interp([0.5, 1.5, 9.0], [0.0, 1.0, 2.0], [10.0, 20.0, 40.0])
    <Tensor f32[3] cpu> [15. 30. 40.]
    """
    operands = common_dtype("interp", (x, xp, fp))
    type_rules.check_dtype("interp", operands[0].type, frozenset(dtypes.REAL))
    x, xp, fp = (t if dtypes.is_float(t.dtype) else cast(t, default_float) for t in operands)
    if xp.ndim != 1 or fp.shape != xp.shape or xp.shape[0] == 0:
        raise ShapeError("interp", f"xp is {xp.type}, and fp is {fp.type}; they must be vectors of one size.")
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    last = xp.shape[0] - 1
    if last == 0:
        place = clip(searchsorted(xp, x, side="right") - 1, 0, 0)
        inside = take(fp, place)
    else:
        low = clip(subtract(searchsorted(xp, x, side="right"), 1), 0, last - 1)
        x0, y0 = take(xp, low), take(fp, low)
        x1, y1 = take(xp, low + 1), take(fp, low + 1)
        span = subtract(x1, x0)
        slope = divide(subtract(y1, y0), where(equal(span, 0), 1.0, span))
        inside = add(multiply(slope, subtract(x, x0)), y0)
        # Beside an infinite value, the line has one at its ends, from one end alone, or between two equal ones.
        behind = add(multiply(slope, subtract(x, x1)), y1)
        behind = where(logical_and(isnan(behind), equal(y0, y1)), y0, behind)
        inside = where(isnan(inside), where(equal(x, x0), y0, behind), inside)
    result = where(less(x, xp[0]), fp[0] if left is None else left, inside)
    beyond = where(greater(x, xp[-1]), fp[-1] if right is None else right, result)
    return where(isnan(x), x, where(equal(x, xp[-1]), fp[-1], beyond))


def _periodic(x: Tensor, xp: Tensor, fp: Tensor, period: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The points of one period in order, with one more at either end."""
    if isinstance(period, (int, float)) and period == 0:
        raise ArgumentError("interp", "period is 0. Expected another number.")
    period = abs(period)
    xp = remainder(xp, period)
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    xp = concat([subtract(xp[-1:], period), xp, add(xp[:1], period)])
    return remainder(x, period), xp, concat([fp[-1:], fp, fp[:1]])
