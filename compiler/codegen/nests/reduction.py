"""Folding in a fixed order: the loops of reductions.

The order is that of ``ops/evaluation_order.py``; it depends on the shape and the axes alone.  Short partial sums keep
the error small, 64 lanes keep any machine's vector units busy, and superchunks and rows are independent, so threads
can share them without changing a bit.

Folding the identity in changes no bits (it is -0.0 for a float sum), so levels that a shape does not reach are left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from hybridflow.compiler.codegen.core.elements import Elements
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.index.index_expr import ZERO, Index, IndexExpr, variable
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.results import TupleType, parts_of
from hybridflow.compiler.ir.types import Extent, product
from hybridflow.compiler.loops.schedule import LEVELS
from hybridflow.compiler.ops.evaluation_order import CHUNK, LANES, SUPERCHUNK, TERMS
from hybridflow.compiler.ops.fold_rules import FoldRules

State = tuple[Val, ...]
Body = Callable[[Ref, "Val | None"], list[State]]


@dataclass(frozen=True)
class Fold:
    """One reduction: how its states start and combine."""

    node: Node

    @cached_property
    def rules(self) -> FoldRules:
        return FoldRules(self.node.op, [n.type for n in self.node.inputs], self.node.attrs)

    @property
    def identity(self) -> Sequence[tuple[Any, np.dtype]]:
        return self.rules.identity

    def start(self, e: Emitter) -> State:
        return tuple(e.const(value, dtype) for value, dtype in self.identity)

    def combine(self, e: Emitter, a: State, b: State) -> State:
        return self.rules.combine(e, a, b)

    def later(self, e: Emitter, a: State, b: State) -> State:
        return self.rules.later(e, a, b)

    def finish(self, e: Emitter, state: State) -> tuple[Val, ...]:
        """The fold's result, or its results where there are several."""
        dtypes = tuple([part.dtype for part in parts_of(self.node.type)])
        if not isinstance(self.node.type, TupleType):
            return (self.rules.finish(e, state, dtypes[0]),)
        return self.rules.finish_several(e, state, dtypes)

    def lift(self, elements: Elements, full: IndexExpr, within: IndexExpr) -> State:
        """The state of the element at position ``full`` of its space, ``within`` among those that fold together."""
        e = elements.e
        values = [elements.value(n, Index(n.shape, linear=full)) for n in self.node.inputs]
        e.at(self.node)
        return self.rules.lift(e, values, lambda: elements.lanes(within))


@dataclass(frozen=True)
class Sum:
    """The sum of numbers of ``dtype``, for kernels that make the terms themselves."""

    dtype: np.dtype

    @property
    def identity(self) -> Sequence[tuple[Any, np.dtype]]:
        return ((-0.0 if dt.is_float(self.dtype) else 0, self.dtype),)

    def start(self, e: Emitter) -> State:
        return tuple(e.const(value, dtype) for value, dtype in self.identity)

    def combine(self, e: Emitter, a: State, b: State) -> State:
        return (e.add(a[0], b[0]),)

    later = combine


class Accumulation(Protocol):
    """What the loops need to know of a fold: ``Fold`` and ``Sum``."""

    @property
    def identity(self) -> Sequence[tuple[Any, np.dtype]]: ...

    def start(self, e: Emitter) -> State: ...

    def combine(self, e: Emitter, a: State, b: State) -> State: ...

    def later(self, e: Emitter, a: State, b: State) -> State:
        """``combine`` where all elements of ``b`` come after those of ``a``."""
        ...


class Cells:
    """Accumulators in memory: ``slots`` elements for every component of every fold's state."""

    def __init__(
        self, code: KernelBuilder, allocate: Callable[[Any], str], folds: Sequence[Accumulation], slots: Extent
    ) -> None:
        self.code, self.folds = code, folds
        self.pointers = [[(allocate(slots * dtype.itemsize), dtype) for _, dtype in fold.identity] for fold in folds]

    def load(self, at: Ref, mask: Val | None = None) -> list[State]:
        e = self.code.e
        return [tuple(e.load(self.code.at(p, at, d.itemsize), d, mask) for p, d in cells) for cells in self.pointers]

    def store(self, at: Ref, states: list[State], mask: Val | None = None) -> None:
        e = self.code.e
        for cells, state in zip(self.pointers, states):
            for (pointer, dtype), value in zip(cells, state):
                e.store(value, self.code.at(pointer, at, dtype.itemsize), mask)

    def fold_in(self, at: Ref, *terms: list[State]) -> None:
        """States of elements that come after those in the cells, one after another."""
        e, totals = self.code.e, self.load(at)
        for states in terms:
            totals = [f.later(e, old, new) for f, old, new in zip(self.folds, totals, states)]
        self.store(at, totals)


def starts(e: Emitter, folds: Sequence[Accumulation]) -> list[State]:
    return [fold.start(e) for fold in folds]


def combine_all(e: Emitter, folds: Sequence[Accumulation], a: list[State], b: list[State]) -> list[State]:
    return [fold.combine(e, x, y) for fold, x, y in zip(folds, a, b)]


def pack_states(states: Sequence[Sequence[State]]) -> list[Val]:
    """The values of states of all folds, as a loop carries them."""
    return [v for of_folds in states for state in of_folds for v in state]


def unpack_states(folds: Sequence[Accumulation], values: Sequence[Val]) -> list[list[State]]:
    """The states that were packed."""
    remainder, result = iter(values), []
    for _ in range(len(values) // sum(len(fold.identity) for fold in folds)):
        result.append([tuple(next(remainder) for _ in fold.identity) for fold in folds])
    return result


def fold_lanes(e: Emitter, folds: Sequence[Accumulation], lanes: list[list[State]]) -> list[State]:
    """The states of the first lanes of 64, at least one, folded: lane l with lane l + 32, then + 16, ... + 1.  The
    lanes that are missing hold the identity."""
    half = LANES // 2
    while half:
        paired = [combine_all(e, folds, a, b) for a, b in zip(lanes[:half], lanes[half:])]
        lanes = [*paired, *lanes[len(paired) : half]]
        half //= 2
    return lanes[0]


def only_active(e: Emitter, folds: Sequence[Accumulation], states: list[State], mask: Val | None) -> list[State]:
    """The states, with the identity in the lanes that the mask switches off."""
    if mask is None:
        return states
    return [tuple(e.select(mask, v, s) for v, s in zip(state, fold.start(e))) for fold, state in zip(folds, states)]


PART = 256  # elements of a chunk that are read in a turn, before those of the next one
STRAIGHT = 4  # elements a lane from which on there is a loop


class LaneFold:
    """Folds a run of ``extent`` elements in lanes; ``body(i, mask)`` gives the states of elements i, i + 1, ...

    ``light`` says that the body is short, so that repeating it for each of the 64 / width vectors of a step pays.  Of
    others a turn has so many ``vectors`` as one wide one, whose instructions overlap.
    ``prepare(begin, end)`` is done before the elements of a chunk are asked for.
    So many ``streams``, chunks of a long run, are read in turn, a part of each at a time.
    """

    def __init__(
        self,
        code: KernelBuilder,
        allocate: Callable[[int], str],
        folds: Sequence[Accumulation],
        extent: int | None,
        light: bool,
        prepare: Callable[[Ref, Ref], None] | None = None,
        vectors: int = 1,
        streams: int = 1,
    ) -> None:
        self.code, self.folds, self.light, self.prepare, self.vectors = code, folds, light, prepare, vectors
        self.known = extent
        self.short = extent is not None and extent <= (CHUNK if light and prepare is None else LANES)
        if not self.short:
            self.many_chunks = extent is None or extent > CHUNK
            self.streams = streams if light and prepare is None and self.many_chunks else 1
            self.lanes = Cells(code, allocate, folds, LANES * self.streams)
            self.many_superchunks = extent is None or extent > SUPERCHUNK
            self.super_lanes = Cells(code, allocate, folds, LANES) if self.many_chunks else self.lanes
            self.total = Cells(code, allocate, folds, 1) if self.many_superchunks else None

    def run(self, extent: Ref, body: Body) -> list[State]:
        """Scalar states of the whole run."""
        if self.short:
            return self._short(int(extent), body)
        code, e = self.code, self.code.e
        if self.total is None:
            self._superchunk(0, extent, body)
            return self._tree(self.super_lanes)
        with code.width(1):
            self.total.store(0, starts(e, self.folds))
        with code.loop(0, extent, SUPERCHUNK) as loop:
            self._superchunk(loop.index, code.min(code.add(loop.index, SUPERCHUNK), extent), body)
            state = self._tree(self.super_lanes)
            with code.width(1):
                self.total.fold_in(0, state)
        with code.width(1):
            return self.total.load(0)

    def _short(self, extent: int, body: Body) -> list[State]:
        """At most a chunk, whose lanes are in registers all the time."""
        code, e = self.code, self.code.e
        vectors: list[list[State]] = []
        done = extent // LANES * LANES if extent >= STRAIGHT * LANES else 0
        if done:
            vectors = self._steps([starts(e, self.folds) for _ in range(0, LANES, e.width)], 0, done, body)
        for first in range(done, extent, e.width):
            mask = None if first + e.width <= extent else code.lanes_below(extent - first)
            states = only_active(e, self.folds, body(first, mask), mask)
            k = first % LANES // e.width
            vectors[k : k + 1] = [self._later(vectors[k], states) if k < len(vectors) else states]
        return self._fold_vectors(vectors) if vectors else self._scalar_starts()

    def _later(self, old: list[State], new: list[State]) -> list[State]:
        """The states of lanes after those of elements that follow."""
        return [fold.later(self.code.e, *states) for fold, *states in zip(self.folds, old, new)]

    def _scalar_starts(self) -> list[State]:
        with self.code.width(1):
            return starts(self.code.e, self.folds)

    def _superchunk(self, begin: Ref, end: Ref, body: Body) -> None:
        if not self.many_chunks:
            self._chunk(begin, end, body)
            return
        code, e = self.code, self.code.e
        self._clear(self.super_lanes)
        if self.streams > 1:
            with code.loop(begin, end, self.streams * CHUNK) as loop:
                self._sequential_chunks(loop.index, code.min(code.add(loop.index, self.streams * CHUNK), end), body)
            return
        with code.loop(begin, end, CHUNK) as loop:
            lanes, at = self._lanes_of(loop.index, end, body)
            for lane in range(0, LANES, e.width):
                self.super_lanes.fold_in(lane, lanes.load(code.add(at, lane)))

    def _sequential_chunks(self, begin: Ref, end: Ref, body: Body) -> None:
        """Elements [begin, end), chunks of which lanes go to those of the superchunk: a part of each chunk in turn,
        since memory gives more when it is read in several places."""
        code, e = self.code, self.code.e
        count = code.div(code.add(code.sub(end, begin), CHUNK - 1), CHUNK)
        with code.loop(0, count) as chunk:
            self._clear(self.lanes, code.mul(chunk.index, LANES))
        with code.loop(0, CHUNK, PART) as part, code.loop(0, count) as chunk:
            first = code.add(code.add(begin, code.mul(chunk.index, CHUNK)), part.index)
            length = code.min(code.max(code.sub(end, first), 0), PART)
            places = [code.add(code.mul(chunk.index, LANES), lane) for lane in range(0, LANES, e.width)]
            before = [self.lanes.load(place) for place in places]
            after = self._steps(before, first, code.add(first, self._whole_steps(length)), body)
            for place, states in zip(places, after):
                self.lanes.store(place, states)
        if self.known is None or self.known % LANES:
            last = code.sub(count, 1)  # the only chunk that may have a rest
            whole = code.add(begin, self._whole_steps(code.sub(end, begin)))
            self._vectors(code.add(begin, code.mul(last, CHUNK)), whole, end, body, code.mul(last, LANES))
        with code.loop(0, count) as chunk:
            for lane in range(0, LANES, e.width):
                self.super_lanes.fold_in(lane, self.lanes.load(code.add(code.mul(chunk.index, LANES), lane)))

    def _steps(self, lanes: list[list[State]], begin: Ref, end: Ref, body: Body) -> list[list[State]]:
        """The states of vectors of lanes after whole steps of 64 elements."""
        code, firsts = self.code, range(0, LANES, self.code.e.width)
        with code.loop(begin, end, LANES, pack_states(lanes)) as loop:
            states = unpack_states(self.folds, loop.carried)
            transposed = [self._later(old, body(code.add(loop.index, k), None)) for k, old in zip(firsts, states)]
            loop.next = pack_states(transposed)
        return unpack_states(self.folds, loop.carried)

    def _lanes_of(self, begin: Ref, end: Ref, body: Body) -> tuple[Cells, Ref]:
        """The cells that hold the lanes of the chunk that begins there, and where in them."""
        self._chunk(begin, self.code.min(self.code.add(begin, CHUNK), end), body)
        return self.lanes, 0

    def store_chunk(self, cells: Cells, at: Ref, begin: Ref, end: Ref, body: Body) -> None:
        """Put the lanes of one chunk into cells."""
        self._chunk(begin, end, body)
        for lane in range(0, LANES, self.code.e.width):
            cells.store(self.code.add(at, lane), self.lanes.load(lane))

    def superchunk(self, begin: Ref, end: Ref, body: Body) -> list[State]:
        """Scalar states of one superchunk."""
        self._superchunk(begin, end, body)
        return self._tree(self.super_lanes)

    def _clear(self, cells: Cells, at: Ref = 0) -> None:
        e = self.code.e
        for lane in range(0, LANES, e.width):
            cells.store(self.code.add(at, lane), starts(e, self.folds))

    def _chunk(self, begin: Ref, end: Ref, body: Body) -> None:
        """Elements [begin, end), at most CHUNK, into the lanes."""
        code, e = self.code, self.code.e
        if self.prepare is not None:
            self.prepare(begin, end)
        if not self.light:
            self._clear(self.lanes)
            remainder = self._wide_vectors(begin, end, body)
            if self.vectors == 1 or self.known is None or self.known % (self.vectors * e.width):
                self._vectors(begin, remainder, end, body)
            return
        whole = code.add(begin, self._whole_steps(code.sub(end, begin)))
        lanes = range(0, LANES, e.width)
        for lane, ended in zip(lanes, self._steps([starts(e, self.folds) for _ in lanes], begin, whole, body)):
            self.lanes.store(lane, ended)
        if self.known is None or self.known % LANES:
            self._vectors(begin, whole, end, body)

    def _whole_steps(self, count: Ref) -> Ref:
        code = self.code
        return code.mul(code.div(count, LANES), LANES)

    def _wide_vectors(self, begin: Ref, end: Ref, body: Body) -> Ref:
        """Several vectors of a chunk at a time, the lanes kept in memory; where those that are left begin."""
        code, wide = self.code, self.code.e.width * self.vectors
        if self.vectors == 1:
            return begin
        whole = code.add(begin, code.mul(code.div(code.sub(end, begin), wide), wide))
        with code.loop(begin, whole, wide) as loop, code.width(wide):
            self.lanes.fold_in(code.rem(code.sub(loop.index, begin), LANES), body(loop.index, None))
        return whole

    def _vectors(self, begin: Ref, first: Ref, end: Ref, body: Body, at: Ref = 0) -> None:
        """Elements [first, end) of the chunk that begins there, a vector at a time, the lanes kept in memory."""
        code, e = self.code, self.code.e

        def lane(element: Ref) -> Ref:
            return code.add(at, code.rem(code.sub(element, begin), LANES))

        if self.light and e.width > 1 and not e.target.masked:  # masks are dear
            whole = code.add(first, code.mul(code.div(code.sub(end, first), e.width), e.width))
            with code.loop(first, whole, e.width) as loop:
                self.lanes.fold_in(lane(loop.index), body(loop.index, None))
            first = whole
        with code.loop(first, end, e.width) as loop:
            mask = code.lanes_below(code.sub(end, loop.index)) if e.width > 1 else None
            states = only_active(e, self.folds, body(loop.index, mask), mask)
            self.lanes.fold_in(lane(loop.index), states)

    def _tree(self, cells: Cells) -> list[State]:
        e = self.code.e
        return self._fold_vectors([cells.load(lane) for lane in range(0, LANES, e.width)])

    def _fold_vectors(self, vectors: list[list[State]]) -> list[State]:
        """Lane l with lane l + 32, then + 16, ... down to one; vectors that hold only identities may be missing."""
        code, e = self.code, self.code.e
        half = LANES // 2 // e.width
        while half >= 1:
            for k in range(half):
                if k + half < len(vectors):
                    vectors[k] = combine_all(e, self.folds, vectors[k], vectors[k + half])
            vectors = vectors[:half]
            half //= 2
        states, width = vectors[0], e.width
        while width > 1:
            width //= 2
            lower, upper = ([tuple(_part(e, v, first, width) for v in s) for s in states] for first in (0, width))
            with code.width(width):
                states = combine_all(e, self.folds, lower, upper)
        return states


class StoredLanes(LaneFold):
    """Folds chunks whose lanes lie in ``cells``, those of chunk k from ``first + 64 * k`` on."""

    def __init__(
        self,
        code: KernelBuilder,
        allocate: Callable[[int], str],
        folds: Sequence[Fold],
        extent: int | None,
        cells: Cells,
        first: Ref,
    ) -> None:
        super().__init__(code, allocate, folds, extent, light=False)
        self.cells, self.first = cells, first

    def _lanes_of(self, begin: Ref, end: Ref, body: Body) -> tuple[Cells, Ref]:
        return self.cells, self.code.add(self.first, self.code.div(begin, CHUNK // LANES))


def nothing(i: Ref, mask: Val | None) -> list[State]:
    """The body for lanes that are stored."""
    raise AssertionError("the elements of stored lanes are not computed again")


def _part(e: Emitter, value: Val, first: int, width: int) -> Val:
    """Lanes first, first + 1, ... of a vector, ``width`` of them."""
    return e.extract(value, first) if width == 1 else e.shuffle(value, None, range(first, first + width))


def half_of(e: Emitter, value: Val, number: int) -> Val:
    """The lower or the upper half of a vector's lanes."""
    return _part(e, value, number * (value.width // 2), value.width // 2)


class Cascade:
    """Folds a sequence of ``terms`` states, scalars or (``slots`` > 1) vectors of them, kept in memory."""

    def __init__(
        self,
        code: KernelBuilder,
        allocate: Callable[[int], str],
        folds: Sequence[Accumulation],
        depth: int,
        slots: int = 1,
    ) -> None:
        """``depth`` levels are enough for the terms (see ``depth_for``)."""
        self.code, self.folds = code, folds
        self.levels = [Cells(code, allocate, folds, slots) for _ in range(depth)]

    def start(self, positions: Callable[[Callable[[Ref], None]], None]) -> None:
        """``positions(action)`` runs ``action`` at each slot, a vector at a time."""
        e = self.code.e

        def begin(at: Ref) -> None:
            for cells in self.levels:
                cells.store(at, starts(e, self.folds))

        positions(begin)

    def add(self, at: Ref, *terms: list[State]) -> None:
        """Terms of one turn: between two of them no level is full."""
        self.levels[0].fold_in(at, *terms)

    def carry(self, count: Ref, positions: Callable[[Callable[[Ref], None]], None]) -> None:
        """After ``count`` terms: pass on the levels that are full."""
        code = self.code
        period = 1
        for low, high in zip(self.levels, self.levels[1:]):
            period *= TERMS
            with code.when(code.compare("eq", code.rem(count, period), 0)):
                positions(lambda at, low=low, high=high: self._move(low, high, at))  # type: ignore[misc]

    def finish(self, positions: Callable[[Callable[[Ref], None]], None]) -> Cells:
        """Pass on what is left; the cells that hold the totals."""
        for low, high in zip(self.levels, self.levels[1:]):
            positions(lambda at, low=low, high=high: self._move(low, high, at))  # type: ignore[misc]
        return self.levels[-1]

    def _move(self, low: Cells, high: Cells, at: Ref) -> None:
        high.fold_in(at, low.load(at))
        low.store(at, starts(self.code.e, self.folds))


def depth_for(terms: int | None) -> int:
    """The levels of a cascade that so many terms reach; None: any number of them."""
    if terms is None or terms > TERMS * TERMS:
        return LEVELS
    return 1 if terms <= TERMS else 2


def known_product(extents: Sequence[Extent]) -> int | None:
    size = product(tuple(extents))
    return size if isinstance(size, int) else None


def position_within(space: Space) -> IndexExpr:
    """The position among the elements that a result folds together."""
    position = ZERO
    for var in space.folded:
        position = position * var.extent + variable(var)
    return position
