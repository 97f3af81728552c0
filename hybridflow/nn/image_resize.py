"""Pictures of other sizes: an axis is resampled by the middles of its parts."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from hybridflow.array.creation import arange, asarray
from hybridflow.array.elementwise import abs, astype, clip, exp, floor, maximum, minimum, where
from hybridflow.array.indexing import take
from hybridflow.array.linalg import tensordot
from hybridflow.array.shapes import moveaxis
from hybridflow.array.special import sinc
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim, Extent
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import scalar

_Kernel = tuple[Callable[[Any, Any], Any], float]

# What calculates places and weights: NumPy, while functions are traced too, or tensor ops where extents are open.
_TENSORS = SimpleNamespace(
    **{f.__name__: f for f in (abs, arange, astype, clip, exp, floor, maximum, minimum, sinc, where)},
    float32=lambda x: astype(x, dtypes.float32),
    float64=lambda x: scalar(x, dtypes.float64, "resize"),
    int64=dtypes.int64,
)


def _calculus(here: Extent, wanted: Extent) -> Any:
    return _TENSORS if type(here) is Dim or type(wanted) is Dim else np


def _ratio(xp: Any, here: Extent, wanted: Extent) -> Any:
    if xp is np:
        return np.float64(here / wanted if wanted else 0.0)
    return xp.float64(here) / xp.float64(wanted)


def _centres(xp: Any, here: Extent, wanted: Extent) -> Any:
    """Where the middles of ``wanted`` equal parts of an axis lie on it, in elements."""
    return (xp.arange(wanted, dtype=dtypes.float32) + np.float32(0.5)) * xp.float32(_ratio(xp, here, wanted))


def _starts(xp: Any, here: Extent, wanted: Extent) -> Any:
    """Where their beginnings lie: how TensorFlow 1 resamples, which moves pictures."""
    return xp.arange(wanted, dtype=dtypes.float32) * xp.float32(_ratio(xp, here, wanted))


def _corners(xp: Any, here: Extent, wanted: Extent) -> Any:
    """Elements at even distances, of which the first and the last are those of the axis."""
    if wanted == 1:
        return _starts(xp, here, wanted)
    return xp.arange(wanted, dtype=dtypes.float32) * xp.float32(_ratio(xp, here - 1, wanted - 1))


# By name, of an axis and its new extent: which element stands for each of the new ones, and between which it lies.
_Grid = Callable[[Any, Extent, Extent], Any]
_NEAREST: dict[str, _Grid] = {
    "middles": _centres,
    "starts": _starts,
    "corners": lambda xp, here, wanted: _corners(xp, here, wanted) + np.float32(0.5),
}
_BETWEEN: dict[str, _Grid] = {
    "middles": lambda xp, here, wanted: _centres(xp, here, wanted) - np.float32(0.5),
    "starts": _starts,
    "corners": _corners,
}


def _nearest(x: Tensor, axis: int, wanted: Extent, grid: str = "middles") -> Any:
    here = x.shape[axis]
    xp = _calculus(here, wanted)
    places = xp.floor(_NEAREST[grid](xp, here, wanted)).astype(np.int64)
    return take(x, xp.minimum(places, here - 1), axis=axis)


def _linear(x: ArrayLike, axis: int, wanted: Extent, grid: str = "middles") -> Any:
    x = astype(x, dtypes.float32)
    here = x.shape[axis]
    xp = _calculus(here, wanted)
    if xp is np and here == wanted:
        return x
    places = _BETWEEN[grid](xp, here, wanted)
    low = xp.floor(places)
    part = (places - low).reshape((-1, *[1] * (x.ndim - axis - 1)))
    left, right = (xp.clip(low + k, 0, here - 1).astype(np.int64) for k in (0, 1))
    start = take(x, left, axis=axis)
    result = start + (take(x, right, axis=axis) - start) * asarray(part)
    return result if xp is np else where(_ratio(xp, here, wanted) == 1, start, result)  # infinity is no part of itself


# ---- other methods: each element is a sum of elements with weights, an axis a product with a matrix of them


def _lanczos(radius: int) -> _Kernel:
    def kernel(xp: Any, x: Tensor) -> Any:
        return xp.where(xp.abs(x) < radius, xp.sinc(x) * xp.sinc(x / radius), 0.0)

    return kernel, radius


def _triangle(xp: Any, x: ArrayLike) -> Any:
    return xp.maximum(1.0 - xp.abs(x), 0.0)


def _bell(xp: Any, x: Tensor) -> Any:
    return xp.where(xp.abs(x) <= 1.5, xp.exp(-2.0 * x * x), 0.0)


def _cubic(b: float, c: float) -> _Kernel:
    """The family of Mitchell and Netravali ("Reconstruction Filters in Computer Graphics", 1988)."""

    def kernel(xp: Any, x: ArrayLike) -> Any:
        at = xp.abs(x)
        near = (12 - 9 * b - 6 * c) * at**3 + (-18 + 12 * b + 6 * c) * at**2 + 6 - 2 * b
        far = (-b - 6 * c) * at**3 + (6 * b + 30 * c) * at**2 + (-12 * b - 48 * c) * at + 8 * b + 24 * c
        return xp.where(at < 1, near, xp.where(at < 2, far, 0.0)) / 6

    return kernel, 2


# By name: the weight by the distance, and the distance from which on it is 0.
_KERNELS: dict[str, _Kernel] = {
    "bilinear": (_triangle, 1),
    "bicubic": _cubic(0.0, 0.5),
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
    "gaussian": (_bell, 1.5),
    "mitchellcubic": _cubic(1 / 3, 1 / 3),
}


def _weights(here: Extent, wanted: Extent, method: str, antialias: bool) -> Any:
    """What each of ``wanted`` elements takes of each of ``here``; what lies outside is nobody's."""
    xp = _calculus(here, wanted)
    kernel, radius = _KERNELS[method]
    ratio = _ratio(xp, here, wanted)
    wide = xp.maximum(ratio, 1.0) if antialias else 1.0
    sources, targets = (xp.arange(n, dtype=dtypes.float64) + 0.5 for n in (here, wanted))
    distance = sources - targets[:, None] * ratio
    weights = xp.where(xp.abs(distance) <= radius * wide, kernel(xp, distance / wide), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _shares(here: Extent, wanted: Extent) -> Any:
    """What part of each of ``wanted`` equal parts of an axis each of ``here`` elements is."""
    xp = _calculus(here, wanted)
    ratio, starts = _ratio(xp, here, wanted), xp.arange(here, dtype=dtypes.float64)
    low, high = ((xp.arange(wanted, dtype=dtypes.float64)[:, None] + k) * ratio for k in (0, 1))
    common = xp.minimum(high, starts + 1) - xp.maximum(low, starts)
    return xp.maximum(common, 0.0) / ratio


def _by_weights(x: Tensor, axis: int, weights: Tensor) -> Any:
    result = tensordot(asarray(weights.astype(np.float32)), astype(x, dtypes.float32), axes=([1], [axis]))
    return moveaxis(result, 0, axis)


def _sampling(method: str) -> Callable[[Any, int, Extent], Any]:
    return lambda x, axis, wanted: _by_weights(x, axis, _weights(x.shape[axis], wanted, method, False))


# By name: functions of a tensor, an axis and its new extent.  All but "nearest" make float32.
SAMPLERS: dict[Any, Callable[[Any, int, Extent], Any]] = {
    "bilinear": _linear,
    "nearest": _nearest,
    "area": lambda x, axis, wanted: _by_weights(x, axis, _shares(x.shape[axis], wanted)),
    **{name: _sampling(name) for name in _KERNELS if name != "bilinear"},
}


ON_GRIDS = {"bilinear": _linear, "nearest": _nearest}


def resized_on_grid(x: Tensor, height: Extent, width: Extent, method: str, grid: str) -> Any:
    """The same by one of ``ON_GRIDS``, with elements taken at "middles", "starts" or "corners"."""
    for axis, wanted in ((x.ndim - 3, height), (x.ndim - 2, width)):
        x = ON_GRIDS[method](x, axis, wanted, grid)
    return x


def resized(x: Any, height: Extent, width: Extent, method: str, antialias: bool = False) -> Any:
    """Pictures [..., rows, columns, channels] of ``height`` rows and ``width`` columns, by one of ``SAMPLERS``;
    ``antialias`` makes windows wider where pictures become smaller."""
    for axis, wanted in ((x.ndim - 3, height), (x.ndim - 2, width)):
        if antialias and method in _KERNELS:
            x = _by_weights(x, axis, _weights(x.shape[axis], wanted, method, True))
        else:
            x = SAMPLERS[method](x, axis, wanted)
    return x
