"""Context managers of generators for code that runs while functions of the user's are traced.

``contextlib``'s own classes run instrumented code then, where the user's functions use them, too: what they do would be
taken for something that the user's function does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Block(Generic[T]):
    """What ``with`` takes: runs a generator to its ``yield``, and on when the block is left."""

    __slots__ = ("_generator",)

    def __init__(self, generator: Generator[T, None, None]) -> None:
        self._generator = generator

    def __enter__(self) -> T:
        return next(self._generator)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            next(self._generator, None)
            return
        try:
            self._generator.throw(error)
        except BaseException as raised:
            if raised is not error and not (isinstance(error, StopIteration) and raised.__cause__ is error):
                raise  # a generator makes a RuntimeError of a StopIteration
            error.__traceback__ = at


class Nested:
    """One of the blocks of a kind that a thread is in: ``outer`` is the one around it.

    An interrupt that comes as a block is left may leave its generator to the collector, which ends it when the thread
    is in another block long since: what it would put back then is that one's.
    """

    __slots__ = ("outer",)

    def __init__(self, outer: Nested | None) -> None:
        self.outer = outer

    def is_open(self, innermost: Nested | None) -> bool:
        """Whether the thread that is in ``innermost`` is in this block."""
        while innermost is not None and innermost is not self:
            innermost = innermost.outer
        return innermost is self


def block(function: Callable[P, Iterator[T]]) -> Callable[P, Block[T]]:
    """As ``contextlib.contextmanager``, of a generator function that swallows no exceptions."""

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> Block[T]:
        generator: Any = function(*args, **kwargs)
        return Block(generator)

    return make
