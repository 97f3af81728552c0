"""What ``x.get_shape()`` is: a tuple of extents, with the questions that TensorFlow's shapes answer."""

from __future__ import annotations

import math
from typing import Any


class Shape(tuple[Any, ...]):
    """The extents of a tensor.

    A tuple in everything: it compares, prints and indexes as one, and its slices and sums are plain tuples.

    >>> hf.ones((2, 3)).get_shape().as_list()
    [2, 3]
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
