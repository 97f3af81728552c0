"""A function of vectors, applied along one axis of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.array.shapes import moveaxis, reshape
from hybridflow.compiler.ops import type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentTypeError, ShapeError, entered
from hybridflow.mapping.vmap import vmap


@entered
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Tensor:
    """Application of a function of vectors to all vectors along an axis.

    The function is traced once, as ``hf.vmap`` traces it.

    Args:
        func1d: a function of a vector that returns a tensor.
        axis: the axis of the vectors.
        arr: a tensor, array, nested list or number.
        *args: further arguments of the function.
        **kwargs: the same by name.

    Returns:
        A tensor in which the axes of what the function returns stand in the place of ``axis``.

    Raises:
        AxisError: for an axis out of range.
        ArgumentTypeError: where the function returns no tensor.

    >>> hf.apply_along_axis(lambda x: x / hf.sum(x), 1, [[1.0, 3.0], [2.0, 2.0]])
    <Tensor f32[2,2] cpu>
    [[0.25 0.75]
     [0.5  0.5 ]]
    """
    x = as_tensor(arr, "apply_along_axis")
    axis = type_rules.axis("apply_along_axis", x.type, axis)
    lines = moveaxis(x, axis, -1)
    outer = lines.shape[:-1]
    if any(n == 0 for n in outer):
        raise ShapeError("apply_along_axis", f"there is no vector along axis {axis} of {x.type}.")
    result = vmap(lambda line: as_result(func1d(line, *args, **kwargs)))(reshape(lines, (-1, lines.shape[-1])))
    inner = result.shape[1:]
    result = reshape(result, (*outer, *inner))
    return moveaxis(result, tuple(range(-len(inner), 0)), tuple(range(axis, axis + len(inner)))) if inner else result


def as_result(value: object) -> Tensor:
    if value is None:
        raise ArgumentTypeError("apply_along_axis", "the function returns None. Expected a tensor.")
    return as_tensor(value, "apply_along_axis")
