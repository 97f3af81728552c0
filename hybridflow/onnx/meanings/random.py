"""Random numbers: those of hybridflow, from the seed of a node or of all."""

from __future__ import annotations

from typing import Any

from hybridflow.array import elementwise as ew, random
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike, ShapeLike
from hybridflow.onnx.library import dtype_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call


def _uniform(seed: float | None, shape: ShapeLike, low: float, high: float, dtype: DTypeLike) -> Tensor:
    if seed is None:
        return random.uniform(shape, low, high, dtype=dtype)
    return random.stateless_uniform(shape, (int(seed), 0), low, high, dtype=dtype)


def _normal(seed: float | None, shape: ShapeLike, mean: float, scale: float, dtype: DTypeLike) -> Tensor:
    if seed is None:
        return random.normal(shape, mean, scale, dtype=dtype)
    return random.stateless_normal(shape, (int(seed), 0), mean, scale, dtype=dtype)


@operator("RandomUniform")
def uniform(call: Call, *, shape: Any, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: Any = None) -> Tensor:
    call.check_size(shape)
    return _uniform(seed, tuple(shape), low, high, dtype_of(dtype))


@operator("RandomUniformLike")
def uniform_like(
    call: Call, x: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Tensor:
    return _uniform(seed, x.shape, low, high, x.dtype if dtype is None else dtype_of(dtype))


@operator("RandomNormal")
def normal(
    call: Call,
    *,
    shape: Any,
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Tensor:
    call.check_size(shape)
    return _normal(seed, tuple(shape), mean, scale, dtype_of(dtype))


@operator("RandomNormalLike")
def normal_like(
    call: Call, x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    return _normal(seed, x.shape, mean, scale, x.dtype if dtype is None else dtype_of(dtype))


def dropped(call: Call, x: Tensor, ratio: object, seed: float | None) -> Any:
    """Dropout while a model is trained."""
    rate = 0.5 if ratio is None else float(call.numbers(ratio).reshape(()))
    if rate == 0:
        keep = ew.logical_or(ew.equal(x, x), ew.not_equal(x, x))
        return x, keep
    keep = ew.greater_equal(_uniform(seed, x.shape, 0.0, 1.0, "float32"), rate)
    return ew.where(keep, x * (1 / (1 - rate)), 0), keep
