"""The discrete Fourier transform of complex numbers, or of real ones of which each pair along the last axis is one.

    y[k] = scale * sum over j of x[j] * exp(-2i pi j k / n)

With ``inverse`` the exponent is positive.  The second input holds the constants of the length, which
``fourier_plan.table`` makes.  The transform is linear and its matrix symmetric: the derivative is the transform itself,
and of pairs, whose cotangents are no conjugates, the inverse with the same scale.  Real transforms, other norms and
other lengths are made of this one by the front end (``array/fourier.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, Value
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import fourier_plan, type_rules
from hybridflow.compiler.ops.batching_rules import axis_to_front
from hybridflow.compiler.ops.lowering import FourierTransform
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.compiler.ops.samples import Sample
from hybridflow.errors import ArgumentError, DTypeError, ShapeError

_FLOATS = frozenset((dt.float32, dt.float64))
_NUMBERS = _FLOATS | {dt.complex64, dt.complex128}


def _canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    x = types[0]
    if not dt.is_complex(x.dtype) and (x.ndim < 2 or x.shape[-1] != 2):
        raise ShapeError("fft", f"the input is {x}. Expected pairs of real numbers along the last of two axes or more.")
    axis = type_rules.axis("fft", x, attrs["axis"])
    if axis == x.ndim - 1 and not dt.is_complex(x.dtype):
        raise ShapeError("fft", f"axis {axis} of {x} holds the parts of numbers. Expected another axis.")
    return {"axis": axis, "inverse": bool(attrs.get("inverse", False)), "scale": float(attrs.get("scale", 1.0))}


def _infer(x: TensorType, table: TensorType, axis: int, inverse: bool, scale: float) -> TensorType:
    if x.dtype not in _NUMBERS:
        raise DTypeError("fft", f"the input is {x}. Expected float32, float64 or complex numbers.")
    n = x.shape[axis]
    if not isinstance(n, int):
        raise type_rules.symbolic("fft", f"a transform runs along axis {axis} of {x}")
    if n < 1 or not fourier_plan.is_smooth(n):
        raise ArgumentError("fft", f"{n} numbers lie along axis {axis} of {x}. Expected no prime factor above 13.")
    expected = TensorType((fourier_plan.table_size(n),), dt.part_dtype(x.dtype))
    if table != expected:
        raise ShapeError("fft", f"the table of constants is {table}. Expected {expected} for {n} numbers.")
    return x


def _reference(x: np.ndarray, table: np.ndarray, axis: int, inverse: bool, scale: float) -> np.ndarray:
    pairs = not dt.is_complex(x.dtype)
    numbers = x[..., 0] + 1j * x[..., 1].astype(np.float64) if pairs else x.astype(np.complex128)
    if not numbers.size:
        return x.copy()
    with np.errstate(all="ignore"):
        transformed = np.fft.ifft(numbers, axis=axis, norm="forward") if inverse else np.fft.fft(numbers, axis=axis)
        transformed = transformed * scale
        return (np.stack([transformed.real, transformed.imag], -1) if pairs else transformed).astype(x.dtype)


def _vjp(
    b: Builder, g: Value, out: Value, x: Value, table: Value, axis: int, inverse: bool, scale: float
) -> tuple[Any, Any]:
    """The table says nothing that the length does not: nothing depends on it."""
    back = inverse if dt.is_complex(x.type.dtype) else not inverse
    return lambda: b.fft(g, table, axis=axis, inverse=back, scale=scale), lambda: b.full(0, like=table.type)


def _batch(b: Builder, op: Any, size: Extent, batched: Any, x: Value, table: Value, **attrs: Any) -> Any:
    """Examples are one axis more in front.  The length says what a table holds: that of the first is that of all."""
    if batched[1]:
        if size == 0:
            return axis_to_front(b, x, batched[0], size)
        count = table.type.shape[1]
        table = b.reshape(b.slice(table, start=(0, 0), stop=(1, count), step=(1, 1)), shape=(count,))
    return b.emit(op, axis_to_front(b, x, batched[0], size), table, **{**attrs, "axis": attrs["axis"] + 1})


def _samples(rng: np.random.Generator, dtype: dt.DType) -> list[Sample]:
    if dtype not in _FLOATS:
        return []
    result: list[Sample] = []
    for shape, axis, inverse, scale in (
        ((4,), 0, False, 1.0), ((2, 15), 1, True, 0.5), ((3, 20, 5), 1, False, 1.0), ((1, 32), 1, False, 0.25),
        ((2, 0, 6), 2, False, 1.0), ((1,), 0, True, 2.0),
    ):  # fmt: skip
        x = rng.normal(size=(*shape, 2)).astype(dtype)
        result.append(((x, fourier_plan.table(shape[axis], dtype)), {"axis": axis, "inverse": inverse, "scale": scale}))
    return result


define(
    "fft",
    Kind.TRANSFORM,
    2,
    doc="The discrete Fourier transform of pairs of real numbers along an axis, times a scale; or the ``inverse``.",
    canon=_canon,
    infer=_infer,
    reference=_reference,
    lower=lambda types, attrs: FourierTransform(attrs["axis"], attrs["inverse"], attrs["scale"]),
    vjp=_vjp,
    batch=_batch,
    samples=_samples,
    dtypes=(dt.float32, dt.float64),
)
