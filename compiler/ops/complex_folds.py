"""Products of complex numbers along axes, and recurrences: folds over real and imaginary parts, whose states are pairs.

They stand for ``prod``, ``exclusive_product`` and ``linear_recurrence`` of complex numbers, in the same orders.  A scan
has one result, so there is one for each part.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import samples, type_rules
from hybridflow.compiler.ops.complex_pairs import Pair
from hybridflow.compiler.ops.emitter_protocol import Emit, State, Val
from hybridflow.compiler.ops.lowering import PrefixScan
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, TABLE, Kind, define

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Builder


_FLOATS = (dt.float32, dt.float64)


def _times(e: Emit, a: State, b: State) -> State:
    """As ``complex_pairs.multiply``, but 1 times a number is that number, an infinity too: it depends on the shape that
    a program is compiled for how often a fold begins with 1."""
    (ar, ai), (br, bi) = a, b
    product = e.sub(e.mul(ar, br), e.mul(ai, bi)), e.add(e.mul(ar, bi), e.mul(ai, br))
    one, zero = e.const(1, ar.dtype), e.const(0, ar.dtype)
    is_one, other_is_one = (e.and_(e.eq(real, one), e.eq(imag, zero)) for real, imag in (a, b))
    return tuple(e.select(is_one, y, e.select(other_is_one, x, z)) for x, y, z in zip(a, b, product))


def _joined(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    out = np.empty(real.shape, np.complex128)
    out.real, out.imag = real, imag
    return out


def _one(dtype: dt.DType) -> tuple[tuple[Any, Any], ...]:
    return (1, dtype), (0, dtype)


# ---- products


def _product_infer(x: TensorType, y: TensorType, axes: tuple[int, ...]) -> TupleType:
    type_rules.check_same("complex_prod", x, y)
    type_rules.check_dtype("complex_prod", x, frozenset(_FLOATS))
    part = TensorType(tuple(x.shape[a] for a in type_rules.kept_axes(x.ndim, axes)), x.dtype)
    return TupleType((part, part))


def _product_reference(x: np.ndarray, y: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(all="ignore"):
        result = np.asarray(np.prod(_joined(x, y), axis=axes))
        return result.real.astype(x.dtype), result.imag.astype(x.dtype)


def _product_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    cases: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((), ()),
        ((7,), (0,)),
        ((5, 7), (0,)),
        ((5, 7), (1,)),
        ((2, 3, 9), (0, 2)),
        ((0,), (0,)),
        ((0, 3), (1,)),
    ]
    return [
        (tuple(samples.values(rng, dtype, shape) for _ in range(2)), {"axes": axes}) for shape, axes in cases
    ]  # fmt: skip


define(
    "complex_prod",
    Kind.REDUCE,
    2,
    doc="The parts of the product over axes of complex numbers, which are given by their parts.",
    canon=type_rules.canon_axes("complex_prod"),
    infer=_product_infer,
    reference=_product_reference,
    lift=lambda e, x, y, i: (x, y),
    combine=_times,
    init=_one,
    finish=lambda e, state, dtypes: state,
    vjp=NOT_DIFFERENTIABLE,  # there is one of prod
    samples=_product_samples,
    dtypes=_FLOATS,
    internal=True,
)


def prod(b: Builder, x: Pair, axes: tuple[int, ...]) -> Pair:
    return Pair(*b.results(b.complex_prod(x.real, x.imag, axes=axes)))


# ---- scans


def _scan_infer(name: str) -> Callable[..., Any]:
    def infer(*types: TensorType, axis: int) -> TensorType:
        type_rules.check_same(name, *types)
        type_rules.check_dtype(name, types[0], frozenset(_FLOATS))
        return types[0]

    return infer


def _scan_reference(of: str, imag: bool) -> Callable[..., Any]:
    def reference(*parts: np.ndarray, axis: int) -> np.ndarray:
        wide = [_joined(x, y) for x, y in zip(parts[::2], parts[1::2])]
        result = TABLE[of].reference(*wide, axis=axis)
        return np.ascontiguousarray(result.imag if imag else result.real).astype(parts[0].dtype)

    return reference


def _scan_samples(parts: int) -> Callable[..., Any]:
    def make(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
        cases = [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((1,), 0), ((0,), 0), ((2, 0), 0)]
        return [
            (tuple(samples.values(rng, dtype, shape) for _ in range(parts)), {"axis": axis}) for shape, axis in cases
        ]

    return make


def _scans(of: str, operands: int, result: int, **fields: object) -> None:
    """One for each part of the result, which is that of the state from component ``result`` on."""
    for k, part in enumerate(("real", "imag")):
        name = f"complex_{of}_{part}"
        define(
            name,
            Kind.SCAN,
            2 * operands,
            doc=f"The part ``{part}`` of ``{of}`` of complex numbers, which are given by their parts.",
            canon=type_rules.canon_axis(name),
            infer=_scan_infer(name),
            reference=_scan_reference(of, part == "imag"),
            finish=functools.partial(_finish, result + k),
            lower=lambda types, attrs: PrefixScan(attrs["axis"], exclusive=True),
            vjp=NOT_DIFFERENTIABLE,  # there is one of what it stands for
            samples=_scan_samples(2 * operands),
            dtypes=_FLOATS,
            internal=True,
            **fields,
        )


def _finish(component: int, e: Emit, state: State, dtype: dt.DType) -> Val:
    return state[component]


_scans(
    "exclusive_product",
    1,
    0,
    lift=lambda e, x, y, i: (x, y),
    combine=_times,
    init=_one,
)


def _recurrence_combine(e: Emit, s: State, t: State) -> State:
    """Nothing times an infinity is nothing, as in ``linear_recurrence``."""

    def unless_zero(z: State, results: State, otherwise: State) -> State:
        zero = e.const(0, z[0].dtype)
        nothing: Val = e.and_(e.eq(z[0], zero), e.eq(z[1], zero))
        return tuple(e.select(nothing, x, y) for x, y in zip(otherwise, results))

    factor, total, a, b = s[:2], s[2:], t[:2], t[2:]
    product = unless_zero(factor, _times(e, factor, a), factor)
    grown = _times(e, a, total)
    return *product, *unless_zero(total, (e.add(grown[0], b[0]), e.add(grown[1], b[1])), b)


_scans(
    "linear_recurrence",
    2,
    2,
    lift=lambda e, ar, ai, br, bi, i: (ar, ai, br, bi),
    combine=_recurrence_combine,
    init=lambda dtype: (*_one(dtype), (0, dtype), (0, dtype)),
)


def exclusive_product(b: Builder, x: Pair, axis: int) -> Pair:
    real, imag = b.complex_exclusive_product_real, b.complex_exclusive_product_imag
    return Pair(real(*x, axis=axis), imag(*x, axis=axis))


def linear_recurrence(b: Builder, x: Pair, y: Pair, axis: int) -> Pair:
    real, imag = b.complex_linear_recurrence_real, b.complex_linear_recurrence_imag
    return Pair(real(*x, *y, axis=axis), imag(*x, *y, axis=axis))
