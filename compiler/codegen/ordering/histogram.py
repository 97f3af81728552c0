"""Integers added into few cells, as a histogram does: into tables that stay in a first-level cache, and these into x.

Sums of integers wrap, and have the same bits in any order.  So pieces of the updates have tables of their own, which
any threads fill; and within a piece a few tables are taken in turn.  An addition to a cell waits for the one before it
to arrive in memory, and equal indices often follow each other.  Indices are looked at as they are added: one that is
out of range is added to a cell that nobody reads, and ends the program before x is read or written.
"""

from __future__ import annotations

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import MOST_LANES, KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.ordering.index_blocks import SCRATCH, UNROLLED, IndexBlocks
from hybridflow.compiler.codegen.ordering.ordering_schedule import ScatterSchedule, ScatterWay, counts_in_tables
from hybridflow.compiler.codegen.ordering.scatter_add import ScatterOperands
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.program import Check
from hybridflow.compiler.target import Target

_PIECES = 16  # of the updates, for as many threads
_LEAST = 4096  # updates of a piece, and ...
_FOR_EACH = 16  # for each cell of its tables, which have to be emptied and added up
_TABLES_BYTES = 16 * 1024  # of several


def uses_histogram(target: Target, node: Node) -> bool:
    """Whether this is how a scatter is done."""
    assert node.op.lower is not None
    x, indices = node.inputs[0].type, node.inputs[1].type
    adding = node.op.lower(tuple(n.type for n in node.inputs), node.attrs)
    return counts_in_tables(target, adding, x.dtype, x.shape, product(indices.shape))


def emit_histogram(module: LLVMModule, e: Emitter, symbol: str, what: ScatterOperands) -> EmittedKernel:
    """Add the kernel ``symbol``.  Units: pieces of the updates, and then cells."""

    counting, adding = (_Histogram(e.sibling(), what) for _ in range(2))
    parameters, check = kernel_parameters(what.buffers), what.adding.check
    counting.count(check)
    adding.total()
    names = []
    for part, name in ((counting, f"{symbol}_count"), (adding, symbol)):
        part.e.line("ret void")
        names.append(module.function(part.e, name, parameters, linkage="internal"))
    phases = (
        Phase(names[0], (_PIECES,), checks=check is not None and not counting.places.sure),
        Phase(names[1], (counting.cells,), counting.width, checks=False),
    )
    item, how = counting.dtype.itemsize, ScatterSchedule(ScatterWay.HISTOGRAM, counting.width)
    return EmittedKernel(
        phases, SCRATCH + counting.tables * counting.line * item, _PIECES * counting.line * item, schedule=str(how)
    )


class _Histogram:
    """Writes one phase of the kernel."""

    def __init__(self, e: Emitter, what: ScatterOperands) -> None:
        self.e, self.what, self.c = e, what, KernelBuilder(e, what.dims)
        c, self.dtype, self.cells = self.c, what.x.node.dtype, what.x.node.type.size
        # Of a table, with a cell for indices that are out of range.
        self.line = -(-(self.cells + 1) // MOST_LANES) * MOST_LANES
        tables = _TABLES_BYTES // (self.line * self.dtype.itemsize)
        self.tables = min(UNROLLED, 1 << max(tables, 1).bit_length() - 1)
        self.width = lanes_for(e.target, self.dtype, self.cells)
        self.updates = c.product(what.indices.node.shape)
        least = max(_LEAST, _FOR_EACH * self.tables * self.cells)
        self.piece = c.max(c.div(c.add(self.updates, _PIECES - 1), _PIECES), least)
        self.pieces = c.div(c.add(self.updates, c.sub(self.piece, 1)), self.piece)  # that are not empty
        self.places = IndexBlocks(c, self.cells, what.indices, what.updates, (0, self.cells))

    def _cell(self, memory: str, line: Ref, cell: Ref) -> str:
        c = self.c
        return c.at(memory, c.add(c.mul(line, self.line), cell), self.dtype.itemsize)

    def count(self, check: Check | None) -> None:
        """The table of each piece, in shared memory."""
        c, e = self.c, self.e
        tables = c.at("%scratch", SCRATCH, 1)

        def clear(i: Ref, mask: Val | None) -> None:
            e.store(e.const(0, self.dtype), self._cell(tables, 0, i))

        def add(iteration: int, place: str, update: Val) -> None:
            at = c.at(self._cell(tables, iteration % self.tables, 0), place, self.dtype.itemsize)
            e.store(e.add(e.load(at, self.dtype), update), at)

        with c.loop("%begin", c.min("%end", self.pieces)) as piece:

            def join(i: Ref, mask: Val | None) -> None:
                total = e.load(self._cell(tables, 0, i), self.dtype)
                for k in range(1, self.tables):
                    total = e.add(total, e.load(self._cell(tables, k, i), self.dtype))
                e.store(total, self._cell("%shared", piece.index, i))

            c.vector_loop(0, self.tables * self.line, self.width, clear, exact=True)
            first = c.mul(piece.index, self.piece)
            self.places.each(first, c.min(c.add(first, self.piece), self.updates), 0, add, check)
            c.vector_loop(0, self.line, self.width, join, exact=True)

    def total(self) -> None:
        """Each cell of x, and what pieces have for it."""
        c, e = self.c, self.e

        def add(i: Ref, mask: Val | None) -> None:
            with c.loop(0, self.pieces, carry=[self.what.x.value(c, i, mask)]) as piece:
                part = e.load(self._cell("%shared", piece.index, i), self.dtype, mask)
                piece.next = [e.add(piece.carried[0], part)]
            e.store(piece.carried[0], c.at(f"%a{self.what.buffers - 1}", i, self.dtype.itemsize), mask)

        c.vector_loop("%begin", "%end", self.width, add)
