"""Pictures of other sizes: an axis is resampled by the middles of its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.array.elementwise import astype
from hybridflow.array.indexing import take
from hybridflow.array.linalg import tensordot
from hybridflow.array.shapes import moveaxis
from hybridflow.compiler.ir import dtypes

_Kernel = tuple[Callable[[np.ndarray], np.ndarray], float]


def _centres(here: Any, wanted: int) -> Any:
    """Where the middles of ``wanted`` equal parts of an axis lie on it, in elements."""
    return (np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * np.float32(here / wanted)


def _starts(here: int, wanted: int) -> np.ndarray:
    """Where their beginnings lie: how TensorFlow 1 resamples, which moves pictures."""
    return np.arange(wanted, dtype=np.float32) * np.float32(here / wanted)


def _corners(here: int, wanted: int) -> np.ndarray:
    """Elements at even distances, of which the first and the last are those of the axis."""
    if wanted == 1:
        return _starts(here, wanted)
    return np.arange(wanted, dtype=np.float32) * np.float32((here - 1) / (wanted - 1))


# By name, of an axis and its new extent: which element stands for each of the new ones, and between which it lies.
_NEAREST: dict[str, Callable[[int, int], np.ndarray]] = {
    "middles": _centres,
    "starts": _starts,
    "corners": lambda here, wanted: _corners(here, wanted) + np.float32(0.5),
}
_BETWEEN: dict[str, Callable[[int, int], np.ndarray]] = {
    "middles": lambda here, wanted: _centres(here, wanted) - np.float32(0.5),
    "starts": _starts,
    "corners": _corners,
}


def _nearest(x: Any, axis: int, wanted: int, grid: str = "middles") -> Any:
    places = np.floor(_NEAREST[grid](x.shape[axis], wanted)).astype(np.int64)
    return take(x, np.minimum(places, x.shape[axis] - 1), axis=axis)


def _linear(x: Any, axis: int, wanted: int, grid: str = "middles") -> Any:
    x = astype(x, dtypes.float32)
    if x.shape[axis] == wanted:
        return x
    places = _BETWEEN[grid](x.shape[axis], wanted)
    low = np.floor(places)
    part = (places - low).reshape((-1, *[1] * (x.ndim - axis - 1)))
    left, right = (np.clip(low + k, 0, x.shape[axis] - 1).astype(np.int64) for k in (0, 1))
    start = take(x, left, axis=axis)
    return start + (take(x, right, axis=axis) - start) * asarray(part)


# ---- other methods: each element is a sum of elements with weights, an axis a product with a matrix of them


def _lanczos(radius: int) -> _Kernel:
    def kernel(x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x) < radius, np.sinc(x) * np.sinc(x / radius), 0.0)

    return kernel, radius


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _bell(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) <= 1.5, np.exp(-2.0 * x * x), 0.0)


def _cubic(b: float, c: float) -> _Kernel:
    """The family of Mitchell and Netravali ("Reconstruction Filters in Computer Graphics", 1988)."""

    def kernel(x: np.ndarray) -> np.ndarray:
        at = np.abs(x)
        near = (12 - 9 * b - 6 * c) * at**3 + (-18 + 12 * b + 6 * c) * at**2 + 6 - 2 * b
        far = (-b - 6 * c) * at**3 + (6 * b + 30 * c) * at**2 + (-12 * b - 48 * c) * at + 8 * b + 24 * c
        return np.where(at < 1, near, np.where(at < 2, far, 0.0)) / 6

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


def _weights(here: int, wanted: int, method: str, antialias: bool) -> np.ndarray:
    """What each of ``wanted`` elements takes of each of ``here``; what lies outside is nobody's."""
    kernel, radius = _KERNELS[method]
    ratio = here / wanted
    wide = max(ratio, 1.0) if antialias else 1.0
    distance = np.arange(here) + 0.5 - (np.arange(wanted)[:, None] + 0.5) * ratio
    found = np.where(np.abs(distance) <= radius * wide, kernel(distance / wide), 0.0)
    return found / found.sum(axis=1, keepdims=True)


def _shares(here: int, wanted: int) -> np.ndarray:
    """What part of each of ``wanted`` equal parts of an axis each of ``here`` elements is."""
    low, high = (np.arange(wanted + 1) * (here / wanted))[:-1], (np.arange(wanted + 1) * (here / wanted))[1:]
    own = np.arange(here)
    common = np.minimum(high[:, None], own + 1) - np.maximum(low[:, None], own)
    return np.maximum(common, 0.0) / (here / wanted)


def _by_weights(x: Any, axis: int, weights: np.ndarray) -> Any:
    found = tensordot(asarray(weights.astype(np.float32)), astype(x, dtypes.float32), axes=([1], [axis]))
    return moveaxis(found, 0, axis)


def _sampling(method: str) -> Callable[[Any, int, int], Any]:
    return lambda x, axis, wanted: _by_weights(x, axis, _weights(x.shape[axis], wanted, method, False))


# By name: functions of a tensor, an axis and its new extent.  All but "nearest" make float32.
SAMPLERS: dict[Any, Callable[[Any, int, int], Any]] = {
    "bilinear": _linear,
    "nearest": _nearest,
    "area": lambda x, axis, wanted: _by_weights(x, axis, _shares(x.shape[axis], wanted)),
    **{name: _sampling(name) for name in _KERNELS if name != "bilinear"},
}


ON_GRIDS = {"bilinear": _linear, "nearest": _nearest}


def resized_on_grid(x: Any, height: int, width: int, method: str, grid: str) -> Any:
    """The same by one of ``ON_GRIDS``, with elements taken at "middles", "starts" or "corners"."""
    for axis, wanted in ((x.ndim - 3, height), (x.ndim - 2, width)):
        x = ON_GRIDS[method](x, axis, wanted, grid)
    return x


def resized(x: Any, height: int, width: int, method: str, antialias: bool = False) -> Any:
    """Pictures [..., rows, columns, channels] of ``height`` rows and ``width`` columns, by one of ``SAMPLERS``;
    ``antialias`` makes windows wider where pictures become smaller."""
    for axis, wanted in ((x.ndim - 3, height), (x.ndim - 2, width)):
        if antialias and method in _KERNELS:
            x = _by_weights(x, axis, _weights(x.shape[axis], wanted, method, True))
        else:
            x = SAMPLERS[method](x, axis, wanted)
    return x
