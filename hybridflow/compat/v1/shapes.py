"""Shapes as programs of TensorFlow 1 ask for them: ``x.get_shape()[1].value``, with None for what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class Dimension(int):
    """An extent that is known: an int with a ``value``."""

    @property
    def value(self) -> int:
        return int(self)

    def is_compatible_with(self, other: object) -> bool:
        """Whether another extent is the same, or not known."""
        known = _extent(other)
        return known is None or known == self

    def merge_with(self, other: object) -> Dimension:
        """The extent.  Raises ValueError where another one differs."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")
        return self


class Unknown:
    """An extent that is not known; what is calculated with it is not known either."""

    value = None

    def is_compatible_with(self, other: object) -> bool:
        """An extent that is not known may be any."""
        return True

    def _unknown(self, *_: object) -> Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = _unknown

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Unknown)

    def __hash__(self) -> int:
        return hash(None)

    def __int__(self) -> int:
        raise TypeError("this dimension is not known before the graph is run: use tf.shape(x) for its value there.")

    __index__ = __int__

    def __repr__(self) -> str:
        return "?"


_UNKNOWN = Unknown()


def _extent(value: Any) -> int | None:
    value = getattr(value, "value", value)
    return None if value is None or value == -1 else int(value)


_has_plain_extents = [False]  # whether an element of a shape is a number, as in TensorFlow 2


def enable_v2_tensorshape() -> None:
    """Let elements of shapes be numbers, or None."""
    _has_plain_extents[0] = True


def disable_v2_tensorshape() -> None:
    """Let elements of shapes be ``Dimension``s."""
    _has_plain_extents[0] = False


class TensorShape:
    """A static shape: extents, None for those that are not known; ``TensorShape(None)`` has an unknown rank."""

    __slots__ = ("_extents",)

    def __init__(self, dims: object) -> None:
        self._extents: tuple[int | None, ...] | None
        if isinstance(dims, TensorShape):
            self._extents = dims._extents
        elif dims is None:
            self._extents = None
        else:
            self._extents = tuple([_extent(x) for x in (dims if isinstance(dims, Iterable) else (dims,))])

    @property
    def ndims(self) -> int | None:
        return None if self._extents is None else len(self._extents)

    rank = ndims

    @property
    def dims(self) -> list[Any] | None:
        return None if self._extents is None else [_dimension(x) for x in self._extents]

    def _known(self) -> tuple[int | None, ...]:
        if self._extents is None:
            raise ValueError("the rank of this shape is not known.")
        return self._extents

    def as_list(self) -> list[int | None]:
        """Raises ValueError where the rank is unknown."""
        return list(self._known())

    def is_fully_defined(self) -> bool:
        return self._extents is not None and None not in self._extents

    def num_elements(self) -> int | None:
        if not self.is_fully_defined():
            return None
        count = 1
        for extent in self._known():
            count *= extent or 0
        return count

    def is_compatible_with(self, other: object) -> bool:
        """Whether there is a shape that is both."""
        others = TensorShape(other)._extents
        if self._extents is None or others is None:
            return True
        return len(self._extents) == len(others) and all(
            a is None or b is None or a == b for a, b in zip(self._extents, others)
        )

    def merge_with(self, other: object) -> TensorShape:
        """What is known by either.  Raises ValueError where they differ."""
        shape = TensorShape(other)
        if not self.is_compatible_with(shape):
            raise ValueError(f"Shapes {self} and {shape} are not compatible")
        if self._extents is None or shape._extents is None:
            return shape if self._extents is None else self
        return TensorShape([a if b is None else b for a, b in zip(self._extents, shape._extents)])

    def with_rank(self, rank: int) -> TensorShape:
        """Raises ValueError for another rank."""
        return self.merge_with([None] * rank)

    def concatenate(self, other: object) -> TensorShape:
        others = TensorShape(other)._extents
        return TensorShape(None if self._extents is None or others is None else self._extents + others)

    def __len__(self) -> int:
        return len(self._known())

    def __bool__(self) -> bool:
        return self._extents is not None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._known() if _has_plain_extents[0] else [_dimension(x) for x in self._known()])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return TensorShape(None if self._extents is None else self._extents[key])
        if self._extents is None:
            return None if _has_plain_extents[0] else _UNKNOWN
        return self._extents[key] if _has_plain_extents[0] else _dimension(self._extents[key])

    def __add__(self, other: object) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._extents == TensorShape(other)._extents
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._extents)

    def __repr__(self) -> str:
        return f"TensorShape({self})"

    def __str__(self) -> str:
        if self._extents is None:
            return "<unknown>"
        inside = ", ".join("?" if x is None else str(x) for x in self._extents)
        return f"({inside},)" if len(self._extents) == 1 else f"({inside})"


def _dimension(extent: int | None) -> Any:
    return _UNKNOWN if extent is None else Dimension(extent)
