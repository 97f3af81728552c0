"""Loop-nest kernels: a cluster's loops around the elements of its nodes.

Three forms, told apart by the cluster's space:

map      nothing is reduced: loops over all axes, vectors along the last
rows     the last loop is reduced: for every row the passes ("stages") that its reductions need, vectors along the row;
         a statistic of the row is a scalar
columns  the last loop is kept: for every tile of columns the passes over the reduced loops, vectors across columns;
         a statistic is an element of the tile

A stage computes what only needs results of earlier stages.  A value that two stages need is computed twice when that is
cheap, else it is kept: in the node's own buffer when it has one, in scratch memory of one row otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from hybridflow.compiler.codegen.cost import instructions
from hybridflow.compiler.codegen.elements import Elements, Place
from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.reduction import Cascade, Fold, LaneFold, State
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.tiles import Tile, Turned, turned_reads
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Extent, factors
from hybridflow.compiler.loops.index import ZERO, Index, Ix, LoopVar, variable
from hybridflow.compiler.loops.kernel import CHEAP, Kernel, accesses, between, loops_of
from hybridflow.compiler.loops.operands import reads_of
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.program import Size

TILE = 2048  # columns whose accumulators stay in the first-level cache together
BUSY = 16  # instructions from which on a body waits for arithmetic rather than for memory
LONG = 800  # instructions of a loop's body that are compiled in about 15 ms
NESTED = 32  # nodes of a kernel that may wait for each other
LIGHT = 48  # instructions of a body that may be repeated for each vector of a reduction's step


@dataclass
class Stages:
    """The passes of a reduced cluster.  ``first[n]`` is the pass in which a node of the full space can be computed,
    ``ready[n]`` the first pass that can use a row's value."""

    first: dict[Node, int]
    ready: dict[Node, int]
    count: int


class Kept(NamedTuple):
    """A value that is kept for later stages: where it is computed, and the scratch memory of a row that holds it."""

    node: Node
    position: Ix
    pointer: str


class Nest:
    """Writes one kernel.  ``outputs`` gives the pointer of each root, ``inputs`` of each input."""

    def __init__(
        self, e: Emitter, code: Code, kernel: Kernel, is_leaf: Callable[[Node], bool], pointers: dict[Node, str]
    ) -> None:
        self.e, self.code, self.kernel, self.is_leaf = e, code, kernel, is_leaf
        self.space = loops_of(kernel, is_leaf)
        self.rows = kernel.cluster.rows
        self.pointers = pointers
        self.counters: dict[LoopVar, Ref] = {}
        self.fixed: dict[LoopVar, Ref] = {}  # loops of which this call runs one turn, and which
        self.given: dict[Node, Val] = {}
        self.places: dict[Node, Place] = {n: Place(pointers[n]) for n in kernel.inputs}
        self.only_at: dict[Node, Ix] = {}  # of a node that is computed at a single position, which
        self.sequences: dict[tuple[Node, ...], list[Node]] = {}
        self.allocas: list[str] = []
        self.scratch: list[Size] = []
        self.width = self._width()

    # ---- set-up

    def _width(self) -> int:
        """Lanes: those of four-byte elements unless everything is wider, and no more than the last loop has."""
        bits = 64 if all(n.dtype.itemsize == 8 for n in (*self.kernel.nodes, *self.kernel.inputs)) else 32
        width = self.e.target.lanes(bits)
        last = self.space.vars[-1].extent if self.space.vars else 1
        while isinstance(last, int) and width > 1 and width // 2 >= last:
            width //= 2
        return width

    def write(self) -> None:
        self.e.width = 1
        if self._is_gpu:
            self._fix_kept_loops()
        if not self.space.has_reduction:
            self._map()
        elif self.space.reduced[-1]:
            self._rows()
        else:
            self._columns()
        self.e.lines[0:0] = self.allocas  # in the entry block, so that the stack does not grow in a loop

    @property
    def units(self) -> tuple[Extent, ...]:
        """The extents of the loops that [begin, end) cuts: of the outermost kept one, on a GPU of all kept ones."""
        return tuple(v.extent for v in (self.space.kept if self._is_gpu else self.space.kept[:1]))

    @property
    def _is_gpu(self) -> bool:
        return self.e.target.kind == "cuda"

    def _fix_kept_loops(self) -> None:
        """A thread of a GPU has a single unit: one turn of all kept loops."""
        rest: Ref = "%begin"
        for var in reversed(self.space.kept[1:]):
            extent = self.code.extent(var.extent)
            self.fixed[var] = self.code.rem(rest, extent)
            rest = self.code.div(rest, extent)
        if self._outer is not None:
            self.fixed[self._outer] = rest

    @property
    def _outer(self) -> LoopVar | None:
        kept = self.space.kept
        return kept[0] if kept else None

    @property
    def grain(self) -> int:
        """Where cutting that loop costs no partial vectors."""
        if self._outer is not None and self._outer is self.space.vars[-1]:
            return self.width if not self.space.has_reduction else TILE
        return 1

    def _allocate(self, nbytes: int) -> str:
        name = self.e.fresh("cells")
        self.allocas.append(f"  {name} = alloca [{nbytes} x i8], align 64")
        return name

    def _elements(self, lane: LoopVar | None, mask: Val | None = None) -> Elements:
        return Elements(self.code, self.counters, lane, self.places, self.given, mask)

    def _bounds(self, var: LoopVar) -> tuple[Ref, Ref]:
        """The part of a loop that this call runs: the kernel's share of the outermost kept loop."""
        if var in self.fixed:
            return self.fixed[var], self.code.add(self.fixed[var], 1)
        return ("%begin", "%end") if var is self._outer else (0, self.code.extent(var.extent))

    @contextmanager
    def _loops(self, vars: Sequence[LoopVar]) -> Iterator[None]:
        with ExitStack() as stack:
            for var in vars:
                start, stop = self._bounds(var)
                self.counters[var] = stack.enter_context(self.code.loop(start, stop)).index
            yield

    def _vector_loop(self, var: LoopVar, body: Callable[[Val | None], None]) -> None:
        """``body(mask)`` for each vector along ``var``."""
        start, stop = self._bounds(var)

        def at(i: Ref, mask: Val | None) -> None:
            self.counters[var] = i
            body(mask)

        width = self.width * self._interleaved(var)
        exact = isinstance(var.extent, int) and var.extent % width == 0
        self.code.vector_loop(start, stop, width, at, exact, self.width)

    def _interleaved(self, var: LoopVar) -> int:
        """How many vectors a turn of a map handles: instructions of one element wait for each other, those of several
        vectors overlap.  Fewer where the body is long, since code generation takes time in proportion."""
        if self.space.has_reduction or self.width == 1:
            return 1
        work = self._work(self.kernel.roots)
        if not isinstance(var.extent, int):
            return 2 if BUSY <= work <= LONG // 2 else 1
        vectors = 1
        while vectors < 4 and 2 * vectors * work <= LONG and 2 * vectors * self.width <= var.extent:
            vectors *= 2
        return vectors

    def _compute(self, elements: Elements, wanted: Sequence[Node]) -> None:
        """Compute what the wanted values are made of, one after the other.  Left to the rules of ops, which ask for
        their inputs, calls would nest as deep as the kernel is long."""
        if len(self.kernel.nodes) <= NESTED:
            return
        key = tuple(wanted)
        if key not in self.sequences:
            known = {*self.places, *self.given, *elements.given, *self.rows}
            self.sequences[key] = between(self.kernel, wanted, self.space.full, known, self.is_leaf)
        for node in self.sequences[key]:
            elements.value(node, Index(node.shape, linear=self.space.full))

    def _store_roots(self, elements: Elements, roots: Sequence[Node], position: Ix) -> None:
        """Compute all, then store all: a root may be written over what another one reads."""
        self._compute(elements, roots)
        values = [elements.value(root, Index(root.shape, linear=position)) for root in roots]
        for root, value in zip(roots, values):
            elements.store(value, self.pointers[root], position)

    # ---- map

    def _map(self) -> None:
        space, roots = self.space, self.kernel.roots
        if not space.vars:
            self._store_roots(self._elements(None), roots, ZERO)
            return
        last = space.vars[-1]
        turned = turned_reads(space, accesses(self.kernel, space, self.is_leaf).of_input, self.width)
        if turned is not None:
            self._map_in_tiles(turned)
            return
        with self._loops(space.vars[:-1]):
            self._vector_loop(last, lambda mask: self._store_roots(self._elements(last, mask), roots, space.full))

    def _map_in_tiles(self, turned: Turned) -> None:
        """A map over square tiles of its last loop and the one along which the turned inputs lie."""
        code, space, roots, width = self.code, self.space, self.kernel.roots, self.width
        across, last = turned.across, space.vars[-1]
        tile = Tile(code, self._allocate, turned, width)
        start, stop = self._bounds(across)
        end = code.extent(last.extent)

        def move(k: int) -> None:
            self.counters[last] = code.add(column.index, k)

        def store(mask: Val | None, rows: dict[tuple[str, Ix], str] | None = None) -> None:
            elements = Elements(code, self.counters, last, self.places, self.given, mask, rows)
            self._store_roots(elements, roots, space.full)

        def at(i: Ref, mask: Val | None) -> None:
            self.counters[last] = i
            store(mask)

        with (
            self._loops([v for v in space.vars[:-1] if v is not across]),
            code.loop(start, stop, width) as row,
            code.loop(0, end, width) as column,
        ):
            bottom, right = code.add(row.index, width), code.add(column.index, width)
            whole = code.both(code.compare("sle", bottom, stop), code.compare("sle", right, end))
            with code.when(whole), code.width(width):
                self.counters[across] = row.index
                tile.fill(lambda ix: self._elements(last).ref(ix), move, self.pointers)
                with code.loop(0, width) as k:
                    self.counters[across] = code.add(row.index, k.index)
                    store(None, tile.row(k.index, self.pointers))
            with code.when(code.negation(whole)), code.loop(row.index, code.min(bottom, stop)) as k:
                self.counters[across] = k.index
                code.vector_loop(column.index, code.min(right, end), width, at)

    # ---- stages

    def _stages(self) -> Stages:
        first: dict[Node, int] = {}
        ready: dict[Node, int] = dict.fromkeys(self.kernel.inputs, 0)
        count = 0
        for node in self.kernel.nodes:  # in program order
            reduces = node.op.kind is Kind.REDUCE
            shape = node.inputs[0].shape if reduces else node.shape
            position = self.space.row if node in self.rows and not reduces else self.space.full
            reads = reads_of(node, Index(shape, linear=position), self.is_leaf)
            stage = max((ready.get(leaf, first.get(leaf, 0)) for leaf, _ in reads.leaves), default=0)
            if reduces:
                first[node], ready[node] = stage, stage + 1
            elif node in self.rows:
                ready[node] = stage
            else:
                first[node] = stage
            if node not in self.rows or reduces:
                count = max(count, stage + 1)
        return Stages(first, ready, count)

    def _stage_roots(self, stages: Stages, stage: int) -> list[Node]:
        return [n for n in self.kernel.roots if n not in self.rows and stages.first[n] == stage]

    def _stage_folds(self, stages: Stages, stage: int) -> list[Fold]:
        return [Fold(n) for n in self.kernel.nodes if n.op.kind is Kind.REDUCE and stages.first[n] == stage]

    def _row_nodes(self, stages: Stages, stage: int) -> list[Node]:
        """Members with one element per row, other than the reductions, that can be computed before ``stage``."""
        return [
            n for n in self.kernel.nodes if n in self.rows and n.op.kind is not Kind.REDUCE and stages.ready[n] == stage
        ]

    def _work(self, nodes: Sequence[Node]) -> int:
        """Instructions of a body that computes the nodes from memory."""
        seen: set[Node] = set()
        stack = list(nodes)
        total = 0
        while stack:
            node = stack.pop()
            if node in seen or node in self.places or node in self.given or node.is_parameter:
                continue
            seen.add(node)
            total += instructions(node)
            stack += node.inputs
        return total

    def _keep(self, stages: Stages, stage: int, extents: Sequence[Extent]) -> list[Kept]:
        """What later stages need of this one and should not compute again, to be stored now.

        A root is simply read back from its own buffer.
        """
        if self._is_gpu:
            return []  # memory for a row of every thread would cost more than computing again
        stack: list[Node] = []
        for later in range(stage + 1, stages.count):
            stack += self._stage_roots(stages, later)
            stack += (fold.node.inputs[0] for fold in self._stage_folds(stages, later))
        stack.reverse()
        wanted: dict[Node, None] = {}
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in seen or node in self.places or node.is_parameter or node in self.rows:
                continue
            seen.add(node)
            known = node in stages.first and stages.first[node] <= stage
            if known and (node in self.kernel.roots or (node in self.only_at and self._work([node]) > CHEAP)):
                wanted.setdefault(node)
            else:
                stack += reversed(node.inputs)
        kept = []
        for node in wanted:
            if node in self.kernel.roots:
                continue
            kept.append(Kept(node, self.only_at[node], self._reserve(node.dtype.itemsize, extents)))
        return kept

    def _reserve(self, itemsize: int, extents: Sequence[Extent]) -> str:
        """Scratch memory for a row of elements; its pointer."""
        factor, names = factors(tuple(extents))
        at: Ref = 0
        for size in self.scratch:
            for number, symbols in size.terms:
                part: Ref = number
                for name in symbols:
                    part = self.code.mul(part, self.code.extent(name))
                at = self.code.add(at, part)
        # A multiple of 64 bytes, whatever the extents turn out to be.
        self.scratch.append(Size(((64 * -(-factor * itemsize // 64), names),)))
        return self.code.at("%scratch", at, 1)

    # ---- rows

    def _rows(self) -> None:
        space = self.space
        row_var = space.vars[-1]
        sequence = space.folded[:-1]
        within = ZERO  # position inside the row
        for var in space.folded:
            within = within * var.extent + variable(var)
        stages = self._stages()
        of_node = accesses(self.kernel, space, self.is_leaf).of_node
        self.only_at = {node: next(iter(positions)) for node, positions in of_node.items() if len(positions) == 1}
        with self._loops(space.kept):
            for stage in range(stages.count + 1):
                with self.code.width(1):
                    self._finish_row(self._row_nodes(stages, stage))
                if stage == stages.count:
                    break
                folds = self._stage_folds(stages, stage)
                roots = self._stage_roots(stages, stage)
                kept = self._keep(stages, stage, [v.extent for v in space.folded])
                self._row_stage(row_var, sequence, within, folds, roots, kept)
                for node, _, pointer in kept:
                    self.places[node] = Place(pointer, within)
                for node in roots:
                    self.places[node] = Place(self.pointers[node])

    def _finish_row(self, nodes: Sequence[Node]) -> None:
        elements = self._elements(None)
        for node in nodes:
            self.given[node] = elements.value(node, Index(node.shape, linear=self.space.row))
        for node in self.kernel.roots:
            if node in nodes:
                elements.store(self.given[node], self.pointers[node], self.space.row)

    def _row_stage(
        self,
        row_var: LoopVar,
        sequence: Sequence[LoopVar],
        within: Ix,
        folds: Sequence[Fold],
        roots: Sequence[Node],
        kept: Sequence[Kept],
    ) -> None:
        code, e, space = self.code, self.e, self.space
        # Once per row, not once per vector: statistics of the row in every lane.
        scalars = dict(self.given)
        with code.width(self.width):
            for node in self.given:
                self.given[node] = e.splat(self.given[node])

        def body(mask: Val | None) -> list[State]:
            elements = self._elements(row_var, mask)
            self._store_roots(elements, roots, space.full)
            self._compute(elements, [*(node for node, _, _ in kept), *(fold.node.inputs[0] for fold in folds)])
            for node, position, pointer in kept:
                value = elements.value(node, Index(node.shape, linear=position))
                elements.store(value, pointer, within)
            return [self._lift(elements, fold, within) for fold in folds]

        if not folds:

            def plain(mask: Val | None) -> None:
                body(mask)

            with self._loops(sequence):
                self._vector_loop(row_var, plain)
            self.given = scalars
            return

        def at(i: Ref, mask: Val | None) -> list[State]:
            self.counters[row_var] = i
            return body(mask)

        extent = row_var.extent
        light = self.width > 1 and self._work([*roots, *(f.node.inputs[0] for f in folds)]) <= LIGHT
        lanes = LaneFold(code, self._allocate, folds, extent if isinstance(extent, int) else None, light)
        terms = _known_product([v.extent for v in sequence])
        with code.width(self.width):
            if terms == 1:
                states = lanes.run(code.extent(extent), at)
            else:
                states = self._sequence(sequence, folds, terms, lambda: lanes.run(code.extent(extent), at))
        self.given = scalars
        with code.width(1):
            for fold, state in zip(folds, states):
                result = fold.finish(e, state)
                self.given[fold.node] = result
                if fold.node in self.kernel.roots:
                    self._elements(None).store(result, self.pointers[fold.node], space.row)

    def _sequence(
        self, sequence: Sequence[LoopVar], folds: Sequence[Fold], terms: int | None, term: Callable[[], list[State]]
    ) -> list[State]:
        """Fold ``term()`` over the loops in ``sequence``."""
        code = self.code
        cascade = Cascade(code, self._allocate, folds, terms)

        def once(action: Callable[[Ref], None]) -> None:
            with code.width(1):
                action(0)

        cascade.start(once)
        with self._loops(sequence):
            states = term()
            once(lambda at: cascade.add(at, states))
            cascade.carry(code.add(self._position(sequence), 1), once)
        totals = cascade.finish(once)
        with code.width(1):
            return totals.load(0)

    def _position(self, vars: Sequence[LoopVar]) -> Ref:
        position: Ref = 0
        for var in vars:
            position = self.code.add(self.code.mul(position, self.code.extent(var.extent)), self.counters[var])
        return position

    def _lift(self, elements: Elements, fold: Fold, within: Ix) -> State:
        node = fold.node
        source = node.inputs[0]
        value = elements.value(source, Index(source.shape, linear=self.space.full))
        self.e.where = node.where
        return tuple(node.op.lift(self.e, self.e.convert(value, dt.compute_dtype(value.dtype)), elements.lanes(within)))

    # ---- columns

    def _columns(self) -> None:
        """Tiles of the last, kept loop; in each, passes over the reduced loops."""
        code, space = self.code, self.space
        column = space.vars[-1]
        extent = column.extent
        slots = 1 if self._is_gpu else TILE
        if isinstance(extent, int):
            slots = min(slots, max(1, -(-extent // self.width)) * self.width)
        stages = self._stages()
        cells: dict[Node, str] = {}
        folded = space.folded
        within = ZERO
        for var in folded:
            within = within * var.extent + variable(var)
        start, stop = self._bounds(column)
        with self._loops(space.kept[:-1]), code.loop(start, stop, slots) as tile:
            first, last = tile.index, code.min(code.add(tile.index, slots), stop)

            def columns(action: Callable[[Val | None], None]) -> None:
                """``action(mask)`` at each vector of the tile."""

                def at(i: Ref, mask: Val | None) -> None:
                    self.counters[column] = i
                    action(mask)

                exact = isinstance(extent, int) and extent % self.width == 0
                code.vector_loop(first, last, self.width, at, exact)

            def slot() -> Ref:
                return code.sub(self.counters[column], first)

            for stage in range(stages.count + 1):
                self._finish_columns(column, columns, slot, cells, slots, self._row_nodes(stages, stage))
                if stage == stages.count:
                    break
                folds = self._stage_folds(stages, stage)
                roots = self._stage_roots(stages, stage)
                self._column_stage(column, columns, slot, cells, slots, folded, within, folds, roots)
                for node in roots:
                    self.places[node] = Place(self.pointers[node])

    def _column_elements(
        self, column: LoopVar, slot: Callable[[], Ref], cells: dict[Node, str], mask: Val | None
    ) -> Elements:
        """Elements at the current vector of columns, the statistics that are ready being read from their cells."""
        code, e = self.code, self.e
        elements = self._elements(column, mask)
        elements.given = {
            node: e.load(code.at(pointer, slot(), node.dtype.itemsize), node.dtype) for node, pointer in cells.items()
        }
        return elements

    def _finish_columns(
        self,
        column: LoopVar,
        columns: Callable[[Callable[[Val | None], None]], None],
        slot: Callable[[], Ref],
        cells: dict[Node, str],
        slots: int,
        nodes: Sequence[Node],
    ) -> None:
        if not nodes:
            return
        new = {node: self._allocate(slots * node.dtype.itemsize) for node in nodes}

        def action(mask: Val | None) -> None:
            elements = self._column_elements(column, slot, cells, mask)
            for node in nodes:
                value = elements.value(node, Index(node.shape, linear=self.space.row))
                self.e.store(value, self.code.at(new[node], slot(), node.dtype.itemsize))
                if node in self.kernel.roots:
                    elements.store(value, self.pointers[node], self.space.row)

        columns(action)
        cells.update(new)

    def _column_stage(
        self,
        column: LoopVar,
        columns: Callable[[Callable[[Val | None], None]], None],
        slot: Callable[[], Ref],
        cells: dict[Node, str],
        slots: int,
        folded: Sequence[LoopVar],
        within: Ix,
        folds: Sequence[Fold],
        roots: Sequence[Node],
    ) -> None:
        code, space = self.code, self.space
        cascade = Cascade(code, self._allocate, folds, _known_product([v.extent for v in folded]), slots)

        def each_slot(action: Callable[[Ref], None]) -> None:
            columns(lambda mask: action(slot()))

        def body(mask: Val | None) -> None:
            elements = self._column_elements(column, slot, cells, mask)
            self._store_roots(elements, roots, space.full)
            if folds:
                self._compute(elements, [fold.node.inputs[0] for fold in folds])
                cascade.add(slot(), [self._lift(elements, fold, within) for fold in folds])

        cascade.start(each_slot)
        with self._loops(folded):
            columns(body)
            cascade.carry(code.add(self._position(folded), 1), each_slot)
        if not folds:
            return
        totals = cascade.finish(each_slot)
        new = {fold.node: self._allocate(slots * fold.node.dtype.itemsize) for fold in folds}

        def store(mask: Val | None) -> None:
            elements = self._elements(column, mask)
            for fold, state in zip(folds, totals.load(slot())):
                value = fold.finish(self.e, state)
                self.e.store(value, code.at(new[fold.node], slot(), value.dtype.itemsize))
                if fold.node in self.kernel.roots:
                    elements.store(value, self.pointers[fold.node], space.row)

        columns(store)
        cells.update(new)


def _known_product(extents: Sequence[Extent]) -> int | None:
    factor, names = factors(tuple(extents))
    return None if names else factor
