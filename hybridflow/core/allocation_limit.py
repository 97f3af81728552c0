"""What may be made while a model is read from a file: arrays of the shapes that the file has, and little else.

A configuration is a few letters, and a number in it may ask for more memory than there is.  So whoever makes a weight
asks first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from hybridflow.errors import CheckpointError

_BESIDE = 1 << 22  # elements that may be made beside the arrays of the file
_TIMES = 4  # so often may an array be made that the file has once, as where a model is built on the way


class _Room:
    def __init__(self, shapes: Iterable[Sequence[int]]) -> None:
        self.left = Counter(tuple(shape) for shape in shapes)
        for shape in self.left:
            self.left[shape] *= _TIMES
        self.beside = _BESIDE

    def take(self, stage: str, shape: tuple[int, ...]) -> None:
        if self.left[shape] > 0:
            self.left[shape] -= 1
            return
        self.beside -= math.prod(shape)
        if self.beside < 0:
            raise CheckpointError(stage, f"an array of the shape {shape} is to be made, and the file has none.")


_room: ContextVar[_Room | None] = ContextVar("hybridflow.room", default=None)


@contextmanager
def room_for(shapes: Iterable[Sequence[int]]) -> Iterator[None]:
    """Within this, arrays of these shapes may be made, and small ones."""
    token = _room.set(_Room(shapes))
    try:
        yield
    finally:
        _room.reset(token)


def take_room(stage: str, shape: Sequence[int]) -> None:
    """Before an array is made whose shape a configuration says.  Raises CheckpointError where a file is read that has
    no such array."""
    room = _room.get()
    if room is not None:
        room.take(stage, tuple(int(extent) for extent in shape))
