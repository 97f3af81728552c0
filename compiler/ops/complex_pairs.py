"""What ops are of complex numbers: real ops on pairs of real and imaginary parts.

Rules take a builder first, then the operands: a ``Pair`` for each that is complex.  Arithmetic is NumPy's, to the bit
where IEEE 754 fixes that: a product is the four real ones and does not mend infinities that became NaN, as Annex G of
C99 would have it; a quotient is Smith's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Literal

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Builder, Value


class Pair(NamedTuple):
    """A complex value: its real and its imaginary part, of one type."""

    real: Any
    imag: Any


Rule = Callable[..., Any]


def componentwise(name: str) -> Rule:
    """The rule of ops that do the same to both parts."""

    def rule(b: Builder, *xs: Value, **attrs: object) -> Pair:
        op = getattr(b, name)
        real = op(*[x.real if isinstance(x, Pair) else x for x in xs], **attrs)
        return Pair(real, op(*[x.imag if isinstance(x, Pair) else x for x in xs], **attrs))

    return rule


class Moved:
    """The rule of ops whose results are elements of their operands, bit for bit: they may stay whole."""

    def __init__(self, name: str) -> None:
        self._rule = componentwise(name)

    def __call__(self, b: Any, *xs: Any, **attrs: Any) -> Pair:
        result: Pair = self._rule(b, *xs, **attrs)
        return result


def either(name: str, join: str) -> Rule:
    """The rule of tests: that of both parts, joined by ``logical_or`` or ``logical_and``."""

    def rule(b: object, *xs: Pair) -> Value:
        test = getattr(b, name)
        return getattr(b, join)(test(*[x.real for x in xs]), test(*[x.imag for x in xs]))

    return rule


def deferred(module: str, name: str) -> Rule:
    """The rule of that name in a module beside this one, which programs of real numbers do without."""

    def rule(b: Builder, *xs: Pair, **attrs: object) -> Pair:
        rule_of_module = getattr(importlib.import_module(f"hybridflow.compiler.ops.{module}"), name)
        result: Pair = rule_of_module(b, *xs, **attrs)
        return result

    return rule


def elementary(name: str) -> Rule:
    return deferred("complex_elementary", name)


def full(b: Any, value: float, like: Value) -> Any:
    return b.full(value, like=like.type)


def joined(b: Any, x: Any, dtype: np.dtype[Any]) -> Pair:
    """Real numbers as complex ones of ``dtype``."""
    part = dt.part_dtype(dtype)
    real = x if x.dtype == part else b.convert(x, dtype=part)
    return Pair(real, full(b, 0, real))


# ---- ops that there are for complex numbers alone


def convert(b: Builder, x: Any, dtype: np.dtype) -> Any:
    if not isinstance(x, Pair):
        return joined(b, x, dtype)
    part = dt.part_dtype(dtype)
    if dt.is_complex(dtype):
        return x if x.real.dtype == part else Pair(b.convert(x.real, dtype=part), b.convert(x.imag, dtype=part))
    if dt.is_bool(dtype):
        zero = full(b, 0, x.real)
        return b.logical_or(b.not_equal(x.real, zero), b.not_equal(x.imag, zero))
    return b.convert(x.real, dtype=dtype) if x.real.dtype != dtype else x.real


def constant(b: Builder, value: Literal) -> Pair:
    array = value.array
    real, imag = (np.ascontiguousarray(part).reshape(array.shape) for part in (array.real, array.imag))
    return Pair(b.constant(value=Literal.of(real)), b.constant(value=Literal.of(imag)))


def pad(b: Builder, x: Pair, value: object, **attrs: object) -> Pair:
    return Pair(b.pad(x.real, value=value, **attrs), b.pad(x.imag, value=0.0, **attrs))


# ---- arithmetic


def multiply(b: Builder, x: Pair, y: Pair) -> Pair:
    real = b.subtract(b.multiply(x.real, y.real), b.multiply(x.imag, y.imag))
    return Pair(real, b.add(b.multiply(x.real, y.imag), b.multiply(x.imag, y.real)))


def square(b: Builder, x: Pair) -> Pair:
    product = b.multiply(x.real, x.imag)
    return Pair(b.subtract(b.square(x.real), b.square(x.imag)), b.add(product, product))


def _choose(b: Builder, condition: Value, x: Pair, y: Pair) -> Pair:
    return Pair(b.where(condition, x.real, y.real), b.where(condition, x.imag, y.imag))


def divide(b: Builder, x: Pair, y: Pair) -> Pair:
    """Smith's algorithm: the larger part of the divisor is divided by, so that nothing overflows that need not."""
    real, imag = b.abs(y.real), b.abs(y.imag)
    by_real = b.greater_equal(real, imag)
    large, small = b.where(by_real, y.real, y.imag), b.where(by_real, y.imag, y.real)
    ratio = b.divide(small, large)
    scale = b.reciprocal(b.add(large, b.multiply(small, ratio)))
    # Over the real part (xr + xi * ratio, xi - xr * ratio); over the other one (xi + xr * ratio, xi * ratio - xr).
    first, second = b.where(by_real, x.real, x.imag), b.where(by_real, x.imag, x.real)
    above = b.add(first, b.multiply(second, ratio))
    straight = b.subtract(second, b.multiply(first, ratio))
    turned = b.subtract(b.multiply(first, ratio), second)
    quotient = Pair(b.multiply(above, scale), b.multiply(b.where(by_real, straight, turned), scale))
    zero = full(b, 0, real)
    nothing = b.logical_and(b.equal(real, zero), b.equal(imag, zero))
    return _choose(b, nothing, Pair(b.divide(x.real, real), b.divide(x.imag, real)), quotient)


def reciprocal(b: Builder, x: Pair) -> Pair:
    """As NumPy's ``reciprocal`` has it."""
    by_real = b.less_equal(b.abs(x.imag), b.abs(x.real))
    large, small = b.where(by_real, x.real, x.imag), b.where(by_real, x.imag, x.real)
    ratio = b.divide(small, large)
    below = b.add(large, b.multiply(small, ratio))
    whole, part = b.reciprocal(below), b.divide(ratio, below)
    return Pair(b.where(by_real, whole, part), b.negative(b.where(by_real, part, whole)))


def sign(b: Builder, x: Pair) -> Pair:
    """x / abs(x), and 0 of 0: the array API standard's.  Where one part alone is infinite it is its sign, as NumPy has
    it; two infinite ones have no direction."""
    zero = full(b, 0, x.real)
    infinite = b.isinf(x.real), b.isinf(x.imag)
    alone = b.not_equal(*infinite)
    signs = zip(infinite, (x.real, x.imag))
    x = Pair(
        *(
            b.where(alone, b.where(is_infinite, b.sign(part), b.copysign(zero, part)), part)
            for is_infinite, part in signs
        )
    )
    length = b.hypot(x.real, x.imag)
    nothing = b.equal(length, zero)
    return Pair(
        b.where(nothing, zero, b.divide(x.real, length)),
        b.where(nothing, zero, b.divide(x.imag, length)),
    )


# ---- products that are summed


def convolution(name: str) -> Callable[..., Any]:
    """The rule of an op that is a sum of products of its operands."""

    def pairs(b: Builder, x: Pair, y: Pair, **attrs: object) -> Pair:
        def product(left: object, right: object) -> Any:
            return getattr(b, name)(left, right, **attrs)

        real = b.subtract(product(x.real, y.real), product(x.imag, y.imag))
        return Pair(real, b.add(product(x.real, y.imag), product(x.imag, y.real)))

    return pairs


def matmul(b: Builder, x: Pair, y: Pair, sum_dtype: dt.DType, **attrs: object) -> Pair:
    """Four real products, each in the order of real ones."""

    def product(left: object, right: object) -> Any:
        return b.matmul(left, right, sum_dtype=dt.part_dtype(sum_dtype), **attrs)

    real = b.subtract(product(x.real, y.real), product(x.imag, y.imag))
    return Pair(real, b.add(product(x.real, y.imag), product(x.imag, y.real)))


def vecdot(b: Builder, x: Pair, y: Pair, axes: object, sum_dtype: dt.DType) -> Pair:
    def product(left: object, right: object) -> Any:
        return b.vecdot(left, right, axes=axes, sum_dtype=dt.part_dtype(sum_dtype))

    real = b.subtract(product(x.real, y.real), product(x.imag, y.imag))
    return Pair(real, b.add(product(x.real, y.imag), product(x.imag, y.real)))
