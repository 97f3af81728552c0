"""Penalties for weights, to be added to the loss: ``hf.regularizers``, with Keras's names and arguments.

Layers take them (``Dense(3, kernel_regularizer="l2")``), and ``layer.losses`` is what they make of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any

from hybridflow.array.creation import eye
from hybridflow.array.elementwise import abs, square
from hybridflow.array.reductions import sum
from hybridflow.array.shapes import matrix_transpose
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.serialization import Configured, identified
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, ShapeError, entered
from hybridflow.nn.functional import l2_normalize

__all__ = [
    "L1",
    "L1L2",
    "L2",
    "OrthogonalRegularizer",
    "Regularizer",
    "get",
    "l1",
    "l1_l2",
    "l2",
    "orthogonal_regularizer",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)


class Regularizer(Configured):
    """The base of all regularizers, and of your own: define ``__call__(weights)`` and, to save it, ``get_config``.

    >>> class Largest(hf.regularizers.Regularizer):
    ...     def __call__(self, weights):
    ...         return hf.max(hf.abs(weights))
    >>> Largest()(hf.asarray([1.0, -3.0]))
    <Tensor f32[] cpu> 3.0
    """

    def __call__(self, weights: Tensor) -> Tensor:
        """The penalty, a scalar."""
        raise NotImplementedError(f"{type(self).__name__} has to define __call__(self, weights)")


@dataclass(frozen=True)
class L1(Regularizer):
    """L1 penalty: ``l1 * sum(|weights|)``.

    Args:
        l1: the factor of the sum of absolute values.

    >>> hf.regularizers.L1(0.5)(hf.asarray([1.0, -3.0]))
    <Tensor f32[] cpu> 2.0
    """

    l1: float = 0.01

    def __call__(self, weights: Tensor) -> Tensor:
        return self.l1 * sum(abs(weights))


@dataclass(frozen=True)
class L2(Regularizer):
    """L2 penalty: ``l2 * sum(weights**2)``.

    Args:
        l2: the factor of the sum of squares.

    >>> hf.regularizers.L2(0.5)(hf.asarray([1.0, -3.0]))
    <Tensor f32[] cpu> 5.0
    """

    l2: float = 0.01

    def __call__(self, weights: Tensor) -> Tensor:
        return self.l2 * sum(square(weights))


@dataclass(frozen=True)
class L1L2(Regularizer):
    """L1 and L2 penalty: ``l1 * sum(|weights|) + l2 * sum(weights**2)``.

    Args:
        l1: the factor of the sum of absolute values.
        l2: the factor of the sum of squares.

    >>> hf.regularizers.L1L2(0.5, 0.5)(hf.asarray([1.0, -3.0]))
    <Tensor f32[] cpu> 7.0
    """

    l1: float = 0.0
    l2: float = 0.0

    def __call__(self, weights: Tensor) -> Tensor:
        return self.l1 * sum(abs(weights)) + self.l2 * sum(square(weights))


@dataclass(frozen=True)
class OrthogonalRegularizer(Regularizer):
    """Orthogonal penalty: ``factor`` times the mean of ``|cosine|`` over all pairs of different rows of a matrix, or
    columns.

    So 0 where they are orthogonal, and ``factor`` where they are parallel.  Raises ShapeError for weights that are no
    matrix.

    Args:
        factor: the factor of the penalty.
        mode: ``"rows"`` or ``"columns"``.

    >>> hf.regularizers.OrthogonalRegularizer(0.5)(hf.asarray([[1.0, 0.0], [2.0, 0.0]]))
    <Tensor f32[] cpu> 0.5
    """

    factor: float = 0.01
    mode: str = "rows"

    def __post_init__(self) -> None:
        if self.mode not in ("rows", "columns"):
            raise ArgumentError(type(self).__name__, f"mode is {self.mode!r}; it must be 'rows' or 'columns'.")

    def __call__(self, weights: Tensor) -> Tensor:
        if weights.ndim != 2:
            raise ShapeError(type(self).__name__, f"the weights are {weights.type}; they must be a matrix.")
        rows = l2_normalize(weights if self.mode == "rows" else matrix_transpose(weights), axis=1)
        count = rows.shape[0]
        between = rows @ matrix_transpose(rows) * (1 - eye(count, dtype=rows.dtype))
        return self.factor / (count * (count - 1)) * sum(abs(between))


_KINDS: dict[str, type[Regularizer]] = {
    kind.__name__: kind for kind in (L1, L2, L1L2, OrthogonalRegularizer)
}  # by which ``get`` finds them


@entered
def get(identifier: object) -> Any:
    """A regularizer by its name or description.

    Args:
        identifier: a name (``"l2"``), a dict with ``class_name`` and ``config``, a regularizer, or None.

    Returns:
        The regularizer; None for None.

    Raises:
        ArgumentError: for an unknown name.
        ArgumentTypeError: for anything else that cannot be called.

    >>> hf.regularizers.get("l1")
    L1(l1=0.01)
    """
    return None if identifier is None else identified(_KINDS, identifier, "regularizers.get", "a regularizer")


# The names in lower case that Keras has too.
l1 = L1
l1_l2 = L1L2
l2 = L2
orthogonal_regularizer = OrthogonalRegularizer
