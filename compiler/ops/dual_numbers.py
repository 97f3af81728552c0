"""Series and continued fractions of scalar rules, with their derivative to a parameter: dual numbers in lanes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from hybridflow.compiler.ops.elementary_common import Emit, Value, while_any

_EPSILON = 2.0**-54
_MOST_TERMS = 200_000.0
_NEARLY = 2.0**-46  # of a result: changes below may be rounding errors
TINY = 1e-300  # in place of a zero that Lentz's method would divide by


class Dual(NamedTuple):
    """A value and its derivative to the parameter; None where that is 0 or nobody asks for it."""

    value: Value
    slope: Value | None = None


def product(e: Emit, a: Dual, b: Dual) -> Dual:
    value = e.mul(a.value, b.value)
    if a.slope is None:
        return Dual(value, None if b.slope is None else e.mul(a.value, b.slope))
    left = e.mul(a.slope, b.value)
    return Dual(value, left if b.slope is None else e.fma(a.value, b.slope, left))


def product_plus(e: Emit, a: Dual, b: Dual, c: Dual) -> Dual:
    """a * b + c, its value rounded once."""
    return Dual(e.fma(a.value, b.value, c.value), plus(e, product(e, a, b), c).slope)


def quotient(e: Emit, a: Dual, b: Dual) -> Dual:
    value = e.div(a.value, b.value)
    if b.slope is None:
        return Dual(value, None if a.slope is None else e.div(a.slope, b.value))
    lost = e.mul(value, b.slope)
    return Dual(value, e.div(e.neg(lost) if a.slope is None else e.sub(a.slope, lost), b.value))


def plus(e: Emit, a: Dual, b: Dual) -> Dual:
    slope = a.slope if b.slope is None else b.slope if a.slope is None else e.add(a.slope, b.slope)
    return Dual(e.add(a.value, b.value), slope)


def choose(e: Emit, condition: Value, a: Dual, b: Dual) -> Dual:
    value = e.select(condition, a.value, b.value)
    if a.slope is None and b.slope is None:
        return Dual(value)
    return Dual(value, e.select(condition, slope_of(e, a), slope_of(e, b)))


def slope_of(e: Emit, a: Dual) -> Value:
    return e.zero(a.value.dtype) if a.slope is None else a.slope


def with_slope(e: Emit, a: Dual, like: Dual) -> Dual:
    """``a``, with a slope where ``like`` has one."""
    return a if like.slope is None else Dual(a.value, slope_of(e, a))


def nonzero(e: Emit, a: Dual) -> Dual:
    return Dual(e.select(e.lt(e.abs(a.value), TINY), TINY, a.value), a.slope)


def iterate(e: Emit, wanted: Value, start: list[Dual], step: Callable[..., tuple[list[Dual], Value]]) -> list[Dual]:
    """``start`` after steps that each say which lanes still move; a step knows its number, from 1 on."""

    def parts(duals: list[Dual]) -> list[Value]:
        return [part for dual in duals for part in dual if part is not None]

    def duals(values: tuple[Value, ...]) -> list[Dual]:
        rest = iter(values)
        return [Dual(next(rest), None if dual.slope is None else next(rest)) for dual in start]

    def condition(number: Value, going: Value, *values: Value) -> Value:
        return e.and_(going, e.lt(number, _MOST_TERMS))

    def body(number: Value, going: Value, *values: Value) -> list[Value]:
        following = e.add(number, 1.0)
        before = duals(values)
        after, moving = step(following, *before)
        kept = [choose(e, going, a, b) for a, b in zip(after, before)]
        return [following, e.and_(going, moving), *parts(kept)]

    number = e.zero(start[0].value.dtype)
    _, going, *values = while_any(e, [number, wanted, *parts(start)], condition, body)
    # What still moves is no result: NaN rather than a wrong number.
    return duals(tuple(e.select(going, math.nan, value) for value in values))


def moves(e: Emit, change: Dual, total: Dual) -> Value:
    moving = e.gt(e.abs(change.value), e.mul(e.abs(total.value), _EPSILON))
    if change.slope is None or total.slope is None:
        return moving
    return e.or_(moving, e.gt(e.abs(change.slope), e.mul(e.abs(total.slope), _EPSILON)))


def settles(e: Emit, change: Dual, before: Dual, total: Dual) -> Value:
    """Whether what converged is still nearing its limit: ``change`` is not yet down to rounding errors, where one is no
    smaller than the one ``before``."""

    def part(change: Value, before: Value, size: Value) -> Value:
        is_steady = e.or_(e.lt(change, before), e.gt(change, e.mul(size, _NEARLY)))
        return e.and_(e.gt(change, e.mul(size, 8 * _EPSILON)), is_steady)

    size = e.abs(total.value)
    moving = part(change.value, before.value, size)
    if change.slope is None or before.slope is None or total.slope is None:
        return moving
    return e.or_(moving, part(change.slope, before.slope, e.add(size, e.abs(total.slope))))


def lentz(e: Emit, going: Value, h: Dual, c: Dual, d: Dual, term: Callable[[Value], tuple[Dual, Dual]]) -> Dual:
    """The continued fraction whose k-th partial numerator and denominator are ``term(k)``."""
    one = Dual(e.const(1.0, h.value.dtype, h.value.width))

    def step(number: Value, h: Dual, c: Dual, d: Dual) -> tuple[list[Dual], Value]:
        numerator, denominator = term(number)
        d = quotient(e, one, nonzero(e, plus(e, denominator, product(e, numerator, d))))
        c = nonzero(e, plus(e, denominator, quotient(e, numerator, c)))
        following = product(e, h, product(e, c, d))
        change = Dual(
            e.mul(e.sub(following.value, h.value), 0.25),
            None if h.slope is None else e.mul(e.sub(slope_of(e, following), h.slope), 0.25),
        )
        return [following, c, d], moves(e, change, following)

    return iterate(e, going, [h, with_slope(e, c, h), d], step)[0]
