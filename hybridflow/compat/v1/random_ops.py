"""TensorFlow 1's random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import hybridflow as hf
from hybridflow.compat.adapters import draws
from hybridflow.compat.v1.arguments import as_extent, as_extents
from hybridflow.compat.v1.dtype_names import kind_of
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.recording import Recorded
from hybridflow.compat.v1.table import Table
from hybridflow.compiler.ir import dtypes

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import DTypeLike


TABLE = Table()


def _random(name: str, type: str, function: Callable[..., Any]) -> None:
    recorded = Recorded(function, type, name, draws=True)

    def call(*args: object, seed: int | None = None, name: str | None = None, **kwargs: object) -> Any:
        return recorded(*args, name=name, op_seed=seed, **kwargs)

    call.__name__ = name
    TABLE[name] = call


def _source(generator: object) -> Any:
    return hf.random.global_generator() if generator is None else generator


def _uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: object = dtypes.float32,
    generator: Any = None,
) -> Any:
    if dtypes.is_integer(kind_of(dtype)):
        return _source(generator).randint(as_extents(shape), int(minval), int(maxval), kind_of(dtype))
    return _source(generator).uniform(as_extents(shape), minval, 1 if maxval is None else maxval, kind_of(dtype))


def _normal(
    shape: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: Any = dtypes.float32,
    generator: Any = None,
) -> Any:
    return _source(generator).normal(as_extents(shape), mean, stddev, kind_of(dtype))


def _truncated(
    shape: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: Any = dtypes.float32,
    generator: Any = None,
) -> Any:
    return _source(generator).truncated_normal(as_extents(shape), mean, stddev, kind_of(dtype))


def _categorical(
    logits: TensorLike, num_samples: Any, output_dtype: DTypeLike = dtypes.int64, generator: Any = None
) -> Any:
    return draws.categorical(logits, as_extent(num_samples), output_dtype, generator)


_random("random_uniform", "RandomUniform", _uniform)
_random("random_normal", "RandomStandardNormal", _normal)
_random("truncated_normal", "TruncatedNormal", _truncated)
_random("random_shuffle", "RandomShuffle", lambda value, generator=None: _source(generator).shuffle(value))
_random("multinomial", "Multinomial", _categorical)


def set_random_seed(seed: int) -> None:
    """Let random operations of the present graph, from here on, give the same numbers in each session."""
    default_graph().seed = int(seed)


TABLE["set_random_seed"] = set_random_seed
