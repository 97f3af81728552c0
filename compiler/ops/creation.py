"""Ops that make values from nothing, or from a key."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import MAX_LITERAL_BYTES, Literal
from hybridflow.compiler.ir.types import Extent, TensorType
from hybridflow.compiler.ops import complex_pairs, reference_arrays, samples, type_rules, value_ranges
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.errors import ArgumentError, ArgumentTypeError

# ---- constant


def _constant_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Literal]:
    value = attrs["value"]
    if not isinstance(value, Literal):
        raise ArgumentTypeError("constant", f"value is {value!r}. Expected a Literal.")
    if len(value.data) > MAX_LITERAL_BYTES:
        raise ArgumentError(
            "constant", f"{value.type} takes {len(value.data)} bytes. Expected at most {MAX_LITERAL_BYTES}."
        )
    return attrs


define(
    "constant",
    Kind.CREATE,
    0,
    doc="A small array that is part of the program.",
    canon=_constant_canon,
    infer=lambda value: value.type,
    reference=lambda value: value.array,
    element=lambda g, index, value: g.literal(value, index),
    pairs=complex_pairs.constant,
    vjp=NOT_DIFFERENTIABLE,
    samples=lambda rng, dtype: [
        ((), {"value": Literal.of(array)})
        for array in (samples.values(rng, dtype, ()), samples.values(rng, dtype, (2, 3)), samples.edges(dtype))
    ],
    dtypes=dt.REAL,
    facts={"exact": True, "bounds": lambda result, value: value_ranges.elements(value.array)},
)


# ---- extent


def _extent_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Extent | np.dtype]:
    dtype = np.dtype(attrs["dtype"])
    type_rules.check_dtype("extent", TensorType((), dtype), frozenset(type_rules.NUMERIC), "the result")
    return {"value": type_rules.whole("extent", "value", attrs["value"]), "dtype": dtype}


def _extent_bounds(kept: np.dtype, value: Any, dtype: np.dtype) -> value_ranges.Bounds:
    if isinstance(value, int):
        return value_ranges.converted((value, value), kept)
    least, most = value_ranges.of_dtype(dt.int64)
    return value_ranges.converted((0 if value.symbol else least, most), kept)


define(
    "extent",
    Kind.CREATE,
    0,
    doc="An extent, or what is calculated from extents, as a number.",
    canon=_extent_canon,
    infer=lambda value, dtype: TensorType((), dtype),
    reference=lambda value, dtype: reference_arrays.convert(np.asarray(value, np.int64), dtype),
    element=lambda g, index, value, dtype: g.e.convert(g.value(value), dt.compute_dtype(dtype)),
    vjp=NOT_DIFFERENTIABLE,
    samples=lambda rng, dtype: [((), {"value": value, "dtype": dtype}) for value in (0, 1, 100)],
    dtypes=type_rules.NUMERIC,
    facts={"exact": True, "bounds": _extent_bounds},
)


# ---- iota


def _iota_canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    shape, dtype = type_rules.shape("iota", attrs["shape"]), np.dtype(attrs["dtype"])
    type = TensorType(shape, dtype)
    type_rules.check_dtype("iota", type, frozenset(type_rules.NUMERIC), "the result")
    return {"shape": shape, "axis": type_rules.axis("iota", type, attrs["axis"]), "dtype": dtype}


def _iota_reference(shape: tuple[int, ...], axis: int, dtype: np.dtype) -> np.ndarray:
    counted = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return np.broadcast_to(reference_arrays.convert(counted, dtype), shape)


_MOST = value_ranges.of_dtype(dt.int64)[1]  # of positions along an axis whose extent is open


def _iota_bounds(kept: np.dtype, shape: tuple[Extent, ...], axis: int, dtype: np.dtype) -> value_ranges.Bounds:
    extent = shape[axis]
    return value_ranges.converted((0, max(extent - 1, 0) if isinstance(extent, int) else _MOST), kept)


define(
    "iota",
    Kind.CREATE,
    0,
    doc="Each element's position along an axis.",
    canon=_iota_canon,
    infer=lambda shape, axis, dtype: TensorType(shape, dtype),
    reference=_iota_reference,
    element=lambda g, index, shape, axis, dtype: g.e.convert(g.value(index[axis]), dt.compute_dtype(dtype)),
    vjp=NOT_DIFFERENTIABLE,
    samples=lambda rng, dtype: [
        ((), {"shape": shape, "axis": axis, "dtype": dtype})
        for shape, axis in (((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 0), 1), ((300,), 0))
    ],
    dtypes=type_rules.NUMERIC,
    facts={"exact": True, "bounds": _iota_bounds},
)
