"""Datasets that give the elements of another in another order, some of them, or several times."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from hybridflow.data import elements
from hybridflow.data.pipeline import (
    INFINITE,
    UNKNOWN,
    Elements,
    NextBatch,
    Node,
    Numbers,
    Passing,
    PipelineIterator,
    Reordering,
    State,
    restored_field,
    skip,
)
from hybridflow.errors import ArgumentError


class Take(Reordering):
    """The first elements; all of them where ``count`` is negative."""

    def __init__(self, source: Node, count: int) -> None:
        self.count = count
        super().__init__(source)

    def over(self, source: Node) -> Node:
        return Take(source, self.count)

    def reordering_iterator(self) -> PipelineIterator:
        return TakeRun(self.source, self.count)

    def cardinality(self) -> int:
        length = self.source.cardinality()
        if self.count < 0 or length == UNKNOWN:
            return length
        return self.count if length == INFINITE else min(self.count, length)


class TakeRun(Passing):
    state_fields = ("left",)

    def __init__(self, source: Node, count: int) -> None:
        super().__init__(source)
        self.left = count

    def run(self) -> Elements:
        if not self.left:
            return
        for element in self.source.run():
            self.left -= 1
            yield element
            if not self.left:
                return

    def next_batch(self) -> NextBatch:
        take = self.source.next_batch()

        def some(count: int) -> list[Any]:
            result = take(count if self.left < 0 else min(count, self.left)) if self.left else []
            self.left -= len(result)
            return result

        return some


class Skip(Reordering):
    """What comes after the first elements; nothing where ``count`` is negative."""

    def __init__(self, source: Node, count: int) -> None:
        self.count = count
        super().__init__(source)

    def over(self, source: Node) -> Node:
        return Skip(source, self.count)

    def reordering_iterator(self) -> PipelineIterator:
        return SkipRun(self.source, self.count)

    def cardinality(self) -> int:
        length = self.source.cardinality()
        if self.count < 0:
            return 0
        return length if length < 0 else max(0, length - self.count)


class SkipRun(Passing):
    state_fields = ("left",)

    def __init__(self, source: Node, count: int) -> None:
        super().__init__(source)
        self.left = count

    def run(self) -> Elements:
        if self.left < 0:
            return
        iterator = self.source.run()
        skip(iterator, self.left)
        self.left = 0
        yield from iterator


class Shard(Reordering):
    """Every ``count``-th element, from the ``index``-th on."""

    def __init__(self, source: Node, count: int, index: int) -> None:
        self.count, self.index = count, index
        super().__init__(source)

    def over(self, source: Node) -> Node:
        return Shard(source, self.count, self.index)

    def reordering_iterator(self) -> PipelineIterator:
        return ShardRun(self.source, self.count, self.index)

    def cardinality(self) -> int:
        length = self.source.cardinality()
        return length if length < 0 else len(range(self.index, length, self.count))


class ShardRun(Passing):
    state_fields = ("next",)

    def __init__(self, source: Node, count: int, index: int) -> None:
        super().__init__(source)
        self.count, self.next = count, index  # how many elements come before the next one

    def run(self) -> Elements:
        iterator = self.source.run()
        while True:
            for element in islice(iterator, self.next, self.next + 1):
                self.next = self.count - 1
                yield element
                break
            else:
                return


class Repeat(Reordering):
    """All elements again and again: ``count`` times, or for ever where it is negative."""

    def __init__(self, source: Node, count: int) -> None:
        self.count = count
        super().__init__(source)

    def over(self, source: Node) -> Node:
        return Repeat(source, self.count)

    def reordering_iterator(self) -> PipelineIterator:
        return RepeatRun(self.source, self.count)

    def cardinality(self) -> int:
        length = self.source.cardinality()
        if self.count < 0:
            return INFINITE if length else 0
        return 0 if not self.count else length if length < 0 else length * self.count


class RepeatRun(PipelineIterator):
    def __init__(self, node: Node, count: int) -> None:
        self.node, self.left = node, count
        self.source: PipelineIterator | None = None  # made when it is needed: runs of shuffled datasets are counted

    def run(self) -> Elements:
        while self.left:
            self.source = self.source or self.node.runner()
            some = False
            for element in self.source.run():
                some = True
                yield element
            if not some and self.left < 0 and not self.take_resumed():
                return  # nothing, for ever
            self.source = None
            self.left -= 1

    def next_batch(self) -> NextBatch:
        return self._repetitions(lambda source: source.next_batch(), list.__add__, [])

    def next_indices(self) -> Numbers:
        return self._repetitions(
            lambda source: source.next_indices(), lambda a, b: np.concatenate((a, b)), np.empty(0, np.int64)
        )

    def _repetitions(
        self, taker_of: Callable[[PipelineIterator], Any], together: Callable[[Any, Any], Any], none: Any
    ) -> Callable[..., Any]:
        """``taker_of`` each run of the source in its turn as one."""
        take: Any = None
        some = over = False  # elements came in this round; there are no more

        def next_ones(count: int) -> Any:
            nonlocal take, some, over
            out = none
            while self.left and len(out) < count and not over:
                self.source = self.source or self.node.runner()
                take = take or taker_of(self.source)
                more = take(count - len(out))
                some = some or len(more) > 0
                out = together(out, more) if len(out) else more
                if len(out) < count:
                    over = not some and self.left < 0 and not self.take_resumed()  # nothing, for ever
                    if not over:
                        self.source, take, some = None, None, False
                        self.left -= 1
            return out

        return next_ones

    @property
    def is_nonblocking(self) -> bool:
        return self.source is not None and self.source.is_nonblocking

    @property
    def may_move(self) -> bool:
        return self.source is not None and self.source.may_move

    def take_resumed(self) -> bool:
        """Whether this round began with a state, so that an empty one may be the end of one that was not."""
        was, self._resumed = self._resumed, False
        return was

    _resumed = False

    def state(self) -> State:
        if self.left and self.source is None:
            self.source = self.node.runner()  # from now on it is known how it is shuffled
        return {"left": self.left, "source": None if self.source is None else self.source.state()}

    def restore(self, state: State) -> None:
        self.left = restored_field(self.left, state["left"])
        if state["source"] is not None:
            self.source = self.node.runner()
            self.source.restore(state["source"])
            self._resumed = True


class Concatenate(Node):
    """The elements of one, then those of another."""

    def __init__(self, parts: list[Node]) -> None:
        self.parts = parts

    def runner(self) -> PipelineIterator:
        return ConcatenateRun(self.parts)

    def spec(self) -> Any:
        return elements.common([part.spec() for part in self.parts], "Dataset.concatenate")

    def cardinality(self) -> int:
        cardinalities = [part.cardinality() for part in self.parts]
        if INFINITE in cardinalities:
            return INFINITE
        return UNKNOWN if UNKNOWN in cardinalities else sum(cardinalities)


class ConcatenateRun(PipelineIterator):
    def __init__(self, parts: list[Node]) -> None:
        self.parts, self.part = parts, 0
        self.source = parts[0].runner()

    def run(self) -> Elements:
        while True:
            yield from self.source.run()
            if self.part + 1 == len(self.parts):
                return
            self.part += 1
            self.source = self.parts[self.part].runner()

    def state(self) -> State:
        return {"part": self.part, "source": self.source.state()}

    def restore(self, state: State) -> None:
        self.part = restored_field(self.part, state["part"])
        self.source = self.parts[self.part].runner()
        self.source.restore(state["source"])


class Counted(Node):
    """The elements, of which there must be ``count``."""

    def __init__(self, source: Node, count: int) -> None:
        self.source, self.count = source, count

    def runner(self) -> PipelineIterator:
        return CountedRun(self)

    def spec(self) -> Any:
        return self.source.spec()

    def cardinality(self) -> int:
        return self.count


class CountedRun(Passing):
    state_fields = ("given",)

    def __init__(self, node: Counted) -> None:
        super().__init__(node.source)
        self.count, self.given = node.count, 0

    def run(self) -> Elements:
        for element in self.source.run():
            if self.given == self.count:
                raise self._wrong("there are more elements")
            self.given += 1
            yield element
        if self.count != UNKNOWN and self.given != self.count:
            raise self._wrong(f"there are {self.given} elements")

    def _wrong(self, text: str) -> ArgumentError:
        wanted = "infinitely many" if self.count == INFINITE else str(self.count)
        return ArgumentError("Dataset.assert_cardinality", f"{text} where {wanted} were promised.")


class Cache(Node):
    """Elements that are kept from the first complete run on."""

    def __init__(self, source: Node) -> None:
        self.source = source
        self.kept: list[Any] | None = None

    def runner(self) -> PipelineIterator:
        return CacheRun(self)

    def spec(self) -> Any:
        return self.source.spec()

    def cardinality(self) -> int:
        return self.source.cardinality()

    def rest(self) -> int:
        return self.source.rest()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "kept": None}


class CacheRun(PipelineIterator):
    """A run that fills a list, where there is none yet, or reads it."""

    def __init__(self, node: Cache) -> None:
        self.node, self.position = node, 0
        self.kept = node.kept or []
        self.source = None if node.kept is not None else node.source.runner()

    @property
    def is_nonblocking(self) -> bool:
        return self.source is None

    @property
    def may_move(self) -> bool:
        return self.source is None or self.source.may_move

    def run(self) -> Elements:
        while self.position < len(self.kept):
            self.position += 1
            yield elements.fresh(self.kept[self.position - 1])
        if self.source is None:
            return
        for element in self.source.run():
            self.kept.append(element)
            self.position += 1
            yield elements.fresh(element)
        self.source = None
        self.node.kept = self.kept

    def state(self) -> State:
        source = None if self.source is None else self.source.state()
        return {"position": self.position, "kept": list(self.kept), "source": source}

    def restore(self, state: State) -> None:
        self.position = restored_field(self.position, state["position"])
        self.kept = restored_field(self.kept, state["kept"])
        if state["source"] is None:
            self.source = None
        else:
            self.source = self.node.source.runner()
            self.source.restore(state["source"])
