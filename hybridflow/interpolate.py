"""Interpolation by cubic splines: ``hf.interpolate``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any

from hybridflow.array.creation import zeros_like
from hybridflow.array.elementwise import clip, divide
from hybridflow.array.indexing import take
from hybridflow.array.reductions import all as _all
from hybridflow.array.shapes import concat, stack
from hybridflow.array.sorting import searchsorted
from hybridflow.compiler.ops import type_rules
from hybridflow.control.scan import scan
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.promotion import promote
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import cast, float_operand, reshape_to
from hybridflow.effects.runtime_raise import check_all
from hybridflow.errors import ArgumentError, ShapeError, entered

__all__ = ["CubicSpline"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)


@dataclasses.dataclass(frozen=True, eq=False, repr=False, init=False)
class CubicSpline:
    """A cubic spline through points, with a continuous second derivative.

    It is a nested value of tensors, an argument of functions like any other; derivatives reach points and values.

    Args:
        x: places that rise, two or more along one axis.
        y: values, with the axis of places first.
        bc_type: what holds at the ends: "not-a-knot", "natural" (no second derivative) or "clamped" (no first one).

    Raises:
        ArgumentError: for another ``bc_type``, and for places that do not rise.
        ShapeError: for fewer than two places, or values that do not fit.

    Example:
        >>> spline = hf.interpolate.CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0])
        >>> [round(v, 3) for v in spline([0.5, 2.5]).tolist()]
        [0.125, 15.625]
    """

    x: Tensor
    coefficients: Tensor

    @entered
    def __init__(self, x: object, y: object, bc_type: str = "not-a-knot") -> None:
        stage = "interpolate.CubicSpline"
        if bc_type not in ("not-a-knot", "natural", "clamped"):
            raise ArgumentError(stage, f"bc_type is {bc_type!r}. Expected 'not-a-knot', 'natural' or 'clamped'.")
        places, values = float_operand(x, stage), float_operand(y, stage)
        count = places.shape[0] if places.ndim == 1 else 0
        if not isinstance(count, int) or count < 2 or not values.ndim or values.shape[0] != count:
            raise ShapeError(
                stage, f"x is {places.type} and y {values.type}. Expected two places or more, and a value for each."
            )
        dtype = promote(places.dtype, values.dtype, stage)
        places, values = cast(places, dtype), cast(values, dtype)
        said = "places do not rise."
        rises = _all(places[1:] > places[:-1])
        check_all(rises, ArgumentError, lambda: ArgumentError(stage, said), (), said)
        steps = reshape_to(places[1:] - places[:-1], (count - 1, *[1] * (values.ndim - 1)))
        chords = divide(values[1:] - values[:-1], steps)
        slopes = _slopes(steps, chords, bc_type)
        bend = divide(slopes[:-1] + slopes[1:] - 2 * chords, steps)
        parts = [divide(bend, steps), divide(chords - slopes[:-1], steps) - bend, slopes[:-1], values[:-1]]
        object.__setattr__(self, "x", places)
        object.__setattr__(self, "coefficients", stack(parts))

    @entered
    def __call__(self, x: ArrayLike, nu: int = 0) -> Tensor:
        """The values at some places; beyond the ends, of the last cubics.

        Args:
            x: places, of any shape.
            nu: which derivative, from 0 to 3.

        Returns:
            A tensor of shape ``(*x.shape, *y.shape[1:])``.

        Raises:
            ArgumentError: for another derivative.
        """
        stage = "interpolate.CubicSpline"
        order = type_rules.integer(stage, "nu", nu)
        if not 0 <= order <= 3:
            raise ArgumentError(stage, f"nu is {order}. Expected 0 to 3.")
        places = cast(float_operand(x, stage), self.x.dtype)
        at = clip(searchsorted(self.x, places, side="right") - 1, 0, self.x.shape[0] - 2)
        inner = self.coefficients.ndim - 2
        t = reshape_to(places - take(self.x, at), (*places.shape, *[1] * inner))
        factors = {0: (1, 1, 1, 1), 1: (3, 2, 1), 2: (6, 2), 3: (6,)}[order]
        total: Any = None
        for k, factor in enumerate(factors):
            term = factor * take(self.coefficients[k], at, axis=0)
            total = term if total is None else total * t + term
        result: Tensor = total
        return result

    def __repr__(self) -> str:
        return f"<CubicSpline through {self.x.shape[0]} points>"


def _slopes(steps: Tensor, chords: Tensor, bc_type: str) -> Tensor:
    """The first derivatives at all places: a tridiagonal system."""
    count = steps.shape[0] + 1
    if count == 2:
        end = zeros_like(chords) if bc_type == "clamped" else chords
        return concat([end, end])
    h, m = steps, chords
    one, zero = h[:1] / h[:1], zeros_like(h[:1])
    if bc_type == "not-a-knot" and count == 3:  # one parabola
        rise = divide(m[1:] - m[:1], h[:1] + h[1:])
        return concat([m[:1] - rise * h[:1], m[:1] + rise * h[:1], m[1:] + rise * h[1:]])
    if bc_type == "clamped":
        first, last = (one, zero, zeros_like(m[:1])), (zero, one, zeros_like(m[:1]))
    elif bc_type == "natural":
        first, last = (2 * one, one, 3 * m[:1]), (one, 2 * one, 3 * m[-1:])
    else:
        d, e = h[:1] + h[1:2], h[-1:] + h[-2:-1]
        first = h[1:2], d, divide((h[:1] + 2 * d) * h[1:2] * m[:1] + h[:1] ** 2 * m[1:2], d)
        last = e, h[-2:-1], divide(h[-1:] ** 2 * m[-2:-1] + (2 * e + h[-1:]) * h[-2:-1] * m[-1:], e)
    shape = m.shape[1:]
    lower = concat([zero, h[1:], last[0]])
    diagonal = concat([first[0], 2 * (h[:-1] + h[1:]), last[1]])
    upper = concat([first[1], h[:-1], zero])
    right = concat([first[2], 3 * (h[1:] * m[:-1] + h[:-1] * m[1:]), last[2]])

    def forwards(before: Tensor, row: Tensor) -> Any:
        share = row[1] - row[0] * before[0]
        return divide(row[2], share), divide(row[3] - row[0] * before[1], share)

    width = (1,) * len(shape)
    started = (reshape_to(zero, width), zeros_like(right[0]))
    ratios, rights = scan(forwards, (lower, diagonal, upper, right), started)
    scanned = scan(lambda after, row: row[1] - row[0] * after, (ratios, rights), zeros_like(right[0]), reverse=True)
    result: Tensor = scanned
    return result
