"""Images of other sizes, and elements between elements."""

from __future__ import annotations

import math
import operator as numbers
from collections.abc import Iterable
from typing import Any, SupportsIndex

import numpy as np

from hybridflow.array import elementwise as ew, indexing, shapes
from hybridflow.array.creation import asarray
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import expand
from hybridflow.onnx.meanings.shapes import axis_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call, ChannelsLast


def _sources(count: int, extent: int, scale: float, mode: str, window: tuple[float, float]) -> np.ndarray:
    """Where each of ``count`` elements lies among ``extent``."""
    i = np.arange(count, dtype=np.float64)
    if mode == "align_corners":  # the last element is that of the whole size, which need be no integer
        return i * ((extent - 1) / (scale * extent - 1)) if count > 1 else np.zeros(count)
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_crop_and_resize":
        low, high = window
        if count > 1:
            return low * (extent - 1) + i * (high - low) * (extent - 1) / (count - 1)
        return np.full(count, 0.5 * (low + high) * (extent - 1))
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "pytorch_half_pixel" and count == 1:
        return np.zeros(1)
    middle = (i + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return extent / 2 * (1 - count / (scale * extent)) + middle
    if mode not in ("half_pixel", "pytorch_half_pixel"):
        raise ValueError(f"the coordinates {mode!r} are not known")
    return middle


_ROUNDING: dict[str, Any] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


class Sampler:
    """How axes are resampled: the attributes of Resize."""

    def __init__(self, mode: str, coordinates: str, nearest: str, cubic: float, antialias: int, outside: int) -> None:
        self.mode, self.coordinates, self.nearest = mode, coordinates, nearest
        self.cubic, self.antialias, self.outside = cubic, antialias, outside

    def taps(
        self, count: int, extent: int, scale: float, window: tuple[float, float]
    ) -> tuple[np.ndarray, np.ndarray | None, Any]:
        """For each new element the places of old ones and their weights, and which new ones lie outside."""
        x = _sources(count, extent, scale, self.coordinates, window)
        out = None
        if self.coordinates == "tf_crop_and_resize":
            out = (x < 0) | (x > extent - 1)
        if self.mode == "nearest":
            places = np.clip(_ROUNDING[self.nearest](x), 0, extent - 1)
            return places.astype(np.int64)[:, None], None, out
        lower = np.ceil(x) - 1
        ratio = x - lower
        narrow = min(scale, 1.0) if self.antialias else 1.0
        radius = 1 if self.mode == "linear" else 2
        start = math.floor(-radius / narrow) + 1
        steps = np.arange(start, 2 - start)
        distances = (steps[None, :] - ratio[:, None]) * narrow
        if self.mode == "linear":
            weights = np.clip(1 - np.abs(distances), 0, 1)
        else:
            weights = _cubic(distances, self.cubic)
        places = lower[:, None] + steps
        if self.outside:
            weights = np.where((places < 0) | (places >= extent), 0, weights)
        if self.outside or self.antialias:
            weights = weights / weights.sum(axis=1, keepdims=True)
        return np.clip(places, 0, extent - 1).astype(np.int64), weights, out

    def repeats(self, scale: float) -> int | None:
        """How often each element comes, where that is the same for all and whatever their number."""
        count = round(scale)
        if self.mode != "nearest" or count != scale or count < 1 or self.coordinates == "tf_crop_and_resize":
            return None
        places, _, _ = self.taps(5 * count, 5, scale, (0.0, 1.0))
        return count if (places[:, 0] == np.arange(5 * count) // count).all() else None


def _resampled(
    x: Tensor,
    axis: int,
    count: SupportsIndex,
    scale: float | None,
    sampler: Sampler,
    window: Any,
    fill: float,
) -> Tensor:
    extent: Any = x.shape[axis]
    repeats = None if scale is None else sampler.repeats(scale)
    if repeats is not None and sampler.coordinates != "align_corners":
        x = shapes.expand_dims(x, axis=axis + 1)
        x = expand(x, (*x.shape[: axis + 1], repeats, *x.shape[axis + 2 :]))
        return shapes.reshape(x, (*x.shape[:axis], extent * repeats, *x.shape[axis + 2 :]))
    extent, count = numbers.index(extent), numbers.index(count)
    places, weights, out = sampler.taps(count, extent, count / extent if scale is None else scale, window)
    form = (-1, *(1,) * (x.ndim - axis - 1))
    result: Any = None
    for k in range(places.shape[1]):
        part = indexing.take(x, asarray(np.ascontiguousarray(places[:, k])), axis=axis)
        if weights is not None:
            part = part * asarray(
                weights[:, k].astype(np.float64 if x.dtype == np.float64 else np.float32).reshape(form)
            )
        result = part if result is None else result + part
    if out is not None and out.any():
        result = ew.where(asarray(out.reshape(form)), fill, result)
    return result


def resized(
    call: Call,
    x: Any,
    scales: list[float] | None,
    sizes: list[Any] | None,
    axes: list[int],
    sampler: Sampler,
    roi: list[float] | None,
    fill: float = 0.0,
    policy: str = "stretch",
) -> Any:
    shape = x.shape
    if sizes is not None and policy != "stretch":
        ratios = [wanted / shape[a] for wanted, a in zip(sizes, axes)]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        scales = [ratio] * len(axes)
        sizes = [math.floor(shape[a] * ratio + 0.5) for a in axes]
    elif sizes is None:
        assert scales is not None
        sizes = [_scaled(shape[a], s) for a, s in zip(axes, scales)]
    last = isinstance(x, ChannelsLast)
    tensor = x.tensor if last else x
    dtype = tensor.dtype
    if sampler.mode != "nearest" and dtype not in (dtypes.float32, dtypes.float64):
        tensor = ew.astype(tensor, dtypes.float32)
    for k, axis in enumerate(axes):
        window = (0.0, 1.0) if not roi else (roi[k], roi[k + len(axes)])
        scale = None if scales is None else scales[k]
        same = scale == 1 if scale is not None else sizes[k] == shape[axis]
        if same and sampler.coordinates != "tf_crop_and_resize":
            continue
        place = (0, x.ndim - 1, *range(1, x.ndim - 1))[axis] if last else axis
        if scale is None and not isinstance(sizes[k], Dim) and not isinstance(shape[axis], Dim):
            scale = sizes[k] / shape[axis]
        tensor = _resampled(tensor, place, sizes[k], scale, sampler, window, fill)
    if tensor.dtype != dtype:
        tensor = ew.astype(ew.round(tensor) if dtypes.is_integer(dtype) else tensor, dtype)
    return ChannelsLast(tensor) if last else tensor


def _scaled(extent: int | Dim, scale: float) -> Any:
    if isinstance(extent, Dim):
        return extent * int(scale) if scale == int(scale) else math.floor(numbers.index(extent) * scale)
    return math.floor(extent * scale)


def _floats(call: Call, value: object) -> list[float] | None:
    if value is None:
        return None
    floats = [float(n) for n in call.numbers(value).reshape(-1)]
    return floats or None


@operator("Resize", since=11, raw=(1, 2, 3), keeps_layout=True)
def resize(
    call: Call,
    x: Tensor | ChannelsLast,
    roi: object = None,
    scales: object = None,
    sizes: object = None,
    *,
    antialias: int = 0,
    axes: Iterable[Any] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:
    sampler = Sampler(mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, antialias, exclude_outside)
    places = list(range(x.ndim)) if axes is None else [axis_of(call, a, x.ndim) for a in axes]
    wanted = None if sizes is None else call.extents(sizes)
    factors = _floats(call, scales)
    if (wanted is None or not wanted) == (factors is None):
        raise call.fault("it needs either scales or sizes.")
    if wanted:
        call.check_size(wanted)
    return resized(
        call,
        x,
        factors,
        wanted or None,
        places,
        sampler,
        _floats(call, roi) if coordinate_transformation_mode == "tf_crop_and_resize" else None,
        extrapolation_value,
        keep_aspect_ratio_policy,
    )


@operator("Upsample", since=9, until=9, raw=(1,), keeps_layout=True)
@operator("Resize", since=10, until=10, raw=(1,), keeps_layout=True)
def resize_by_scales(call: Call, x: Tensor, scales: object, *, mode: str = "nearest") -> Any:
    sampler = Sampler(mode, "asymmetric", "floor", -0.75, 0, 0)
    return resized(call, x, _floats(call, scales), None, list(range(x.ndim)), sampler, None)


@operator("Upsample", since=7, until=7, keeps_layout=True)
def upsample_by_attribute(call: Call, x: Tensor | ChannelsLast, *, scales: Iterable[Any], mode: str = "nearest") -> Any:
    sampler = Sampler(mode, "asymmetric", "floor", -0.75, 0, 0)
    return resized(call, x, [float(s) for s in scales], None, list(range(x.ndim)), sampler, None)
