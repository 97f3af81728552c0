"""What many declarations share: type rules, attribute checks, and small pieces of derivatives."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Value
from hybridflow.compiler.ir.types import Dim, Extent, Shape, TensorType, same_shape, shape_fault
from hybridflow.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DTypeError,
    HybridflowError,
    ShapeError,
    SymbolicExtentError,
)

NUMERIC = dt.INTEGERS + dt.FLOATS
BITS = (dt.bool_, *dt.INTEGERS)
BOOL = (dt.bool_,)

_CLASSES = {
    frozenset(dt.ALL): "any dtype",
    frozenset(dt.REAL + dt.COMPLEX): "a dtype that can be computed with",
    frozenset(dt.REAL): "a real dtype",
    frozenset(NUMERIC + dt.COMPLEX): "an integer or float dtype, or a complex one",
    frozenset(dt.FLOATS + dt.COMPLEX): "a float dtype, or a complex one",
    frozenset(dt.COMPLEX): "a complex dtype",
    frozenset(NUMERIC): "an integer or float dtype",
    frozenset(dt.FLOATS): "a float dtype",
    frozenset(dt.INTEGERS): "an integer dtype",
    frozenset(BITS): "bool or an integer dtype",
    frozenset(BOOL): "bool",
    frozenset((dt.int32, dt.int64)): "int32 or int64",
    frozenset((dt.int64,)): "int64",
    frozenset((dt.uint64,)): "uint64",
    frozenset((dt.float32, dt.float64)): "float32 or float64",
}


# ---- type rules


def check_dtype(name: str, x: TensorType, allowed: frozenset[Any], what: str = "the input") -> None:
    if x.dtype not in allowed:
        hint = "Convert it with astype first."
        if dt.is_complex(x.dtype):
            hint = "Take real(x), imag(x) or abs(x) of the complex numbers first."
        if dt.is_stored(x.dtype):
            hint = f"Numbers of {x.dtype} are stored and moved only: convert them to {dt.wide_dtype(x.dtype)} first."
        raise DTypeError(name, f"{what} is {x}. Expected {_CLASSES[allowed]}. {hint}")


def check_same(name: str, *types: TensorType) -> None:
    """All types equal, or the error names two that differ."""
    first = types[0]
    for other in types[1:]:
        if other.dtype != first.dtype:
            raise DTypeError(
                name, f"dtypes differ: {first} and {other}. Expected equal dtypes. Convert one with astype."
            )
        if not same_shape(other.shape, first.shape):
            raise ShapeError(name, f"shapes differ: {first} and {other}. Expected equal shapes. Broadcast one first.")


def same_type(name: str, dtypes: Iterable[Any]) -> Callable[..., TensorType]:
    """The rule of ops whose inputs and output all have one type."""
    allowed = frozenset(dtypes)

    def infer(first: TensorType, *others: TensorType) -> TensorType:
        if others:
            check_same(name, first, *others)
        check_dtype(name, first, allowed)
        return first

    return infer


def bool_result(name: str, dtypes: Iterable[Any]) -> Callable[..., TensorType]:
    """The rule of ops that compare or test values of one type."""
    same = same_type(name, dtypes)

    def infer(*types: TensorType) -> TensorType:
        return same(*types).with_dtype(dt.bool_)

    return infer


# ---- attributes


def integer(name: str, what: str, value: Any) -> int:
    try:
        return operator.index(value)
    except HybridflowError:  # a traced tensor, which says itself what to do
        raise
    except TypeError:
        raise ArgumentTypeError(name, f"{what} is {value!r}. Expected an integer.") from None


def flag(name: str, what: str, value: object) -> bool:
    """A bool; 0 and 1 are taken for one, as programs of NumPy's write them."""
    if isinstance(value, (bool, int, np.bool_)) and value in (0, 1):
        return bool(value)
    raise ArgumentTypeError(name, f"{what} is {value!r}. Expected True or False.")


def extent(name: str, what: str, value: Any) -> Extent:
    """An int or a Dim that is not known to be negative."""
    size = whole(name, what, value)
    if isinstance(size, int) and size < 0:
        raise ShapeError(name, f"{what} holds the negative extent {size}.")
    return size


def whole(name: str, what: str, value: Any) -> Extent:
    """An integer, or an expression over symbolic extents.  What stands for one that only the program knows, such as a
    symbolic tensor, says by ``_to_extent`` which."""
    if type(value) is int or isinstance(value, Dim):
        return value
    to_extent = getattr(value, "_to_extent", None)
    return integer(name, what, value) if to_extent is None else to_extent()


def shape(name: str, values: Sequence[Any]) -> Shape:
    try:
        result = tuple([extent(name, "shape", v) for v in values])
    except HybridflowError:
        raise
    except TypeError:
        raise ArgumentTypeError(name, f"shape is {values!r}. Expected a sequence of integers.") from None
    fault = shape_fault(result)
    if fault is not None:
        raise ShapeError(name, f"the shape {fault}")
    return result


def axis(name: str, x: TensorType, value: Any) -> int:
    """An axis of ``x``, counted from the front."""
    position = integer(name, "axis", value)
    if not -x.ndim <= position < x.ndim:
        expected = f"Expected {-x.ndim} <= axis < {x.ndim}." if x.ndim else "A scalar has no axes."
        raise AxisError(name, f"axis {position} is out of range for {x}. {expected}")
    return position % x.ndim


def axes(name: str, x: TensorType, values: object) -> tuple[int, ...]:
    """Sorted distinct axes of ``x``; None means all, an int means one."""
    if values is None:
        return tuple(range(x.ndim))
    if not isinstance(values, (tuple, list)):
        values = (values,)
    result = tuple(sorted(axis(name, x, v) for v in values))
    if len(set(result)) != len(result):
        raise ShapeError(name, f"axes {tuple(values)} name an axis of {x} twice.")
    return result


def per_axis(name: str, what: str, x: TensorType, values: Any) -> tuple[Any, ...]:
    """One value for each axis of ``x``."""
    result = tuple(values)
    if len(result) != x.ndim:
        raise ArgumentError(name, f"{what} has {len(result)} entries. Expected one for each axis of {x}.")
    return result


def canon_axis(name: str) -> Callable[..., dict[str, Any]]:
    """Normalises the attribute ``axis``, which counts the axes of the first input."""

    def canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, int]:
        return {**attrs, "axis": axis(name, types[0], attrs["axis"])}

    return canon


def canon_axes(name: str) -> Callable[..., dict[str, Any]]:
    """Normalises the attribute ``axes``; without it, all axes are meant."""

    def canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        return {**attrs, "axes": axes(name, types[0], attrs.get("axes"))}

    return canon


def symbolic(name: str, what: str) -> SymbolicExtentError:
    """The error of a rule that would have to calculate with a symbolic extent."""
    return SymbolicExtentError(
        name, f"{what}, whose extent is symbolic. Expected an extent that is known when tracing."
    )


# ---- derivatives


def masked(b: Builder, g: Value, d: Value) -> Value:
    """``g * d``, where a zero cotangent gives zero even though the derivative ``d`` is infinite or NaN there.

    For ops whose derivative has poles: in ``where(x > 0, sqrt(x), 0)`` the cotangent that reaches sqrt at x = 0 is
    zero, and 0 * inf would be NaN.  Only the non-finite ``d`` is replaced, not the product, so that the derivative
    of this expression with respect to ``g`` stays ``d`` wherever that is finite: second derivatives stay right.
    """
    zero = b.full(0, like=g.type)
    pole = b.logical_and(b.equal(g, zero), b.logical_not(b.isfinite(d)))
    return b.multiply(g, b.where(pole, zero, d))


def as_dtype(b: Builder, x: Value, dtype: object) -> Any:
    """``x`` converted, unless it has the dtype already."""
    return x if x.type.dtype == dtype else b.convert(x, dtype=dtype)


def kept_axes(ndim: int, dropped: Sequence[int]) -> tuple[int, ...]:
    """The axes that a reduction over ``dropped`` leaves."""
    return tuple([a for a in range(ndim) if a not in dropped])
