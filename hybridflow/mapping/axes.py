"""Axes over which arguments and results are mapped: trees of them that say for whole sub-trees."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import same_extents
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError


def spread(stage: str, axes: object, value: object, name: str, path: str) -> list[Any]:
    """The axis of each leaf of ``value``, as ``axes`` (an int, None, or a tree of these) says.

    ``name`` is what the axes are called, ``path`` the value.  Raises ArgumentTypeError for axes that are nested
    otherwise.
    """
    if axes is None or not pytree.is_container(axes):
        return [_axis(stage, axes, name)] * len(pytree.flatten(value)[0])
    if not pytree.is_container(value) or not _alike(axes, value):
        raise ArgumentTypeError(
            stage, f"{name} is {axes!r:.60}, and {path} is nested otherwise: {pytree.flatten(value)[1]!r:.80}."
        )
    pairs = zip(pytree.children(axes, name), pytree.children(value, path))
    return [axis for (own_path, a), (where, v) in pairs for axis in spread(stage, a, v, own_path, where)]


def _alike(axes: object, value: object) -> bool:
    """Whether two containers have the same entries; lists and tuples may stand for one another."""
    one, two = pytree.children(axes, ""), pytree.children(value, "")
    return len(one) == len(two) and [path for path, _ in one] == [path for path, _ in two]


def _axis(stage: str, axis: Any, name: str) -> int | None:
    if axis is None:
        return None
    try:
        if isinstance(axis, bool):
            raise TypeError
        return operator.index(axis)
    except TypeError:
        raise ArgumentTypeError(stage, f"{name} is {axis!r:.60}. Expected an int, None, or a tree of them.") from None


def size_of(stage: str, size_asked: Any, mapped: Sequence[tuple[str, Tensor, int]]) -> Extent:
    """How many examples there are: one extent along the mapped axes of all arguments.

    Raises ShapeError where these differ, AxisError for an axis out of range, ArgumentError where none is mapped.
    """
    sizes = []
    for path, x, axis in mapped:
        if not -len(x.shape) <= axis < len(x.shape):
            hint = " To hand it on as it is, give None as its axis." if not x.shape else ""
            raise AxisError(stage, f"{path} is {x.type} and is to be mapped over its axis {axis}.{hint}")
        sizes.append(x.shape[axis])
    if not sizes:
        if size_asked is None:
            raise ArgumentError(stage, "no argument is mapped: in_axes has None for all. Give axis_size=n.")
        return size_asked
    for (path, x, axis), size in zip(mapped, sizes):
        if not same_extents((size,), (sizes[0],)):
            first, one, first_size = mapped[0]
            raise ShapeError(
                stage,
                f"{first} is {one.type}, mapped over its axis {first_size}, and {path} is {x.type}, over its axis "
                f"{axis}. Expected one extent.",
            )
    if size_asked is not None and not same_extents((size_asked,), (sizes[0],)):
        raise ShapeError(stage, f"axis_size is {size_asked}, and {mapped[0][0]} has {sizes[0]} examples.")
    return sizes[0]
