"""Convolution and correlation of two sequences."""

from __future__ import annotations

from hybridflow.array.elementwise import conj
from hybridflow.array.shapes import expand_dims, flip
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import common_dtype, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError


@operation
def convolve(x1: ArrayLike, x2: ArrayLike, /, mode: str = "full") -> Tensor:
    """Discrete convolution of two sequences: sums of products of one with the other, turned around and moved along.

    Args:
        x1: a tensor of one axis.
        x2: another one.
        mode: "full" has each place where they meet. "same" has as many in the middle as the longer one has, and
            "valid" those where one lies within the other.

    Returns:
        A tensor of one axis in the common dtype.

    Raises:
        ShapeError: for other axes, and without elements.
        ArgumentError: for another ``mode``.

    >>> hf.convolve([1, 2, 3], [0, 1, 2])
    <Tensor i64[5] cpu> [0 1 4 7 6]
    """
    x1, x2 = _sequences("convolve", x1, x2)
    if x2.shape[0] > x1.shape[0]:
        x1, x2 = x2, x1
    return _slid("convolve", x1, flip(x2), mode)


@operation
def correlate(x1: ArrayLike, x2: ArrayLike, /, mode: str = "valid") -> Tensor:
    """Cross-correlation of two sequences: sums of products of one with the other's conjugate, moved along.

    Args:
        x1: a tensor of one axis.
        x2: another one.
        mode: "full" has each place where they meet. "same" has as many in the middle as the longer one has, and
            "valid" those where one lies within the other.

    Returns:
        A tensor of one axis in the common dtype.

    Raises:
        ShapeError: for other axes, and without elements.
        ArgumentError: for another ``mode``.

    >>> hf.correlate([1, 2, 3], [0, 1, 2], "full")
    <Tensor i64[5] cpu> [2 5 8 3 0]
    """
    x1, x2 = _sequences("correlate", x1, x2)
    x2 = conj(x2) if dtypes.is_complex(x2.dtype) else x2
    if x2.shape[0] > x1.shape[0]:
        return flip(_slid("correlate", x2, x1, mode))
    return _slid("correlate", x1, x2, mode)


def _sequences(stage: str, *values: object) -> list[Tensor]:
    tensors = [expand_dims(x, 0) if x.ndim == 0 else x for x in common_dtype(stage, values)]
    if any(x.ndim != 1 or x.shape[0] == 0 for x in tensors):
        raise ShapeError(stage, f"{tensors[0].type} and {tensors[1].type} must be vectors with elements.")
    return tensors


def _slid(stage: str, x: Tensor, window: Tensor, mode: str) -> Tensor:
    """Sums of products with a window that is not longer."""
    n, size = x.shape[0], int(window.shape[0])  # a program for each size of a window
    around = {"full": (size - 1, size - 1), "same": (size // 2, (size - 1) // 2), "valid": (0, 0)}.get(mode)
    if around is None:
        raise ArgumentError(stage, f"mode is {mode!r}; it must be 'full', 'same' or 'valid'.")
    low, high = around
    out = builder.convolve(reshape_to(x, (1, n, 1, 1)), reshape_to(window, (size, 1, 1, 1)), low=(low,), high=(high,))
    return reshape_to(out, (out.shape[1],))
