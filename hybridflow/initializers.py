"""First values of weights: ``hf.initializers``, with Keras's names and arguments.

An initializer is called with a shape and a dtype.  Those with a ``seed`` (an int) give the same values at each call,
without one they draw from the global generator (see ``hf.random.set_seed``).  ``fan_in`` and ``fan_out`` are the
numbers of inputs and outputs of one unit: the last two extents of the shape, times those before them.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any, Literal

import numpy as np

from hybridflow.array import creation, random
from hybridflow.array.distributions import Source
from hybridflow.array.elementwise import greater, where
from hybridflow.array.shapes import matrix_transpose, reshape
from hybridflow.compiler.ir.dtypes import compute_dtype, is_float
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.context import reasons
from hybridflow.core.promotion import default_float, to_dtype
from hybridflow.core.serialization import Configured, identified
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, entered
from hybridflow.jit.function import Function, function
from hybridflow.linalg import diagonal, qr

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Ones",
    "Orthogonal",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "constant",
    "get",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "variance_scaling",
    "zeros",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)


class Initializer(Configured):
    """The base of all initializers, and of your own: define ``__call__(shape, dtype)`` and, to save it, ``get_config``.

    >>> class Halves(hf.initializers.Initializer):
    ...     def __call__(self, shape, dtype=hf.float32):
    ...         return hf.full(shape, 0.5, dtype=dtype)
    >>> Halves()((2,))
    <Tensor f32[2] cpu> [0.5 0.5]
    """

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        """A tensor of the shape and dtype."""
        raise NotImplementedError(f"{type(self).__name__} has to define __call__(self, shape, dtype)")


@dataclass(frozen=True)
class Zeros(Initializer):
    """Zeros.

    >>> hf.initializers.Zeros()((2,))
    <Tensor f32[2] cpu> [0. 0.]
    """

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        return creation.zeros(shape, dtype=dtype)


@dataclass(frozen=True)
class Ones(Initializer):
    """Ones.

    >>> hf.initializers.Ones()((2,))
    <Tensor f32[2] cpu> [1. 1.]
    """

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        return creation.ones(shape, dtype=dtype)


@dataclass(frozen=True)
class Constant(Initializer):
    """One value everywhere.

    Args:
        value: the number that stands everywhere, or an array that has the shape or broadcasts to it.

    >>> hf.initializers.Constant(0.25)((2,))
    <Tensor f32[2] cpu> [0.25 0.25]
    """

    value: Any = 0.0

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        if np.ndim(self.value):
            return creation.asarray(np.broadcast_to(np.asarray(self.value), tuple(shape)), dtype=dtype)
        return creation.full(shape, self.value, dtype=dtype)


@dataclass(frozen=True)
class Identity(Initializer):
    """Identity matrix: ``gain`` on the diagonal of a matrix, zeros elsewhere.  Raises ArgumentError for shapes that
    are not matrices.

    Args:
        gain: what all is multiplied with.

    >>> hf.initializers.Identity()((2, 3))
    <Tensor f32[2,3] cpu>
    [[1. 0. 0.]
     [0. 1. 0.]]
    """

    gain: float = 1.0

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        if len(shape) != 2:
            raise ArgumentError("Identity", f"the shape is {tuple(shape)}; it must have two extents.")
        return creation.eye(shape[0], shape[1], dtype=dtype) * self.gain


@dataclass(frozen=True)
class RandomNormal(Initializer):
    """Normally distributed numbers.

    Args:
        mean: the mean of the numbers.
        stddev: the standard deviation of the numbers.
        seed: a number, a generator, or None for the global one.

    >>> hf.initializers.RandomNormal(stddev=0.1, seed=1)((2, 3)).shape
    (2, 3)
    """

    mean: float = 0.0
    stddev: float = 0.05
    seed: int | None = None

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        return _drawn(self.seed, "normal", shape, self.mean, self.stddev, dtype)


@dataclass(frozen=True)
class RandomUniform(Initializer):
    """Numbers from ``minval`` on and below ``maxval``, all equally likely.

    Args:
        minval: the least number.
        maxval: the largest number.
        seed: a number, a generator, or None for the global one.

    >>> hf.initializers.RandomUniform(seed=1)((2, 3)).shape
    (2, 3)
    """

    minval: float = -0.05
    maxval: float = 0.05
    seed: int | None = None

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        return _drawn(self.seed, "uniform", shape, self.minval, self.maxval, dtype)


@dataclass(frozen=True)
class TruncatedNormal(Initializer):
    """Normally distributed numbers, those more than two standard deviations from the mean drawn again.

    Args:
        mean: the mean of the numbers.
        stddev: the standard deviation of the numbers.
        seed: a number, a generator, or None for the global one.

    >>> x = hf.initializers.TruncatedNormal(stddev=1.0, seed=1)((1000,))
    >>> (hf.max(hf.abs(x)) <= 2).item()
    True
    """

    mean: float = 0.0
    stddev: float = 0.05
    seed: int | None = None

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        return _drawn(self.seed, "truncated_normal", shape, self.mean, self.stddev, dtype)


_TRUNCATED_STDDEV = 0.87962566103423978  # of the normal distribution between -2 and 2


@dataclass(frozen=True)
class VarianceScaling(Initializer):
    """Numbers of variance ``scale / n``, where n is ``fan_in``, ``fan_out`` or the mean of both, as ``mode`` says.

    ``distribution`` is "truncated_normal", "untruncated_normal" or "uniform".

    Args:
        scale: the factor of the variance.
        mode: ``"fan_in"``, ``"fan_out"`` or ``"fan_avg"``.
        distribution: ``"truncated_normal"``, ``"untruncated_normal"`` or ``"uniform"``.
        seed: a number, a generator, or None for the global one.

    >>> hf.initializers.VarianceScaling(seed=1)((2, 3)).shape
    (2, 3)
    """

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "truncated_normal"
    seed: int | None = None

    def __post_init__(self) -> None:
        stage = type(self).__name__
        if not self.scale > 0:
            raise ArgumentError(stage, f"scale is {self.scale!r}; it must be positive.")
        if self.mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ArgumentError(stage, f"mode is {self.mode!r}; it must be 'fan_in', 'fan_out' or 'fan_avg'.")
        if self.distribution not in ("truncated_normal", "untruncated_normal", "uniform"):
            raise ArgumentError(
                stage,
                f"distribution is {self.distribution!r}; it must be 'truncated_normal', 'untruncated_normal' or "
                "'uniform'.",
            )

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        fan_in, fan_out = _fans(shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        deviation = math.sqrt(self.scale / max(1.0, fan))
        if self.distribution == "uniform":
            limit = math.sqrt(3) * deviation
            return _drawn(self.seed, "uniform", shape, -limit, limit, dtype)
        if self.distribution == "untruncated_normal":
            return _drawn(self.seed, "normal", shape, 0.0, deviation, dtype)
        return _drawn(self.seed, "truncated_normal", shape, 0.0, deviation / _TRUNCATED_STDDEV, dtype)


class _Scaled(Initializer):
    """Variance scaling under a name: subclasses say scale, mode and distribution."""

    _arguments: tuple[float, str, str]
    seed: int | None

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        return VarianceScaling(*self._arguments, self.seed)(shape, dtype)


@dataclass(frozen=True)
class GlorotUniform(_Scaled):
    """Uniform, of variance ``2 / (fan_in + fan_out)``: the standard for dense layers.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.

    Args:
        seed: a number, a generator, or None for the global one.

    >>> hf.initializers.GlorotUniform(seed=1)((2, 3)).shape
    (2, 3)
    """

    seed: int | None = None
    _arguments = 1.0, "fan_avg", "uniform"


@dataclass(frozen=True)
class GlorotNormal(_Scaled):
    """Truncated normal, of variance ``2 / (fan_in + fan_out)``; see GlorotUniform.

    Args:
        seed: a number, a generator, or None for the global one.

    >>> hf.initializers.GlorotNormal(seed=1)((2, 3)).shape
    (2, 3)
    """

    seed: int | None = None
    _arguments = 1.0, "fan_avg", "truncated_normal"


@dataclass(frozen=True)
class HeUniform(_Scaled):
    """Uniform, of variance ``2 / fan_in``: for layers before a ReLU.

    Source: He, Zhang, Ren and Sun, "Delving Deep into Rectifiers", 2015.

    Args:
        seed: a number, a generator, or None for the global one.

    >>> hf.initializers.HeUniform(seed=1)((2, 3)).shape
    (2, 3)
    """

    seed: int | None = None
    _arguments = 2.0, "fan_in", "uniform"


@dataclass(frozen=True)
class HeNormal(_Scaled):
    """Truncated normal, of variance ``2 / fan_in``; see HeUniform.

    Args:
        seed: a number, a generator, or None for the global one.

    >>> hf.initializers.HeNormal(seed=1)((2, 3)).shape
    (2, 3)
    """

    seed: int | None = None
    _arguments = 2.0, "fan_in", "truncated_normal"


@dataclass(frozen=True)
class LecunUniform(_Scaled):
    """Uniform, of variance ``1 / fan_in``.

    Source: LeCun, Bottou, Orr and Müller, "Efficient BackProp", 1998.

    Args:
        seed: a number, a generator, or None for the global one.

    >>> hf.initializers.LecunUniform(seed=1)((2, 3)).shape
    (2, 3)
    """

    seed: int | None = None
    _arguments = 1.0, "fan_in", "uniform"


@dataclass(frozen=True)
class LecunNormal(_Scaled):
    """Truncated normal, of variance ``1 / fan_in``; see LecunUniform.

    Args:
        seed: a number, a generator, or None for the global one.

    >>> hf.initializers.LecunNormal(seed=1)((2, 3)).shape
    (2, 3)
    """

    seed: int | None = None
    _arguments = 1.0, "fan_in", "truncated_normal"


@dataclass(frozen=True)
class Orthogonal(Initializer):
    """Orthogonal matrix: ``gain`` times a matrix with orthonormal columns, or rows if these are fewer, all such
    equally likely.

    Of more than two extents all but the last one count as rows.  Source: Saxe, McClelland and Ganguli, "Exact solutions
    to the nonlinear dynamics of learning in deep linear neural networks", 2014.  Raises ArgumentError for shapes of
    fewer than two extents.

    Args:
        gain: what all is multiplied with.
        seed: a number, a generator, or None for the global one.

    >>> q = hf.initializers.Orthogonal(seed=1)((4, 3))
    >>> hf.max(hf.abs(q.mT @ q - hf.eye(3))).item() < 1e-6
    True
    """

    gain: float = 1.0
    seed: int | None = None

    def __call__(self, shape: Sequence[int], dtype: DTypeLike = default_float) -> Tensor:
        if len(shape) < 2:
            raise ArgumentError("Orthogonal", f"the shape is {tuple(shape)}; it must have two extents or more.")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        size = max(rows, columns), min(rows, columns)
        q, r = qr(_drawn(self.seed, "normal", size, 0.0, 1.0, dtype))
        q = where(greater(diagonal(r), 0), q, -q)  # otherwise some are likelier than others
        return self.gain * reshape(matrix_transpose(q) if rows < columns else q, tuple(shape))


_KINDS: dict[str, type[Initializer]] = {
    name: kind
    for name, kind in list(globals().items())
    if name in __all__ and isinstance(kind, type) and kind is not Initializer
} | {"Normal": RandomNormal, "Uniform": RandomUniform}


@entered
def get(identifier: object) -> Initializer:
    """An initializer by its name or description.

    Args:
        identifier: a name (``"he_normal"``), a dict with ``class_name`` and ``config``, or an initializer or its class,
            or a function of a shape and a dtype; None for the usual one, "glorot_uniform".

    Returns:
        The initializer.

    Raises:
        ArgumentError: for an unknown name.
        ArgumentTypeError: for anything else that cannot be called.

    >>> hf.initializers.get("glorot_uniform")
    GlorotUniform(seed=None)
    """
    if identifier is None:
        return GlorotUniform()
    if isinstance(identifier, type) and issubclass(identifier, Initializer):
        identifier = identifier()
    result: Initializer = identified(_KINDS, identifier, "initializers.get", "an initializer")
    return result if hasattr(result, "get_config") else _by_keyword(result)


def _by_keyword(function: Callable[..., Any]) -> Any:
    """The function called with a shape and a dtype, which goes by its name where it is not the second argument."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # it is none of Python's
        return function
    if "dtype" not in names[2:]:
        return function
    return functools.wraps(function)(lambda shape, dtype=default_float: function(shape, dtype=dtype))


_LEAST = 64  # numbers that a program is asked for


def _drawn(
    seed: int | None, distribution: _Distribution, shape: Sequence[int], first: float, second: float, dtype: DTypeLike
) -> Tensor:
    """What a generator draws, eagerly by one program for all shapes and parameters: models have weights of many."""
    source, shape = random.global_generator() if seed is None else random.Generator(seed), tuple(shape)
    wanted = to_dtype(dtype, "initializers")
    count = math.prod(shape) if all(type(extent) is int for extent in shape) else 0
    if count < _LEAST or not reasons.none_here() or not is_float(wanted):
        result: Tensor = getattr(source, distribution)(shape, first, second, dtype)
        return result
    wide = compute_dtype(wanted)
    state = source._drawn(Source.blocks(count, wide, 2 if distribution == "normal" else 1))
    values = _program(distribution, wanted)(state, count, *(np.array(x, wide) for x in (first, second)))
    return reshape(values, shape)


_Distribution = Literal["normal", "truncated_normal", "uniform"]


@functools.cache
def _program(distribution: _Distribution, dtype: np.dtype[Any]) -> Function:
    """A function of a state, how many numbers, and the two parameters."""
    draw = getattr(Source, distribution)

    def drawn(state: Tensor, count: int, first: Tensor, second: Tensor) -> Tensor:
        return draw(_From(state), (count,), first, second, dtype)

    result = function(drawn, name=f"initializers.{distribution}")
    number = np.zeros((), compute_dtype(dtype))
    for count in (_LEAST, _LEAST + 1):  # which is any
        result.expect(np.zeros(2, np.uint64), count, number, number)
    return result


class _From(Source):
    """Numbers from a state on, which nobody else draws from."""

    def __init__(self, state: Tensor) -> None:
        self._state = state

    def _drawn(self, blocks: object) -> Tensor:
        return self._state


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) < 2:
        count = math.prod(shape)
        return count, count
    field = math.prod(shape[:-2])
    return field * shape[-2], field * shape[-1]


# The names in lower case that Keras has too.
constant = Constant
glorot_normal = GlorotNormal
glorot_uniform = GlorotUniform
he_normal = HeNormal
he_uniform = HeUniform
identity = Identity
lecun_normal = LecunNormal
lecun_uniform = LecunUniform
ones = Ones
orthogonal = Orthogonal
random_normal = RandomNormal
random_uniform = RandomUniform
truncated_normal = TruncatedNormal
variance_scaling = VarianceScaling
zeros = Zeros
