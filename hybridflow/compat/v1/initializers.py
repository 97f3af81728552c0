"""Initializers: they make the operations whose values variables start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow import initializers
from hybridflow.array.creation import asarray
from hybridflow.compat.v1.dtype_names import kind_of
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.nodes import Info, Tensor
from hybridflow.compat.v1.shapes import TensorShape
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import suspended

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import DTypeLike


class Initial:
    """An initializer: called with a shape and dtype, it makes the operation whose value a variable starts from."""

    def __init__(self, make: Callable[[int | None], Any], seed: int | None = None) -> None:
        self._make, self.seed = make, seed

    def __call__(self, shape: Any, dtype: DTypeLike = dtypes.float32, partition_info: object = None) -> Tensor:
        graph = default_graph()
        extents = tuple(TensorShape(shape).as_list())
        dtype = kind_of(dtype or dtypes.float32)
        seed = self.seed
        if seed is None and graph.seed is not None:
            seed = graph.seed + 7919 * (graph.version + 1)
        rule = self._make(seed)

        def compute(run: object, values: Sequence[Any]) -> list[Any]:
            with suspended():
                return [asarray(rule(extents, dtype))]

        op = graph.add("Initial", type(rule).__name__, [], [Info(extents, dtype)], compute)
        op.is_eager = True
        return op.outputs[0]


FACTORIES: set[Any] = set()  # which are called without arguments where they stand for what they make


def initializer_of(kind: str, *names: str, **defaults: Any) -> Callable[..., Initial]:
    """An initializer of hybridflow's as one of graphs: its arguments by name, in TensorFlow's order."""

    def make(*args: Any, **kwargs: Any) -> Initial:
        options = {**defaults, **dict(zip(names, args)), **kwargs}
        seed = options.pop("seed", None)
        options.pop("dtype", None)
        if options.get("distribution") == "normal":
            options["distribution"] = "truncated_normal"
        factory = getattr(initializers, kind)
        if kind in ("Zeros", "Ones", "Constant", "Identity"):
            return Initial(lambda _: factory(**options))
        return Initial(lambda chosen: factory(**options, seed=chosen), seed)

    make.__name__ = kind
    FACTORIES.add(make)
    return make


zeros_initializer = initializer_of("Zeros", "dtype")
ones_initializer = initializer_of("Ones", "dtype")
random_normal_initializer = initializer_of("RandomNormal", "mean", "stddev", "seed", "dtype", mean=0.0, stddev=1.0)
truncated_normal_initializer = initializer_of(
    "TruncatedNormal", "mean", "stddev", "seed", "dtype", mean=0.0, stddev=1.0
)
random_uniform_initializer = initializer_of(
    "RandomUniform", "minval", "maxval", "seed", "dtype", minval=0.0, maxval=1.0
)
variance_scaling_initializer = initializer_of("VarianceScaling", "scale", "mode", "distribution", "seed", "dtype")
glorot_uniform_initializer = initializer_of("GlorotUniform", "seed", "dtype")
glorot_normal_initializer = initializer_of("GlorotNormal", "seed", "dtype")
he_normal_initializer = initializer_of("HeNormal", "seed", "dtype")
uniform_unit_scaling_initializer = initializer_of("VarianceScaling", "scale", "seed", "dtype", distribution="uniform")
orthogonal_initializer = initializer_of("Orthogonal", "gain", "seed", "dtype")
identity_initializer = initializer_of("Identity", "gain", "dtype")


class _FromValue:
    """Every element has one value, or they are those of a list, in order."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> Any:
        array = np.asarray(self._value, dtype=dtype)
        return np.full(shape, array) if not array.ndim else array.reshape(shape)


def constant_initializer(value: TensorLike = 0, dtype: DTypeLike | None = None, verify_shape: bool = False) -> Initial:
    return Initial(lambda _: _FromValue(value))
