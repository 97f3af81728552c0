"""What a contraction contracts: products of two operands, summed over axes that both have.

An op of ``Kind.CONTRACT`` names the axes of its operands by their parts, and everything else (passes, schedules,
packing, batching) goes by these descriptions: no one else need know how the op spells them in its attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from hybridflow.compiler.ir.types import Shape, TensorType

T = TypeVar("T")


class Factor(NamedTuple):
    """The axes of one operand by their part, each part in the order in which it counts (row-major, last fastest).

    ``batch`` axes are those of the other operand and of the result, pairwise; ``free`` axes go on in the result alone:
    its rows for the first operand, its columns for the second; ``summed`` axes are those of the other operand,
    pairwise, over which the products are added up.
    """

    batch: tuple[int, ...]
    free: tuple[int, ...]
    summed: tuple[int, ...]

    def arranged(self, batch: Sequence[T], free: Sequence[T], summed: Sequence[T]) -> tuple[T, ...]:
        """One item for each axis of the operand, in the order of its axes, given those of each part."""
        places = (*self.batch, *self.free, *self.summed)
        return tuple(item for _, item in sorted(zip(places, (*batch, *free, *summed)), key=lambda pair: pair[0]))

    def through(self, perm: Sequence[int]) -> Factor:
        """The same axes as those of the array whose axes in the order ``perm`` are the operand's."""
        return Factor(*(tuple(perm[axis] for axis in part) for part in self))

    def behind(self, count: int) -> Factor:
        """The factor with ``count`` batch axes more, in front of all its own axes."""
        batch, free, summed = (tuple(axis + count for axis in part) for part in self)
        return Factor((*range(count), *batch), free, summed)


class Contraction(NamedTuple):
    """The factors of a contraction.  The axes of its result are the batch axes, the free ones of the first operand
    (rows) and the free ones of the second (columns), in this order.  With ``lanes`` one row or one column is summed in
    the order of a row reduction (``evaluation_order``).  float32's ``precision`` is "highest" or "high".  With ``gaps``
    rows of the first operand are expected to begin or end with zeros."""

    left: Factor
    right: Factor
    lanes: bool = False
    precision: str = "highest"
    has_zero_runs: bool = False

    @property
    def factors(self) -> tuple[Factor, Factor]:
        return self.left, self.right

    def extents(self, left: TensorType, right: TensorType) -> Extents:
        return Extents(
            tuple(left.shape[axis] for axis in self.left.batch),
            tuple(left.shape[axis] for axis in self.left.free),
            tuple(right.shape[axis] for axis in self.right.free),
            tuple(left.shape[axis] for axis in self.left.summed),
        )


class Extents(NamedTuple):
    """The extents of a contraction by parts; the result's shape is ``batch + rows + columns``."""

    batch: Shape
    rows: Shape
    columns: Shape
    summed: Shape
