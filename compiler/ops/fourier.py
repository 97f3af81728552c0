"""The discrete Fourier transform of complex numbers, each of which is a pair of real ones along the last axis.

    y[k] = scale * sum over j of x[j] * exp(-2i pi j k / n)

With ``inverse`` the exponent is positive.  The transform is linear and its matrix symmetric, so the derivative is the
inverse transform with the same scale.  Real transforms, other norms and other lengths are made of this one by the
front end (``array/fourier.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import type_rules
from hybridflow.compiler.ops.batching_rules import broadcast_batched
from hybridflow.compiler.ops.lowering import HostCall
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.compiler.program import HostFunction
from hybridflow.errors import ShapeError

_FLOATS = frozenset((dt.float32, dt.float64))


def _canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    (x,) = types
    if x.ndim < 2 or x.shape[-1] != 2:
        raise ShapeError("fft", f"the input is {x}. Expected pairs of real numbers along the last of two axes or more.")
    axis = type_rules.axis("fft", x, attrs["axis"])
    if axis == x.ndim - 1:
        raise ShapeError("fft", f"axis {axis} of {x} holds the parts of numbers. Expected another axis.")
    return {"axis": axis, "inverse": bool(attrs.get("inverse", False)), "scale": float(attrs.get("scale", 1.0))}


def _infer(x: TensorType, axis: int, inverse: bool, scale: float) -> TupleType:
    type_rules.check_dtype("fft", x, _FLOATS)
    return TupleType((x,))


def _reference(run: Any, x: np.ndarray, axis: int, inverse: bool, scale: float) -> tuple[np.ndarray]:
    numbers = np.ascontiguousarray(x).view(np.complex64 if x.dtype == np.float32 else np.complex128)[..., 0]
    if not numbers.size:
        return (x.copy(),)
    with np.errstate(all="ignore"):
        found = np.fft.ifft(numbers, axis=axis, norm="forward") if inverse else np.fft.fft(numbers, axis=axis)
    if scale != 1:
        found *= found.real.dtype.type(scale)
    return (np.ascontiguousarray(found)[..., None].view(x.dtype),)


def _lower(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> HostCall:
    return HostCall(HostFunction("fft", tuple(sorted(attrs.items()))))


def _vjp(b: Builder, gs: Any, outs: Any, x: Any, axis: int, inverse: bool, scale: float) -> tuple[Any]:
    (found,) = b.results(b.fft(gs[0], axis=axis, inverse=not inverse, scale=scale))
    return (found,)


define(
    "fft",
    Kind.CONTROL,
    1,
    doc="The discrete Fourier transform of pairs of real numbers along an axis, times a scale; or the ``inverse``.",
    canon=_canon,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    calls_host=True,
    raises=lambda types, attrs: True,
    vjp=_vjp,
    batch=broadcast_batched(lambda size, a: {**a, "axis": a["axis"] + 1}),
    samples=lambda rng, dtype: [],
    dtypes=(),
)
