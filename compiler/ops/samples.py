"""Example arguments for the declarations: random values of several shapes, and the edge values of each dtype."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.reference_arrays import convert

Sample = tuple[tuple[np.ndarray, ...], dict[str, Any]]
Samples = Callable[["np.random.Generator", Any], list[Sample]]  # a string: numpy.random is slow to import

SHAPES = ((), (1,), (0,), (7,), (3, 5), (2, 1, 67))

_FLOAT_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 100.25, np.nan, np.inf, -np.inf)


def edges(dtype: np.dtype) -> np.ndarray:
    """The values of a dtype at which implementations tend to differ."""
    if dt.is_bool(dtype):
        return np.array([False, True])
    if dt.is_complex(dtype):
        parts = edges(dt.part_dtype(dtype))
        result = np.empty(parts.size**2, dtype)
        result.real, result.imag = (part.reshape(-1) for part in np.meshgrid(parts, parts))
        return result
    if dt.is_integer(dtype):
        info = np.iinfo(dtype)
        return np.unique(np.array([info.min, info.min // 2, *([-7, -1] * (info.min < 0)), 0, 1, 2, 7, info.max], dtype))
    limit = ml_dtypes.finfo(dtype)
    limits = np.array([limit.max, limit.min, limit.tiny, -limit.tiny, limit.smallest_subnormal, limit.eps], dtype)
    return np.concatenate([np.array(_FLOAT_EDGES).astype(dtype), limits])


def values(
    rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], domain: tuple[float, float] = (-3.0, 3.0)
) -> np.ndarray:
    """Random values; floats lie in ``domain``."""
    if dt.is_bool(dtype):
        return np.asarray(rng.random(shape) < 0.5)
    if dt.is_complex(dtype):
        result = np.empty(shape, dtype)
        result.real, result.imag = (values(rng, dt.part_dtype(dtype), shape, domain) for _ in range(2))
        return result
    if dt.is_integer(dtype):
        return rng.integers(-9 * dt.is_signed(dtype), 10, shape).astype(dtype)
    return convert(np.asarray(rng.uniform(*domain, shape)), dtype)


def elementwise(arity: int, domain: tuple[float, float] = (-3.0, 3.0)) -> Samples:
    """Equal shapes and dtypes; all combinations of edge values."""

    def samples(rng: np.random.Generator, dtype: np.dtype) -> list[Sample]:
        result: list[Sample] = [
            (tuple(values(rng, dtype, shape, domain) for _ in range(arity)), {}) for shape in SHAPES
        ]
        columns = zip(*itertools.product(edges(dtype), repeat=arity))
        result.append((tuple(np.array(column, dtype) for column in columns), {}))
        return result

    return samples


def with_attrs(*attrs: dict[str, Any], arity: int = 1) -> Samples:
    """The elementwise samples under each of some attributes."""
    plain = elementwise(arity)
    return lambda rng, dtype: [(arrays, a) for a in attrs for arrays, _ in plain(rng, dtype)]
