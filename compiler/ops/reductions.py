"""Reductions, and the running sum.

A reduction is a state and how it grows: ``lift`` makes the state of one element, ``combine`` joins two states, ``init``
is the state of nothing, and ``finish`` reads the result off the state.  Float states are float32 or float64, whatever
the input.  The order of combining is the loop emitter's, fixed by shape and axes alone (see evaluation_order.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.results import TupleType, types_agree
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import complex_pairs, elementary, reference_arrays, samples, type_rules
from hybridflow.compiler.ops.emitter_protocol import Emit, State, Val
from hybridflow.compiler.ops.lowering import PrefixScan
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, NOWHERE, TABLE, Kind, define
from hybridflow.errors import ShapeError


def _infer(
    name: str, dtypes: tuple[Any, ...], result: np.dtype | None = None, empty: bool = True
) -> Callable[..., Any]:
    """The rule of reductions; ``empty`` says whether nothing has a value, ``result`` the dtype when it is another."""
    allowed = frozenset(dtypes)

    def infer(x: TensorType, axes: tuple[int, ...]) -> TensorType:
        type_rules.check_dtype(name, x, allowed)
        if not empty and any(x.shape[a] == 0 for a in axes):
            raise ShapeError(name, f"{x} has no elements along axes {axes}, and {name} of nothing has no value.")
        shape = tuple(x.shape[a] for a in type_rules.kept_axes(x.ndim, axes))
        return TensorType(shape, result or x.dtype)

    return infer


def _samples(empty: bool = True) -> Callable[..., Any]:
    """Shapes whose trailing, leading, middle or all axes are reduced, and the edge values."""

    def make(rng: np.random.Generator, dtype: np.dtype) -> list[samples.Sample]:
        cases: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
            ((), ()),
            ((1,), (0,)),
            ((67,), (0,)),
            ((5, 7), (0,)),
            ((5, 7), (1,)),
            ((2, 3, 65), (0, 2)),
            ((4, 3, 2), (1,)),
            ((3, 2, 5), ()),
            ((0, 3), (1,)),
        ]
        if empty:
            cases += [((0,), (0,)), ((3, 0), (1,))]
        result: list[samples.Sample] = [((samples.values(rng, dtype, shape),), {"axes": axes}) for shape, axes in cases]
        edges = samples.edges(dtype)
        result += [((edges[:n],), {"axes": (0,)}) for n in range(1, len(edges) + 1)]
        result += [((edges[::-1].copy(),), {"axes": (0,)})]
        return result

    return make


def _fold(name: str, dtypes: tuple[Any, ...], *, result: Any = None, empty: bool = True, **fields: Any) -> None:
    """A reduction; most have a state of one component, which is the element itself."""
    fields.setdefault("lift", lambda e, x, i: (x,))
    fields.setdefault("finish", _rounded)
    define(
        name,
        Kind.REDUCE,
        1,
        canon=type_rules.canon_axes(name),
        infer=_infer(name, tuple(dtypes) + (dt.COMPLEX if "pairs" in fields else ()), result, empty),
        samples=_samples(empty),
        dtypes=tuple(dtypes),
        **fields,
    )


def _rounded(e: Emit, state: State, dtype: dt.DType) -> Val:
    return state[0] if state[0].dtype == dtype else e.convert(state[0], dtype)


def spread(b: Builder, value: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """A reduction's result (or its cotangent) repeated along the axes that were reduced."""
    if not axes:
        return value
    kept = type_rules.kept_axes(len(x.shape), axes) if len(axes) < len(x.shape) else ()
    return b.broadcast(value, shape=x.shape, axes=kept)


# ---- sums and products


def _sum_reference(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if not dt.is_inexact(x.dtype):
        return np.asarray(np.sum(x, axis=axes, dtype=x.dtype))
    with np.errstate(all="ignore"):
        return reference_arrays.convert(0.0 + np.sum(x.astype(dt.promote(x.dtype, dt.float64)), axis=axes), x.dtype)


def sum_identity(dtype: dt.DType) -> tuple[tuple[Any, Any], ...]:
    """The state of the sum of nothing."""
    # -0.0 is the identity that changes no bits: 0.0 would turn a -0.0 into 0.0.
    return ((-0.0 if dt.is_float(dtype) else 0, dt.compute_dtype(dtype)),)


def sum_finish(e: Emit, state: State, dtype: dt.DType) -> Val:
    """The total, in the dtype of the result."""
    total = state[0]
    if dt.is_float(total.dtype):
        total = e.add(e.const(0.0, total.dtype), total)  # an empty sum is 0.0, not the identity -0.0
    return _rounded(e, (total,), dtype)


_fold(
    "sum",
    type_rules.NUMERIC,
    doc="The sum over axes, in the input's dtype; integers wrap, and the sum of nothing is 0.",
    reference=_sum_reference,
    pairs=complex_pairs.componentwise("sum"),
    combine=lambda e, s, t: (e.add(s[0], t[0]),),
    init=sum_identity,
    finish=sum_finish,
    vjp=lambda b, g, out, x, axes: (spread(b, g, x, axes),),
)


def _prod_reference(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if not dt.is_inexact(x.dtype):
        return np.asarray(np.prod(x, axis=axes, dtype=x.dtype))
    with np.errstate(all="ignore"):
        return reference_arrays.convert(np.prod(x.astype(dt.promote(x.dtype, dt.float64)), axis=axes), x.dtype)


def _prod_vjp(b: Builder, g: Any, out: Value, x: Any, axes: tuple[int, ...]) -> tuple[Cotangent, ...]:
    """The product of all other elements, without dividing by an element, which may be 0: along one axis at a time, of
    what comes before times what comes after.

    Only multiplications are used, so derivatives of any order are right at zeros too; and no extent needs to be known.
    """
    if not axes:
        return (g,)
    steps = []
    value = type_rules.as_dtype(b, x, dt.compute_dtype(x.dtype))
    for axis in sorted(axes, reverse=True):
        steps.append((axis, value))
        if len(steps) < len(axes):
            value = b.prod(value, axes=(axis,))
    cotangent = type_rules.as_dtype(b, g, value.dtype)
    for axis, value in reversed(steps):
        before = b.exclusive_product(value, axis=axis)
        after = _reversed(b, b.exclusive_product(_reversed(b, value, axis), axis=axis), axis)
        cotangent = b.multiply(spread(b, cotangent, value, (axis,)), b.multiply(before, after))
    return (type_rules.as_dtype(b, cotangent, x.dtype),)


def _reversed(b: Builder, x: Value, axis: int) -> Value:
    return b.reverse(x, axes=(axis,))


_fold(
    "prod",
    type_rules.NUMERIC,
    doc="The product over axes, in the input's dtype; integers wrap, and the product of nothing is 1.",
    reference=_prod_reference,
    pairs=complex_pairs.deferred("complex_folds", "prod"),
    combine=lambda e, s, t: (e.mul(s[0], t[0]),),
    init=lambda dtype: ((1, dt.compute_dtype(dtype)),),
    vjp=_prod_vjp,
)


# ---- extremes


def _lowest(dtype: np.dtype) -> float:
    return -math.inf if dt.is_float(dtype) else int(np.iinfo(dtype).min)


def _highest(dtype: np.dtype) -> float:
    return math.inf if dt.is_float(dtype) else int(np.iinfo(dtype).max)


def _extreme_reference(pick: Callable[..., Any], zero_sign: float) -> Callable[..., Any]:
    """np.min or np.max with -0.0 < 0.0, which NumPy leaves open."""

    def reference(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        wide = reference_arrays.computed(x)
        with np.errstate(all="ignore"):
            result = pick(wide, axis=axes)
        if dt.is_float(x.dtype):
            zeros = np.where(wide == 0, np.copysign(1.0, wide), -zero_sign)
            sign = pick(zeros, axis=axes, initial=-zero_sign)
            result = np.where(result == 0, np.copysign(result, sign), result)
        return reference_arrays.convert(result, x.dtype)

    return reference


def _extreme_vjp(b: Builder, g: Value, out: Value, x: Value, axes: tuple[int, ...]) -> tuple[Cotangent, ...]:
    """Elements that equal the result share the cotangent evenly."""
    taken = b.equal(x, spread(b, out, x, axes))
    zero, one = b.full(0, like=x.type), b.full(1, like=x.type)
    ties = b.sum(b.where(taken, one, zero), axes=axes)
    return (b.where(taken, spread(b, b.divide(g, ties), x, axes), zero),)


def _pick(e: Emit, x: Val, y: Val, larger: bool) -> Val:
    if dt.is_float(x.dtype):
        return e.maximum(x, y) if larger else e.minimum(x, y)
    return e.select(e.gt(x, y) if larger else e.lt(x, y), x, y)


_fold(
    "max",
    type_rules.NUMERIC,
    doc="The largest element over axes; NaN if there is one.",
    empty=False,
    reference=_extreme_reference(np.max, 1.0),
    combine=lambda e, s, t: (_pick(e, s[0], t[0], True),),
    init=lambda dtype: ((_lowest(dtype), dt.compute_dtype(dtype)),),
    vjp=_extreme_vjp,
)

_fold(
    "min",
    type_rules.NUMERIC,
    doc="The smallest element over axes; NaN if there is one.",
    empty=False,
    reference=_extreme_reference(np.min, -1.0),
    combine=lambda e, s, t: (_pick(e, s[0], t[0], False),),
    init=lambda dtype: ((_highest(dtype), dt.compute_dtype(dtype)),),
    vjp=_extreme_vjp,
)

_fold(
    "any",
    type_rules.BOOL,
    doc="Whether any element over axes is True; False of nothing.",
    reference=lambda x, axes: np.asarray(np.any(x, axis=axes)),
    combine=lambda e, s, t: (e.or_(s[0], t[0]),),
    init=lambda dtype: ((False, dt.bool_),),
    vjp=NOT_DIFFERENTIABLE,
    facts={"exact": True},
)

_fold(
    "all",
    type_rules.BOOL,
    doc="Whether all elements over axes are True; True of nothing.",
    reference=lambda x, axes: np.asarray(np.all(x, axis=axes)),
    combine=lambda e, s, t: (e.and_(s[0], t[0]),),
    init=lambda dtype: ((True, dt.bool_),),
    vjp=NOT_DIFFERENTIABLE,
    facts={"exact": True},
)


# ---- positions of extremes


def _position_reference(find: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        kept = type_rules.kept_axes(x.ndim, axes)
        count = int(np.prod([x.shape[a] for a in axes]))
        rows = reference_arrays.computed(x).transpose(*kept, *axes).reshape(*(x.shape[a] for a in kept), count)
        return np.asarray(find(rows, axis=-1), np.int64)

    return reference


def _position_combine(larger: bool) -> Callable[..., Any]:
    """The better of two (value, position) pairs: NaN beats all, and the lower position wins ties.

    Comparing positions makes the result the same in whatever order the pairs are combined.
    """

    def combine(e: Emit, s: State, t: State) -> State:
        (x, i), (y, j) = s, t
        better, tie = (e.gt(y, x) if larger else e.lt(y, x)), e.eq(x, y)
        if dt.is_float(x.dtype):
            x_nan, y_nan = e.is_nan(x), e.is_nan(y)
            better = e.or_(better, e.and_(y_nan, e.not_(x_nan)))
            tie = e.or_(tie, e.and_(x_nan, y_nan))
        take = e.or_(better, e.and_(tie, e.lt(j, i)))
        return e.select(take, y, x), e.select(take, j, i)

    return combine


def _position_later(larger: bool) -> Callable[..., Any]:
    """The same where all positions of the second pair are higher: only what is better, or the first NaN, is taken.

    What is no better than ``init`` stays nowhere; ``_position_finish`` says where it is.
    """

    def later(e: Emit, s: State, t: State) -> State:
        (x, i), (y, j) = s, t
        if dt.is_float(x.dtype):
            no_better = e.le(y, x) if larger else e.ge(y, x)
            take = e.not_(e.or_(no_better, e.is_nan(x)))
        else:
            take = e.gt(y, x) if larger else e.lt(y, x)
        return e.select(take, y, x), e.select(take, j, i)

    return later


def _position_finish(e: Emit, state: State, larger: bool) -> State:
    """Value and position: where the best is the worst there is all elements are that, and the first is at 0."""
    value, position = state
    dtype = value.dtype
    worst = e.const((_lowest if larger else _highest)(dtype), dtype)
    return value, e.select(e.eq(value, worst), e.zero(position.dtype), position)


def _position_samples(rng: np.random.Generator, dtype: np.dtype) -> list[samples.Sample]:
    ties = np.array([1, 3, 0, 3, 0, 1]).astype(dtype)
    return [*_samples(empty=False)(rng, dtype), ((ties,), {"axes": (0,)}), ((ties.reshape(2, 3),), {"axes": (0, 1)})]


def _position(name: str, find: Callable[..., Any], larger: bool, doc: str) -> None:
    define(
        name,
        Kind.REDUCE,
        1,
        doc=doc,
        canon=type_rules.canon_axes(name),
        infer=_infer(name, type_rules.NUMERIC, dt.int64, empty=False),
        reference=_position_reference(find),
        lift=lambda e, x, i: (x, i),
        combine=_position_combine(larger),
        later=_position_later(larger),
        init=lambda dtype: (
            ((_lowest if larger else _highest)(dtype), dt.compute_dtype(dtype)),
            NOWHERE,
        ),
        finish=lambda e, state, dtype: _position_finish(e, state, larger)[1],
        vjp=NOT_DIFFERENTIABLE,
        samples=_position_samples,
        dtypes=type_rules.NUMERIC,
        facts={"exact": True},
    )


def _position_with_value(name: str, find: Callable[..., Any], larger: bool, doc: str) -> None:
    """Value and position of an extreme along one axis, from one pass over the data."""
    one_position = _infer(name, type_rules.NUMERIC, dt.int64, empty=False)

    def canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        attrs = type_rules.canon_axes(name)(types, attrs)
        if len(attrs["axes"]) != 1:
            raise ShapeError(name, f"axes are {attrs['axes']} of {types[0]}. Expected one axis.")
        return attrs

    def infer(x: TensorType, axes: tuple[int, ...]) -> TupleType:
        position = one_position(x, axes)
        return TupleType((position.with_dtype(x.dtype), position))

    def reference(x: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        position = np.asarray(find(reference_arrays.computed(x), axis=axes[0]), np.int64)
        value = np.take_along_axis(x, np.expand_dims(position, axes[0]), axes[0])
        return value.squeeze(axes[0]), position

    def vjp(b: Builder, gs: Sequence[Any], outs: Sequence[Any], x: Any, axes: tuple[int, ...]) -> tuple[Any, ...]:
        g, position = gs[0], outs[1]
        if g is None:
            return (None,)
        positions = b.iota(shape=x.shape, axis=axes[0], dtype=dt.int64)
        taken = b.equal(positions, spread(b, position, x, axes))
        return (b.where(taken, spread(b, g, x, axes), b.full(0, like=x.type)),)

    define(
        name,
        Kind.REDUCE,
        1,
        doc=doc,
        canon=canon,
        infer=infer,
        reference=reference,
        lift=lambda e, x, i: (x, i),
        combine=_position_combine(larger),
        later=_position_later(larger),
        init=TABLE[f"arg{name[:3]}"].init,
        finish=lambda e, state, dtypes: _position_finish(e, state, larger),
        vjp=vjp,
        samples=lambda rng, dtype: [s for s in _position_samples(rng, dtype) if len(s[1]["axes"]) == 1],
        dtypes=type_rules.NUMERIC,
        internal=True,
        facts={"exact": True},
    )


_position(
    "argmax",
    np.argmax,
    True,
    "Position of the first largest element, or of the first NaN: in row-major order over the axes.",
)
_position(
    "argmin",
    np.argmin,
    False,
    "Position of the first smallest element, or of the first NaN: in row-major order over the axes.",
)

_position_with_value(
    "max_with_position",
    np.argmax,
    True,
    doc="The first largest element along an axis, or the first NaN, and where it is.",
)

_position_with_value(
    "min_with_position",
    np.argmin,
    False,
    doc="The first smallest element along an axis, or the first NaN, and where it is.",
)


# ---- running sums and products


def _cumulative_sum_infer(x: TensorType, axis: int) -> TensorType:
    type_rules.check_dtype("cumulative_sum", x, frozenset(type_rules.NUMERIC + dt.COMPLEX))
    return x


def _cumulative_sum_reference(x: np.ndarray, axis: int) -> np.ndarray:
    if not dt.is_float(x.dtype):
        return np.cumsum(x, axis=axis, dtype=x.dtype)
    with np.errstate(all="ignore"):
        return reference_arrays.convert(np.cumsum(x.astype(np.float64), axis=axis), x.dtype)


def _cumulative_sum_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    cases = [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 65), 1), ((1,), 0), ((0,), 0), ((2, 0), 0)]
    result: list[samples.Sample] = [((samples.values(rng, dtype, shape),), {"axis": axis}) for shape, axis in cases]
    return [*result, ((samples.edges(dtype),), {"axis": 0})]


def _prefix_scan(types: tuple[TensorType, ...], attrs: Mapping[str, Any]) -> PrefixScan:
    return PrefixScan(attrs["axis"])


def _exclusive_scan(types: tuple[TensorType, ...], attrs: Mapping[str, Any]) -> PrefixScan:
    return PrefixScan(attrs["axis"], exclusive=True)


define(
    "cumulative_sum",
    Kind.SCAN,
    1,
    doc="Element i along the axis is the sum of elements 0 to i, in the order of scans; integers wrap.",
    canon=type_rules.canon_axis("cumulative_sum"),
    infer=_cumulative_sum_infer,
    reference=_cumulative_sum_reference,
    pairs=complex_pairs.componentwise("cumulative_sum"),
    lift=lambda e, x, i: (x,),
    combine=lambda e, s, t: (e.add(s[0], t[0]),),
    init=sum_identity,
    finish=_rounded,
    lower=_prefix_scan,
    vjp=lambda b, g, out, x, axis: (b.reverse(b.cumulative_sum(b.reverse(g, axes=(axis,)), axis=axis), axes=(axis,)),),
    samples=_cumulative_sum_samples,
    dtypes=type_rules.NUMERIC,
)


def _like(*inputs: TensorType, axis: int, name: str, dtypes: tuple[Any, ...] = dt.FLOATS) -> TensorType:
    for x in inputs:
        type_rules.check_dtype(name, x, frozenset(dtypes))
        if not types_agree(x, inputs[0]):
            raise ShapeError(name, f"the inputs are {inputs[0]} and {x}. Expected equal types.")
    return inputs[0]


def _exclusive(x: np.ndarray, axis: int, start: object, step: Any) -> np.ndarray:
    """Element i along the axis is what ``step(total, i-th slice)`` made of ``start`` in all steps before i."""
    lines = np.moveaxis(x.astype(dt.promote(x.dtype, dt.float64)), axis, 0)
    out = np.empty_like(lines)
    total = np.full(lines.shape[1:], start)
    with np.errstate(all="ignore"):
        for i in range(len(lines)):
            out[i] = total
            total = step(total, i)
        return reference_arrays.convert(np.moveaxis(out, 0, axis), x.dtype)


def _exclusive_product_reference(x: np.ndarray, axis: int) -> np.ndarray:
    if not dt.is_inexact(x.dtype):
        kept, one = (slice(None),) * axis, np.ones((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
        return np.cumprod(np.concatenate([one, x], axis), axis, dtype=x.dtype)[(*kept, slice(0, x.shape[axis]))]
    lines = np.moveaxis(x.astype(dt.promote(x.dtype, dt.float64)), axis, 0)
    return _exclusive(x, axis, 1.0, lambda total, i: total * lines[i])


def _linear_recurrence_reference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    factors, terms = (np.moveaxis(x.astype(dt.promote(x.dtype, dt.float64)), axis, 0) for x in (a, b))

    def step(total: np.ndarray, i: int) -> np.ndarray:
        return np.asarray(np.where(total == 0, terms[i], factors[i] * total + terms[i]))

    return _exclusive(a, axis, 0.0, step)


def _prefix_scan_samples(inputs: int) -> Callable[..., Any]:
    def make(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
        cases = [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 9), 1), ((1,), 0), ((0,), 0), ((2, 0), 0)]
        return [
            (tuple(samples.values(rng, dtype, shape) for _ in range(inputs)), {"axis": axis}) for shape, axis in cases
        ]

    return make


def _carried(b: Builder, factors: Value, g: Value, axis: int) -> Value:
    """The cotangent of what each element adds to the total: the recurrence of the transposed chain, from the end."""
    turned = b.linear_recurrence(_reversed(b, factors, axis), _reversed(b, g, axis), axis=axis)
    return _reversed(b, turned, axis)


define(
    "exclusive_product",
    Kind.SCAN,
    1,
    doc="Element i along the axis is the product of the elements before it, in the order of scans; the first is 1.  "
    "Integers wrap.",
    canon=type_rules.canon_axis("exclusive_product"),
    infer=lambda x, axis: _like(x, axis=axis, name="exclusive_product", dtypes=type_rules.NUMERIC + dt.COMPLEX),
    pairs=complex_pairs.deferred("complex_folds", "exclusive_product"),
    reference=_exclusive_product_reference,
    lift=lambda e, x, i: (x,),
    combine=lambda e, s, t: (e.mul(s[0], t[0]),),
    init=lambda dtype: ((1, dt.compute_dtype(dtype)),),
    finish=_rounded,
    lower=_exclusive_scan,
    vjp=lambda b, g, out, x, axis: (b.multiply(_carried(b, x, g, axis), out),),
    samples=_prefix_scan_samples(1),
    dtypes=type_rules.NUMERIC,
)


def _linear_recurrence_combine(e: Emit, s: State, t: State) -> State:
    """Linear maps, one after the other.  Nothing times an infinity is nothing, as for cotangents elsewhere: of totals,
    and of factors, so that a zero factor ends what came before in whatever groups maps are joined."""
    (factor, total), (a, b) = s, t
    zero = e.const(0, total.dtype)
    product = e.select(e.eq(factor, zero), factor, e.mul(factor, a))
    return product, e.select(e.eq(total, zero), b, e.add(e.mul(a, total), b))


def _linear_recurrence_vjp(
    b: Builder, g: Value, out: Value, factors: Value, terms: object, axis: int
) -> tuple[Cotangent, ...]:
    carried = _carried(b, factors, g, axis)
    return b.multiply(carried, out), carried


define(
    "linear_recurrence",
    Kind.SCAN,
    2,
    doc="Totals t along the axis of factors a and terms b: t[0] = 0, and t[i + 1] = a[i] t[i] + b[i], or b[i] where "
    "t[i] is 0.  Its derivatives, and those of running products, are recurrences again.",
    canon=type_rules.canon_axis("linear_recurrence"),
    infer=lambda a, b, axis: _like(a, b, axis=axis, name="linear_recurrence", dtypes=dt.FLOATS + dt.COMPLEX),
    pairs=complex_pairs.deferred("complex_folds", "linear_recurrence"),
    reference=_linear_recurrence_reference,
    lift=lambda e, a, b, i: (a, b),
    combine=_linear_recurrence_combine,
    init=lambda dtype: ((1, dt.compute_dtype(dtype)), (0, dt.compute_dtype(dtype))),
    finish=lambda e, state, dtype: _rounded(e, state[1:], dtype),
    lower=_exclusive_scan,
    vjp=_linear_recurrence_vjp,
    samples=_prefix_scan_samples(2),
    dtypes=dt.FLOATS,
)


# ---- running extremes, and log-sum-exp


def _running_extreme_reference(pick: np.ufunc, zero_sign: float) -> Callable[..., Any]:
    """Of zeros with -0.0 < 0.0, which NumPy leaves open."""

    def reference(x: np.ndarray, axis: int) -> np.ndarray:
        wide = reference_arrays.computed(x)
        with np.errstate(all="ignore"):
            result = pick.accumulate(wide, axis=axis)
        if dt.is_float(x.dtype):
            signs = pick.accumulate(np.where(wide == 0, np.copysign(1.0, wide), -zero_sign), axis=axis)
            result = np.where(result == 0, np.copysign(result, signs), result)
        return reference_arrays.convert(result, x.dtype)

    return reference


def _running_extreme_vjp(b: Builder, g: Value, out: Value, x: Value, axis: int) -> tuple[Cotangent, ...]:
    """What comes from one element up to the next that is an extreme itself goes to it."""
    taken = b.logical_or(b.equal(x, out), b.isnan(x))
    zero, one = b.full(0, like=x.type), b.full(1, like=x.type)
    later = _carried(b, b.where(taken, zero, one), b.where(taken, zero, g), axis)
    return (b.where(taken, b.add(g, later), zero),)


def _running_extreme(name: str, pick: np.ufunc, larger: bool) -> None:
    define(
        name,
        Kind.SCAN,
        1,
        doc=f"Element i along the axis is the {'largest' if larger else 'smallest'} of elements 0 to i; NaN from the "
        "first one on.",
        canon=type_rules.canon_axis(name),
        infer=lambda x, axis: _like(x, axis=axis, name=name, dtypes=type_rules.NUMERIC),
        reference=_running_extreme_reference(pick, 1.0 if larger else -1.0),
        lift=lambda e, x, i: (x,),
        combine=lambda e, s, t: (_pick(e, s[0], t[0], larger),),
        init=lambda dtype: (((_lowest if larger else _highest)(dtype), dt.compute_dtype(dtype)),),
        finish=_rounded,
        lower=_prefix_scan,
        vjp=_running_extreme_vjp,
        samples=_cumulative_sum_samples,
        dtypes=type_rules.NUMERIC,
    )


_running_extreme("cumulative_max", np.maximum, True)
_running_extreme("cumulative_min", np.minimum, False)


def _cumulative_logsumexp_vjp(b: Builder, g: Value, out: Value, x: Value, axis: int) -> tuple[Cotangent, ...]:
    """The share of an element in its own total is p = exp(x - out), of the total before it 1 - p; shares multiply."""
    alike = b.equal(x, out)  # infinities, whose difference is NaN, among them
    zero = b.full(0, like=x.type)
    distance = b.where(alike, zero, b.subtract(x, out))
    rest = b.where(alike, zero, b.negative(b.expm1(distance)))
    later = _carried(b, rest, b.multiply(rest, g), axis)
    return (b.multiply(b.add(g, later), b.exp(distance)),)


define(
    "cumulative_logsumexp",
    Kind.SCAN,
    1,
    doc="Element i along the axis is log(exp(x[0]) + ... + exp(x[i])), without overflow, in the order of scans.",
    canon=type_rules.canon_axis("cumulative_logsumexp"),
    infer=lambda x, axis: _like(x, axis=axis, name="cumulative_logsumexp"),
    reference=lambda x, axis: reference_arrays.in_double(lambda y: np.logaddexp.accumulate(y, axis=axis))(x),
    lift=lambda e, x, i: (x,),
    combine=lambda e, s, t: (elementary.logaddexp(e, s[0], t[0]),),
    init=lambda dtype: ((-math.inf, dt.compute_dtype(dtype)),),
    finish=_rounded,
    lower=_prefix_scan,
    vjp=_cumulative_logsumexp_vjp,
    samples=_prefix_scan_samples(1),
    dtypes=dt.FLOATS,
)
