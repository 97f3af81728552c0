"""Looking for places in rows that are in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Value
from hybridflow.compiler.ir.extents import never_negative
from hybridflow.compiler.ir.types import Extent, TensorType, same_shape
from hybridflow.compiler.ops import reference_arrays, samples, type_rules
from hybridflow.compiler.ops.batching_rules import axis_to_front
from hybridflow.compiler.ops.emitter_protocol import ElementSource, Val
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.errors import ShapeError


def _canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, int]:
    return {"right": bool(attrs.get("right", False)), "batch": int(attrs.get("batch", 0))}


def _infer(x: TensorType, wanted: TensorType, right: bool, batch: int) -> TensorType:
    type_rules.check_same("search", x.with_shape(()), wanted.with_shape(()))
    type_rules.check_dtype("search", x, frozenset(dt.REAL))
    if x.ndim != batch + 1 or not same_shape(wanted.shape[:batch], x.shape[:batch]):
        raise ShapeError(
            "search", f"x is {x}, the wanted values are {wanted}. Expected rows, and {batch} equal leading extents."
        )
    return wanted.with_dtype(dt.int64)


def _element(g: ElementSource, index: Any, right: bool, batch: int) -> Val:
    """Of ``left`` places in doubt the middle one is looked at: if its element comes before what is wanted, so do all
    before it.  All lanes halve what is left at the same time, and only the last of its elements may be looked at in
    vain."""
    e, count = g.e, g.types[0].shape[batch]
    kind = dt.uint8 if dt.is_bool(g.types[0].dtype) else dt.compute_dtype(g.types[0].dtype)
    wanted = e.convert(g.load(1, index), kind)
    if count == 0:  # nothing is read, but it is an operand all the same
        nowhere = g.linear(index) * 0
        g.inside(0, (*index[:batch], nowhere), [(nowhere, 0)], 0)
        return e.zero(dt.int64)

    def iteration(position: Val, left: Val) -> list[Val]:
        half = e.lshr(e.add(left, 1), 1)
        middle = e.sub(e.add(position, half), 1)
        if not never_negative(count - 1):  # of nothing the first element is looked at in vain
            middle = e.maximum(middle, 0)
        middle = g.sure(middle, count)
        value = e.convert(g.load(0, (*index[:batch], middle)), kind)
        with e.strict():
            before = e.le(value, wanted) if right else e.lt(value, wanted)
            if dt.is_float(kind):  # NaN comes last, and is like NaN
                last = e.is_nan(wanted)
                before = e.or_(before, last if right else e.and_(last, e.not_(e.is_nan(value))))
        return [e.select(before, e.add(position, half), position), e.sub(left, half)]

    start = [e.zero(dt.int64), g.value(count)]
    return g.repeat_while(start, iteration, lambda position, left: e.gt(left, 0))[0]


def _reference(x: np.ndarray, wanted: np.ndarray, right: bool, batch: int) -> np.ndarray:
    x, wanted = reference_arrays.computed(x), reference_arrays.computed(wanted)
    out = np.empty(wanted.shape, np.int64)
    for line in np.ndindex(*x.shape[:-1]):
        out[line] = np.searchsorted(x[line], wanted[line], side="right" if right else "left")
    return out


def _batch(
    b: Builder, op: object, size: Extent, batched: Sequence[bool], x: Value, wanted: Any, right: bool, batch: int
) -> Any:
    if not batched[0] and batch == 0:  # the examples are so many more values
        return b.search(x, wanted, right=right, batch=0)
    x, wanted = axis_to_front(b, x, batched[0], size), axis_to_front(b, wanted, batched[1], size)
    return b.search(x, wanted, right=right, batch=batch + 1)


def _samples(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[samples.Sample]:
    result: list[samples.Sample] = []
    shapes = [((7,), (5,), 0), ((1,), (2, 3), 0), ((0,), (4,), 0), ((70,), (), 0), ((2, 9), (2, 4, 3), 1)]
    for rows, wanted, batch in shapes:
        x = np.sort(samples.values(rng, dtype, rows), -1)
        result += [
            ((x, samples.values(rng, dtype, wanted)), {"right": right, "batch": batch}) for right in (False, True)
        ]
    edges = samples.edges(dtype)
    ordered = edges[np.argsort(reference_arrays.computed(edges), kind="stable")]
    return [*result, *[((ordered.repeat(2), edges), {"right": right, "batch": 0}) for right in (False, True)]]


define(
    "search",
    Kind.SEARCH,
    2,
    doc="""Where each wanted value is to be inserted into a row of x that is in order and stays so, NaN last: before the
    first element that is equal, or behind the last one (``right``).  The first ``batch`` axes of both are of rows.""",
    canon=_canon,
    infer=_infer,
    reference=_reference,
    element=_element,
    vjp=NOT_DIFFERENTIABLE,
    batch=_batch,
    samples=_samples,
    dtypes=dt.REAL,
    facts={"exact": True},
)
