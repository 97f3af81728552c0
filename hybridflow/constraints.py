"""What weights are made to satisfy after each update: ``hf.constraints``, with Keras's names and arguments.

Layers take them (``Dense(3, kernel_constraint="non_neg")``), and optimizers apply them.  ``axis`` (an int or several)
are the axes of which norms are taken: all but the last one of kernels that make the last axis of a layer's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any

from hybridflow.array.elementwise import clip, maximum, sqrt, square
from hybridflow.array.reductions import sum
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.serialization import Configured, identified
from hybridflow.core.tensor import Tensor
from hybridflow.errors import entered

__all__ = [
    "Constraint",
    "MaxNorm",
    "MinMaxNorm",
    "NonNeg",
    "UnitNorm",
    "get",
    "max_norm",
    "min_max_norm",
    "non_neg",
    "unit_norm",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)

_EPSILON = 1e-7  # beside norms, against 0 / 0


class Constraint(Configured):
    """The base of all constraints, and of your own: define ``__call__(weights)`` and, to save it, ``get_config``.

    >>> class Even(hf.constraints.Constraint):
    ...     def __call__(self, weights):
    ...         return weights - hf.mean(weights)
    >>> Even()(hf.asarray([1.0, 3.0]))
    <Tensor f32[2] cpu> [-1.  1.]
    """

    def __call__(self, weights: Any) -> Tensor:
        """What the weights become."""
        raise NotImplementedError(f"{type(self).__name__} has to define __call__(self, weights)")


@dataclass(frozen=True)
class NonNeg(Constraint):
    """Non-negative weights: ``max(weights, 0)``.

    >>> hf.constraints.NonNeg()(hf.asarray([1.0, -3.0]))
    <Tensor f32[2] cpu> [1. 0.]
    """

    def __call__(self, weights: Tensor) -> Tensor:
        return maximum(weights, 0)


@dataclass(frozen=True)
class MaxNorm(Constraint):
    """Max-norm constraint: norms of at most ``max_value``.

    Args:
        max_value: the largest norm or value.
        axis: the axes along which norms are taken.

    >>> hf.constraints.MaxNorm(1.0)(hf.asarray([[3.0, 0.5], [4.0, 0.0]])).numpy().round(3)
    array([[0.6, 0.5],
           [0.8, 0. ]], dtype=float32)
    """

    max_value: float = 2
    axis: int | Sequence[int] = 0

    def __call__(self, weights: Any) -> Tensor:
        norms = _norms(weights, self.axis)
        return weights * (clip(norms, 0, self.max_value) / (_EPSILON + norms))


@dataclass(frozen=True)
class UnitNorm(Constraint):
    """Unit-norm constraint: norms of 1.

    Args:
        axis: the axes along which norms are taken.

    >>> hf.constraints.UnitNorm()(hf.asarray([3.0, 4.0])).numpy().round(3)
    array([0.6, 0.8], dtype=float32)
    """

    axis: int | Sequence[int] = 0

    def __call__(self, weights: Tensor) -> Tensor:
        return weights / (_EPSILON + _norms(weights, self.axis))


@dataclass(frozen=True)
class MinMaxNorm(Constraint):
    """Min-max-norm constraint: norms from ``min_value`` to ``max_value``, or that share ``rate`` of the way there.

    Args:
        min_value: the least norm.
        max_value: the largest norm or value.
        rate: how far norms are moved towards the range, from 0 to 1.
        axis: the axes along which norms are taken.

    >>> hf.constraints.MinMaxNorm(1.0, 2.0, rate=0.5)(hf.asarray([3.0, 4.0])).numpy().round(3)
    array([2.1, 2.8], dtype=float32)
    """

    min_value: float = 0.0
    max_value: float = 1.0
    rate: float = 1.0
    axis: int | Sequence[int] = 0

    def __call__(self, weights: Tensor) -> Tensor:
        norms = _norms(weights, self.axis)
        wanted = self.rate * clip(norms, self.min_value, self.max_value) + (1 - self.rate) * norms
        return weights * (wanted / (_EPSILON + norms))


def _norms(weights: Tensor, axis: Any) -> Tensor:
    return sqrt(sum(square(weights), axis if isinstance(axis, int) else tuple(axis), keepdims=True))


_KINDS: dict[str, type[Constraint]] = {kind.__name__: kind for kind in (MaxNorm, MinMaxNorm, NonNeg, UnitNorm)}


@entered
def get(identifier: object) -> Any:
    """A constraint by its name or description.

    Args:
        identifier: a name (``"non_neg"``), a dict with ``class_name`` and ``config``, a constraint, or None.

    Returns:
        The constraint; None for None.

    Raises:
        ArgumentError: for an unknown name.
        ArgumentTypeError: for anything else that cannot be called.

    >>> hf.constraints.get("unit_norm")
    UnitNorm(axis=0)
    """
    return None if identifier is None else identified(_KINDS, identifier, "constraints.get", "a constraint")


# The names in lower case that Keras has too.
max_norm = MaxNorm
min_max_norm = MinMaxNorm
non_neg = NonNeg
unit_norm = UnitNorm
