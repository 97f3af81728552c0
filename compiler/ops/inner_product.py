"""Inner products: folds of two inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Cotangent, Value
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import complex_pairs, reference_arrays, samples, type_rules
from hybridflow.compiler.ops.emitter_protocol import Emit, State, Val
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.compiler.ops.reductions import spread, sum_finish, sum_identity
from hybridflow.errors import DTypeError

_NUMERIC = frozenset(type_rules.NUMERIC + dt.COMPLEX)


def _vecdot_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    axes = type_rules.axes("vecdot", types[0], attrs.get("axes"))
    return {"axes": axes, "sum_dtype": np.dtype(attrs.get("sum_dtype", types[0].dtype))}


def _vecdot_infer(x: TensorType, y: TensorType, axes: tuple[int, ...], sum_dtype: dt.DType) -> TensorType:
    type_rules.check_dtype("vecdot", x, _NUMERIC)
    type_rules.check_same("vecdot", x, y)
    if not dt.embeds(x.dtype, sum_dtype):
        raise DTypeError(
            "vecdot", f"{x} is to be summed as {sum_dtype}. Expected a dtype that holds all of its values."
        )
    return TensorType(tuple(x.shape[a] for a in type_rules.kept_axes(x.ndim, axes)), sum_dtype)


def _vecdot_reference(x: np.ndarray, y: np.ndarray, axes: tuple[int, ...], sum_dtype: dt.DType) -> np.ndarray:
    wide = dt.promote(sum_dtype, dt.float64) if dt.is_inexact(sum_dtype) else sum_dtype
    with np.errstate(all="ignore"):
        total = np.sum(x.astype(wide) * y.astype(wide), axis=axes, dtype=wide)
        return reference_arrays.convert(np.asarray(0.0 + total if dt.is_inexact(sum_dtype) else total), sum_dtype)


def _vecdot_lift(e: Emit, x: Val, y: Val, i: Val, sum_dtype: dt.DType) -> State:
    wide = dt.compute_dtype(sum_dtype)
    return (e.mul(e.convert(x, wide), e.convert(y, wide)),)


def _vecdot_vjp(
    b: Builder, g: Value, out: Value, x: Value, y: Value, axes: tuple[int, ...], sum_dtype: dt.DType
) -> tuple[Cotangent, ...]:
    if not dt.is_inexact(x.type.dtype):
        return None, None

    def share(other: Any) -> Any:
        product = b.multiply(spread(b, g, x, axes), type_rules.as_dtype(b, other, sum_dtype))
        return type_rules.as_dtype(b, product, x.type.dtype)

    return lambda: share(y), lambda: share(x)


def _vecdot_samples(rng: np.random.Generator, dtype: dt.DType) -> list[samples.Sample]:
    wider = {dt.int8: dt.int32, dt.uint16: dt.int64, dt.float16: dt.float32, dt.bfloat16: dt.float32}
    cases: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((), ()),
        ((67,), (0,)),
        ((5, 7), (0,)),
        ((5, 7), (1,)),
        ((2, 3, 65), (0, 2)),
        ((3, 2), ()),
        ((0,), (0,)),
        ((0, 3), (1,)),
    ]
    return [
        ((samples.values(rng, dtype, shape), samples.values(rng, dtype, shape)), {"axes": axes, "sum_dtype": result})
        for result in dict.fromkeys((dtype, wider.get(dtype, dtype)))
        for shape, axes in cases
    ]


define(
    "vecdot",
    Kind.REDUCE,
    2,
    doc="""The sum over axes of x * y.  Products are formed and summed in ``sum_dtype``, float16 and bfloat16 in
    float32, and the total is rounded once; integers wrap.""",
    canon=_vecdot_canon,
    infer=_vecdot_infer,
    reference=_vecdot_reference,
    pairs=complex_pairs.vecdot,
    lift=_vecdot_lift,
    combine=lambda e, s, t, sum_dtype: (e.add(s[0], t[0]),),
    init=lambda dtype, sum_dtype: sum_identity(sum_dtype),
    finish=lambda e, state, dtype, sum_dtype: sum_finish(e, state, dtype),
    vjp=_vecdot_vjp,
    samples=_vecdot_samples,
    dtypes=type_rules.NUMERIC,
)
