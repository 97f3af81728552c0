"""Datasets that give the elements of another in random order.

Elements go through a buffer: each that is given leaves its place to the next of the source, and, once there are no
more, to the last one in the buffer.  Elements that are numbers of rows go through it in blocks, by NumPy, with the same
random numbers and so in the same order as one by one.
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import Any

import numpy as np

from hybridflow.data.pipeline import (
    Elements,
    NextBatch,
    Node,
    Numbers,
    Passing,
    PipelineIterator,
    Reordering,
    State,
    restored_field,
)

_BLOCK = 512  # random numbers drawn at a time
_ROWS = 4096  # numbers of rows shuffled at a time
_counting = threading.Lock()


class Shuffle(Reordering):
    """Elements out of a buffer, in random order.

    The k-th run takes random numbers from a stream of its own, or the same one where ``reshuffle`` is false.
    """

    def __init__(self, source: Node, size: int, seed: tuple[int, ...], reshuffle: bool) -> None:
        self.size, self.seed, self.reshuffle, self.begun = size, seed, reshuffle, 0
        super().__init__(source)

    def over(self, source: Node) -> Node:
        return ShuffledRows(source, self.size, self.seed, self.reshuffle)

    def reordering_iterator(self) -> PipelineIterator:
        return ShuffleRun(self, self.next_seed())

    def next_seed(self) -> list[int]:
        """The seed of the next run."""
        with _counting:
            epoch = self.begun
            self.begun += self.reshuffle
        return [*self.seed, epoch]

    def go_on(self, seed: list[int]) -> None:
        """Let the next run be the one after that of ``seed``, as when its state was taken."""
        with _counting:
            self.seed, self.begun = tuple(seed[:-1]), seed[-1] + self.reshuffle

    def cardinality(self) -> int:
        return self.source.cardinality()


class ShuffleRun(Passing):
    state_fields = ("seed", "drawn", "buffer")

    def __init__(self, node: Shuffle, seed: list[int]) -> None:
        super().__init__(node.source)
        self.node, self.size, self.seed, self.drawn = node, node.size, seed, 0
        self.buffer: list[Any] = []

    def run(self) -> Elements:
        iterator = self.source.run()
        buffer = self.buffer
        buffer.extend(islice(iterator, self.size - len(buffer)))
        full, numbers = len(buffer), self._numbers()
        for element in iterator:
            place = int(next(numbers) * full)
            chosen, buffer[place] = buffer[place], element
            self.drawn += 1
            yield chosen
        while buffer:
            place = int(next(numbers) * len(buffer))
            chosen, buffer[place] = buffer[place], buffer[-1]
            buffer.pop()
            self.drawn += 1
            yield chosen

    def next_batch(self) -> NextBatch:
        take, buffer = self.source.next_batch(), self.buffer
        draw: np.random.Generator | None = None

        def some(count: int) -> list[Any]:
            nonlocal draw
            if draw is None:
                buffer.extend(take(self.size - len(buffer)))
                draw = draws(self.seed, self.drawn)
            batch = take(count)
            out: list[Any] = []
            for place, element in zip((draw.random(len(batch)) * len(buffer)).astype(np.int64).tolist(), batch):
                out.append(buffer[place])
                buffer[place] = element
            if len(out) < count:
                full = len(buffer)
                lengths = np.arange(full, full - min(count - len(out), full), -1)
                for place in (draw.random(len(lengths)) * lengths).astype(np.int64).tolist():
                    out.append(buffer[place])
                    buffer[place] = buffer[-1]
                    buffer.pop()
            self.drawn += len(out)
            return out

        return some

    def _numbers(self) -> Elements:
        """Uniform random numbers in [0, 1), after those that were drawn."""
        draw = draws(self.seed, self.drawn)
        while True:
            yield from draw.random(_BLOCK).tolist()

    def after_restore(self) -> None:
        self.node.go_on(self.seed)


class ShuffledRows(Shuffle):
    """Numbers of rows, shuffled."""

    def reordering_iterator(self) -> PipelineIterator:
        return ShuffledRowsRun(self, self.next_seed())


class ShuffledRowsRun(Passing):
    def __init__(self, node: Shuffle, seed: list[int]) -> None:
        super().__init__(node.source)
        self.node, self.size, self.seed, self.drawn = node, node.size, seed, 0
        self.buffer = np.empty(0, np.int64)
        self.ahead = np.empty(0, np.int64)  # numbers that are shuffled, and
        self.given = 0  # how many of them were given

    def run(self) -> Elements:
        some = self.next_batch()
        while batch := some(1):
            yield batch[0]

    def next_batch(self) -> NextBatch:
        some = self.next_indices()
        return lambda count: some(count).tolist()

    def next_indices(self) -> Numbers:
        take = self.source.next_indices()
        draw: np.random.Generator | None = None

        def some(count: int) -> np.ndarray:
            nonlocal draw
            start = self.given
            out = self.ahead[start : start + count]
            self.given = start + len(out)
            while len(out) < count:
                if draw is None:
                    self.buffer = np.concatenate((self.buffer, take(self.size - len(self.buffer))))
                    draw = draws(self.seed, self.drawn)
                coming = take(_ROWS)
                if not len(coming) and not len(self.buffer):
                    break
                self.ahead = self._block(coming, draw)
                more = self.ahead[: count - len(out)]
                out, self.given = np.concatenate((out, more)) if len(out) else more, len(more)
            return out

        return some

    def _block(self, coming: np.ndarray, draw: np.random.Generator) -> np.ndarray:
        """The next numbers: as many as come, or those in the buffer if none do."""
        full = len(self.buffer)
        if len(coming):
            places = (draw.random(len(coming)) * full).astype(np.int64)
            out = exchanged(self.buffer, places, coming)
        else:
            lengths = np.arange(full, max(full - _ROWS, 0), -1)
            places = (draw.random(len(lengths)) * lengths).astype(np.int64)
            out = drained(self.buffer, places)
            self.buffer = self.buffer[: full - len(places)]
        self.drawn += len(places)
        return out

    def state(self) -> State:
        held = {"buffer": self.buffer.tolist(), "ahead": self.ahead[self.given :].tolist()}
        return {"seed": self.seed, "drawn": self.drawn, **held, **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.seed = restored_field(self.seed, state["seed"])
        self.drawn = restored_field(self.drawn, state["drawn"])
        self.buffer, self.ahead = (np.array(state.get(name, ()), np.int64) for name in ("buffer", "ahead"))
        self.given = 0
        self.node.go_on(self.seed)


def draws(seed: list[int], drawn: int) -> np.random.Generator:
    """Random numbers of a seed, after those that were drawn."""
    bits = np.random.PCG64(seed)
    bits.advance(drawn)
    return np.random.Generator(bits)


def exchanged(buffer: np.ndarray, places: np.ndarray, coming: np.ndarray) -> np.ndarray:
    """What lies at ``places`` of a buffer, one after another, each of which holds one of ``coming`` from then on."""
    visits = np.sort((places << _bits(places)) | np.arange(len(places)))
    return _exchanged(buffer, places, coming, visits)


def drained(buffer: np.ndarray, places: np.ndarray) -> np.ndarray:
    """What lies at ``places``, one after another, each of which holds the last of the buffer from then on, which is
    one shorter then."""
    visits_back, bits = np.arange(len(places)), _bits(places)
    lasts = len(buffer) - 1 - visits_back
    visits = np.sort((places << bits) | visits_back)
    # in the turn before this one that put something where the last one lies now; itself where there is none
    before = np.searchsorted(visits, (lasts << bits) | visits_back) - 1
    position = visits[before]
    origin = np.where((before >= 0) & (position >> bits == lasts), position & ((1 << bits) - 1), visits_back)
    while ((further := origin[origin]) != origin).any():
        origin = further
    return _exchanged(buffer, places, buffer[lasts[origin]], visits)


def _bits(places: np.ndarray) -> int:
    return len(places).bit_length()


def _exchanged(buffer: np.ndarray, places: np.ndarray, coming: np.ndarray, visits: np.ndarray) -> np.ndarray:
    """``visits`` are the places with the turns in which they are looked at, sorted."""
    bits = _bits(places)
    visit, place = visits & ((1 << bits) - 1), visits >> bits
    again = place[1:] == place[:-1]
    out = buffer[places]
    out[visit[1:][again]] = coming[visit[:-1][again]]
    final = np.append(~again, True)
    buffer[place[final]] = coming[visit[final]]
    return out
