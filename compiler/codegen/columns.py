"""Kernels whose last loop is kept: for every tile of columns the stages over the reduced loops, vectors across columns.
A statistic is an element of the tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybridflow.compiler.codegen.elements import Elements, Place
from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.reduction import Cascade, Fold
from hybridflow.compiler.codegen.stages import Staged, known_product
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.index import Index
from hybridflow.compiler.loops.kernel import IsLeaf, Kernel
from hybridflow.compiler.loops.space import Space
from hybridflow.compiler.ops import Kind

TILE = 2048  # columns whose accumulators stay in the first-level cache together
CELLS = 128 * 1024  # bytes that all statistics of a tile may take, which lie on the stack


class Columns(Staged):
    """``cells`` are the statistics of the tile that are ready: addresses of ``slots`` elements each."""

    def __init__(
        self, e: Emitter, code: Code, kernel: Kernel, space: Space, is_leaf: IsLeaf, pointers: dict[Node, str]
    ) -> None:
        super().__init__(e, code, kernel, space, is_leaf, pointers)
        self.column = space.vars[-1]
        self.cells: dict[Node, str] = {}
        self.slots = self._slots()

    @property
    def grain(self) -> int:
        return self.slots if self._outer is self.column else 1

    def _slots(self) -> int:
        """Columns of a tile."""
        if self._is_gpu:
            return 1
        each = 0  # bytes of a column
        for node in self.rows:
            each += node.dtype.itemsize
            if node.op.kind is Kind.REDUCE:
                state = node.op.init(dt.compute_dtype(node.inputs[0].dtype))
                each += Cascade.MOST_LEVELS * sum(dtype.itemsize for _, dtype in state)
        slots = min(TILE, max(CELLS // each // self.width, 1) * self.width)
        extent = self.column.extent
        return min(slots, max(1, -(-extent // self.width)) * self.width) if isinstance(extent, int) else slots

    def _write(self) -> None:
        code = self.code
        start, stop = self._bounds(self.column)
        with self._loops(self.space.kept[:-1]), code.loop(start, stop, self.slots) as tile:
            self.begin, self.end = tile.index, code.min(code.add(tile.index, self.slots), stop)
            for stage in range(self.stages + 1):
                self._finish(self._row_nodes(stage))
                if stage == self.stages:
                    break
                roots = self._roots_of(stage)
                self._stage(self._folds_of(stage), roots)
                for node in roots:
                    self.places[node] = Place(self.pointers[node])

    def _columns(self, action: Callable[[Val | None], None]) -> None:
        """``action(mask)`` at each vector of the tile."""

        def at(i: Ref, mask: Val | None) -> None:
            self.counters[self.column] = i
            action(mask)

        extent = self.column.extent
        exact = isinstance(extent, int) and extent % self.width == 0
        self.code.vector_loop(self.begin, self.end, self.width, at, exact)

    def _slot(self) -> Ref:
        """The current column's place in the tile."""
        return self.code.sub(self.counters[self.column], self.begin)

    def _cell(self, pointer: str, node: Node) -> str:
        return self.code.at(pointer, self._slot(), node.dtype.itemsize)

    def _column_elements(self, mask: Val | None) -> Elements:
        """Elements at the current vector of columns, the statistics that are ready being read from their cells."""
        elements = self._elements(self.column, mask)
        elements.given = {
            node: self.e.load(self._cell(pointer, node), node.dtype) for node, pointer in self.cells.items()
        }
        return elements

    def _keep(self, elements: Elements, node: Node, value: Val, pointer: str) -> None:
        """Put a statistic into its cell, and where the result is wanted."""
        self.e.store(value, self._cell(pointer, node))
        if node in self.kernel.roots:
            elements.store(value, self.pointers[node], self.space.row)

    def _new_cells(self, nodes: Sequence[Node]) -> dict[Node, str]:
        return {node: self._allocate(self.slots * node.dtype.itemsize) for node in nodes}

    def _finish(self, nodes: Sequence[Node]) -> None:
        """What follows from the statistics of the stages before."""
        if not nodes:
            return
        new = self._new_cells(nodes)

        def action(mask: Val | None) -> None:
            elements = self._column_elements(mask)
            for node in nodes:
                value = elements.value(node, Index(node.shape, linear=self.space.row))
                self._keep(elements, node, value, new[node])

        self._columns(action)
        self.cells.update(new)

    def _stage(self, folds: Sequence[Fold], roots: Sequence[Node]) -> None:
        code, folded = self.code, self.space.folded
        cascade = Cascade(code, self._allocate, folds, known_product([v.extent for v in folded]), self.slots)

        def each_slot(action: Callable[[Ref], None]) -> None:
            self._columns(lambda mask: action(self._slot()))

        def body(mask: Val | None) -> None:
            elements = self._column_elements(mask)
            self._store_roots(elements, roots, self.space.full)
            if folds:
                self._compute(elements, [fold.node.inputs[0] for fold in folds])
                cascade.add(self._slot(), [self._lift(elements, fold) for fold in folds])

        cascade.start(each_slot)
        with self._loops(folded):
            self._columns(body)
            cascade.carry(code.add(self._position(folded), 1), each_slot)
        if not folds:
            return
        totals = cascade.finish(each_slot)
        new = self._new_cells([fold.node for fold in folds])

        def store(mask: Val | None) -> None:
            elements = self._elements(self.column, mask)
            for fold, state in zip(folds, totals.load(self._slot())):
                self._keep(elements, fold.node, fold.finish(self.e, state), new[fold.node])

        self._columns(store)
        self.cells.update(new)
