"""Contractions: products summed over a shared axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.types import TensorType, same_shape
from hybridflow.compiler.ops import complex_pairs, reference_arrays, samples, type_rules
from hybridflow.compiler.ops.contraction_dims import Contraction, Factor
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Cotangent, Value


_NUMERIC = frozenset(type_rules.NUMERIC + dt.COMPLEX)


def _matmul_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {name: bool(attrs.get(name, False)) for name in ("transpose_a", "transpose_b")}
    result["sum_dtype"] = attrs.get("sum_dtype") or types[0].dtype
    result["lanes"] = bool(
        attrs.get("lanes", _contiguous(types[0], types[1], result["transpose_a"], result["transpose_b"]))
    )
    if attrs.get("precision", "highest") != "highest" and types[0].dtype == dt.float32:
        result["precision"] = attrs["precision"]
    if attrs.get("gaps"):
        result["gaps"] = True
    return result


def _contiguous(x: TensorType, y: TensorType, transpose_a: bool, transpose_b: bool) -> bool:
    """Whether the product has one row or one column, and neighbours along k lie side by side in both factors."""
    if x.ndim < 2 or y.ndim < 2:
        return False
    row = x.shape[-1 if transpose_a else -2] == 1
    column = y.shape[-2 if transpose_b else -1] == 1
    return bool((row or column) and (row or not transpose_a) and (column or transpose_b))


def _matmul_infer(
    x: TensorType,
    y: TensorType,
    transpose_a: bool,
    transpose_b: bool,
    sum_dtype: dt.DType,
    lanes: bool,
    precision: str = "highest",
    gaps: bool = False,
) -> TensorType:
    if precision not in ("high", "highest"):
        raise ArgumentError("matmul", f"precision is {precision!r}. Expected 'highest' or 'high'.")
    if x.dtype != y.dtype:
        raise DTypeError("matmul", f"dtypes differ: {x} and {y}. Expected equal dtypes. Convert one with astype.")
    type_rules.check_dtype("matmul", x, _NUMERIC)
    if sum_dtype != x.dtype and (dt.is_float(sum_dtype) != dt.is_float(x.dtype) or not dt.embeds(x.dtype, sum_dtype)):
        raise DTypeError(
            "matmul",
            f"sum_dtype is {sum_dtype}, the factors are {x} and {y}. Expected a dtype of the same kind that holds all "
            f"values of {x.dtype}.",
        )
    if x.ndim < 2 or y.ndim < 2:
        raise ShapeError("matmul", f"x is {x}, y is {y}. Expected at least two axes of each.")
    if not same_shape(x.shape[:-2], y.shape[:-2]):
        raise ShapeError("matmul", f"batch axes differ: x is {x}, y is {y}. Expected equal leading extents.")
    rows, inner = x.shape[-2:][::-1] if transpose_a else x.shape[-2:]
    other, columns = y.shape[-2:][::-1] if transpose_b else y.shape[-2:]
    if not same_shape((inner,), (other,)):
        a, b = (-2 if transpose_a else -1), (-1 if transpose_b else -2)
        hint = " Did you mean x @ y.T?" if not transpose_b and x.ndim == 2 and inner == y.shape[-1] else ""
        raise ShapeError(
            "matmul", f"inner sizes differ: x is {x}, y is {y}; x.shape[{a}] must equal y.shape[{b}].{hint}"
        )
    if lanes and rows != 1 and columns != 1:
        raise ShapeError("matmul", f"lanes are for one row or one column: x is {x}, y is {y}.")
    return TensorType((*x.shape[:-2], rows, columns), sum_dtype)


def _matmul_reference(
    x: np.ndarray,
    y: np.ndarray,
    transpose_a: bool,
    transpose_b: bool,
    sum_dtype: np.dtype,
    lanes: bool,
    precision: str = "highest",
    gaps: bool = False,
) -> np.ndarray:
    a = np.swapaxes(x, -1, -2) if transpose_a else x
    b = np.swapaxes(y, -1, -2) if transpose_b else y
    if not dt.is_inexact(x.dtype):
        return np.matmul(a.astype(sum_dtype), b.astype(sum_dtype))
    with np.errstate(all="ignore"):
        wide = dt.promote(x.dtype, dt.float64)
        return reference_arrays.convert(np.matmul(a.astype(wide), b.astype(wide)), sum_dtype)


def _matmul_vjp(
    b: Any,
    g: Value,
    out: Value,
    x: Any,
    y: Value,
    transpose_a: bool,
    transpose_b: bool,
    sum_dtype: Any,
    lanes: bool,
    precision: str = "highest",
    gaps: bool = False,
) -> tuple[Cotangent, ...]:
    """The transposed factors are read in place, through the attributes."""

    def matmul(left: Value, right: Value, **transposed: bool) -> Any:
        return b.matmul(left, right, precision=precision, **transposed)

    def factor(value: Any) -> Value:
        return value if value.dtype == sum_dtype else b.convert(value, dtype=sum_dtype)

    def cotangent(value: Any) -> Value:
        return value if value.dtype == x.dtype else b.convert(value, dtype=x.dtype)

    def for_x() -> Value:
        if transpose_a:
            return cotangent(matmul(factor(y), g, transpose_a=transpose_b, transpose_b=True))
        return cotangent(matmul(g, factor(y), transpose_a=False, transpose_b=not transpose_b))

    def for_y() -> Value:
        if transpose_b:
            return cotangent(matmul(g, factor(x), transpose_a=True, transpose_b=transpose_a))
        return cotangent(matmul(factor(x), g, transpose_a=not transpose_a, transpose_b=False))

    return for_x, for_y


def _matmul_contraction(types: tuple[TensorType, ...], attrs: Mapping[str, Any]) -> Contraction:
    def factor(x: TensorType, depth_first: bool) -> Factor:
        first, last = (x.ndim - 2,), (x.ndim - 1,)
        free, summed = (last, first) if depth_first else (first, last)
        return Factor(tuple(range(x.ndim - 2)), free, summed)

    left, right = factor(types[0], attrs["transpose_a"]), factor(types[1], not attrs["transpose_b"])
    return Contraction(left, right, attrs["lanes"], attrs.get("precision", "highest"), attrs.get("gaps", False))


def _matmul_contracting(wanted: Contraction) -> dict[str, Any] | None:
    """Only matrices over leading batch axes in order can be said in the attributes."""

    def depth_first(factor: Factor) -> bool | None:
        if len(factor.free) != 1 or len(factor.summed) != 1 or factor.batch != tuple(range(len(factor.batch))):
            return None
        return factor.summed < factor.free

    left, right = depth_first(wanted.left), depth_first(wanted.right)
    if left is None or right is None:
        return None
    return {"transpose_a": left, "transpose_b": not right}


def _matmul_samples(rng: np.random.Generator, dtype: np.dtype) -> list[samples.Sample]:
    result: list[samples.Sample] = []
    sizes = [
        ((), 3, 4, 5),
        ((), 1, 1, 1),
        ((2,), 3, 2, 4),
        ((2, 3), 2, 3, 1),
        ((), 0, 3, 2),
        ((), 2, 0, 3),
        ((), 17, 33, 9),
    ]
    for batch, m, k, n in sizes:
        for transpose_a in (False, True):
            for transpose_b in (False, True):
                x = samples.values(rng, dtype, (*batch, *((k, m) if transpose_a else (m, k))))
                y = samples.values(rng, dtype, (*batch, *((n, k) if transpose_b else (k, n))))
                result.append(((x, y), {"transpose_a": transpose_a, "transpose_b": transpose_b}))
    wider = [d for d in (dt.int32, dt.int64, dt.float32, dt.float64) if d != dtype and dt.embeds(dtype, d)]
    for sum_dtype in (d for d in wider if dt.is_float(d) == dt.is_float(dtype)):
        for m, k, n in ((3, 5, 4), (2, 70, 1)):
            x, y = samples.values(rng, dtype, (m, k)), samples.values(rng, dtype, (k, n))
            result.append(((x, y), {"sum_dtype": sum_dtype}))
    return result


define(
    "matmul",
    Kind.CONTRACT,
    2,
    doc="""Matrix products x[...,m,k] @ y[...,k,n] over equal leading axes; either matrix may be given transposed.
    The factors' elements are converted to ``sum_dtype``, their own dtype unless given, which the result has; sums of
    floats narrower than 32 bits are kept in float32 and rounded once.  With ``lanes`` a product of one row or one
    column is summed in the order of a row reduction, else by blocks of k; unless given, that is so where
    neighbours along k lie side by side in both factors.  With the ``precision`` "high" elements of float32 may be
    rounded to 10 bits behind the point, as tensor cores take them; "highest" is not written.  ``gaps`` says that rows
    of x are expected to begin or end with zeros, as masks leave them: a kernel may look for these and leave them out,
    which changes no bits; passes write it.""",
    canon=_matmul_canon,
    infer=_matmul_infer,
    reference=_matmul_reference,
    pairs=complex_pairs.matmul,
    vjp=_matmul_vjp,
    contraction=_matmul_contraction,
    contracting=_matmul_contracting,
    samples=_matmul_samples,
    dtypes=type_rules.NUMERIC,
    internal=("gaps",),
)
