"""What ``x.shape`` is: a tuple of extents, with the questions that TensorFlow's shapes answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hybridflow.errors import ArgumentError


class Shape(tuple[Any, ...]):
    """The extents of a tensor.

    A tuple in everything: it compares, prints and indexes as one, and its slices are plain tuples.  Lists can be added
    to it as well.

    >>> hf.ones((2, 3)).shape.as_list()
    [2, 3]
    >>> hf.ones((2, 3)).shape + [4]
    (2, 3, 4)
    """

    __slots__ = ()

    def as_list(self) -> list[Any]:
        """The extents as a list."""
        return list(self)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self)

    ndims = rank

    @property
    def dims(self) -> list[Any]:
        """The extents as a list."""
        return list(self)

    def num_elements(self) -> Any:
        """The product of the extents, None while one is not a number."""
        return math.prod(self) if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        """Whether all extents are numbers, which they may not be in a traced function."""
        return all(isinstance(extent, int) for extent in self)

    def is_compatible_with(self, other: Sequence[Any]) -> bool:
        """Whether a tensor may have both shapes: they agree in all extents that are numbers."""
        both = zip(self, other)
        return len(self) == len(other) and all(a == b for a, b in both if _are_numbers(a, b))

    def assert_is_compatible_with(self, other: Sequence[Any]) -> None:
        """Raises ArgumentError where no tensor has both shapes."""
        if not self.is_compatible_with(other):
            raise ArgumentError("shape", f"shapes {self} and {other} are not compatible.")

    def assert_has_rank(self, rank: int) -> None:
        """Raises ArgumentError where the number of axes is another."""
        if len(self) != rank:
            raise ArgumentError("shape", f"shape {self} has {len(self)} axes, not {rank}.")

    def assert_is_fully_defined(self) -> None:
        """Raises ArgumentError where an extent is not a number."""
        if not self.is_fully_defined():
            raise ArgumentError("shape", f"shape {self} is not fully known.")

    def with_rank(self, rank: int) -> Shape:
        """The shape itself.  Raises ArgumentError where the number of axes is another."""
        self.assert_has_rank(rank)
        return self

    def with_rank_at_least(self, rank: int) -> Shape:
        """The shape itself.  Raises ArgumentError where there are fewer axes."""
        if len(self) < rank:
            raise ArgumentError("shape", f"shape {self} has {len(self)} axes, {rank} or more are needed.")
        return self

    def with_rank_at_most(self, rank: int) -> Shape:
        """The shape itself.  Raises ArgumentError where there are more axes."""
        if len(self) > rank:
            raise ArgumentError("shape", f"shape {self} has {len(self)} axes, at most {rank} are wanted.")
        return self

    def concatenate(self, other: Sequence[Any]) -> Shape:
        """These extents, and then the others."""
        return self + other

    def __add__(self, other: object) -> Any:
        return type(self)((*self, *other)) if isinstance(other, (tuple, list)) else NotImplemented

    def __radd__(self, other: object) -> Shape:
        return type(self)((*other, *self)) if isinstance(other, (tuple, list)) else NotImplemented


def _are_numbers(*extents: object) -> bool:
    return all(isinstance(extent, int) for extent in extents)


def is_tuple(value: object) -> bool:
    """Whether a value is a tuple to everybody, and of no class of the user's."""
    return type(value) is tuple or type(value) is Shape
