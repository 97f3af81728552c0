"""Adding updates at indices: out = a copy of x, to which the updates are added one after another, or in which they
replace what is there.

The order is that of ``ops/evaluation_order.py``, row-major in the updates, and each sum is rounded to the dtype.  So
the bits do not depend on how the kernel is cut: a piece of the work has a part of the result to itself, columns where
there are many, else rows, and walks all indices of that part.  Each piece of rows walks them anew, so there are no
more of these than workers, and each goes only through the updates of its own rows.

The indices are looked at first, in a phase of their own: where one is out of range a program ends before anything is
written, unless an earlier check is still to come.  So x may be out's own buffer, even that of state, or be computed of
what lies there; where it lies there as it is, the copy is left out.  What is written does not depend on checks: where
one has failed that comes later, others read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hybridflow.compiler.codegen.core.cost_model import instructions
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import MOST_LANES, KernelBuilder, Ref, lanes_for, merged_extent
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import LinearOperand
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.ordering.index_blocks import SCRATCH, IndexBlocks, all_within, known_bounds
from hybridflow.compiler.codegen.ordering.ordering_schedule import ScatterWay, scatter_schedule
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import is_static, static_size
from hybridflow.compiler.loops.tuning import CACHE_LINE, CHEAP, ENOUGH
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.lowering import ScatterAdd
from hybridflow.compiler.ops.value_ranges import bounds
from hybridflow.compiler.program import Check
from hybridflow.compiler.target import Target

COLUMNS = 16  # vectors of columns that pay for a walk over all indices: `benchmarks/cliffs.py`
FEW_LINES = 4  # cache lines of a slice, of fewer of which two workers add no more than one: the same script
MANY_ROWS = 1 << 40  # more than there are, where their number is not known

_WIDE = 64  # elements side by side, when there are more of them than a vector holds

Range = tuple[Ref, Ref]


@dataclass(frozen=True)
class ScatterOperands:
    """What a kernel over ``buffers`` buffers, the last of which is the output, does with its operands.

    Where an index is paired with each update, they have the shape of ``x`` but along the axis; else updates are of
    shape ``x.shape[:axis] + indices.shape + x.shape[axis + 1 :]``."""

    adding: ScatterAdd
    x: LinearOperand
    indices: LinearOperand
    updates: LinearOperand
    dims: Sequence[str]
    buffers: int


def emit_scatter_add(module: LLVMModule, e: Emitter, symbol: str, what: ScatterOperands) -> EmittedKernel:
    """Add the kernel ``symbol``.  Units: elements before the axis times those behind, or times rows."""
    s = Scatter(e, what)
    with s.parts() as part:
        s.write(*part)
    return s.finish(module, symbol)


def times_read(target: Target, node: Node) -> tuple[int, int, int]:
    """How often the kernel of ``node`` comes to each element of its inputs.  Each unit reads all indices, and all of
    them are looked at first.  Updates that lie in short rows take whole vectors all the same, or as many turns."""
    assert node.op.lower is not None
    axis = node.op.lower(tuple(n.type for n in node.inputs), node.attrs).axis
    if node.type.ndim == 1 and target.kind == "cpu":  # there are few units
        sure = all_within(bounds(node.inputs[1]), node.shape[0])
        return (1, 1 if _is_cheap(node.inputs[1]) else 2, 2) if sure else (1, 4, 4)
    lanes = lanes_for(target, node.dtype, merged_extent(node.shape[axis + 1 :]))
    return 1, ENOUGH, lanes_for(target, node.dtype, _WIDE) // lanes


def _is_cheap(node: Node) -> bool:
    """Whether a thread of several may as well compute indices that others compute, too."""
    seen, stack, total = {node}, [node], 0
    while stack:
        node = stack.pop()
        if node.is_parameter or not node.inputs:
            continue
        if node.op.kind not in (Kind.ELEMENTWISE, Kind.VIEW):
            return False
        total += instructions(node)
        stack += [source for source in node.inputs if source not in seen]
        seen.update(node.inputs)
    return total <= CHEAP


class Scatter:
    """Writes one phase: x as [outer, n, inner], its parts and their copy, the indices, and what is added there."""

    def __init__(self, e: Emitter, what: ScatterOperands) -> None:
        self.e, self.what, self.adding, self.x = e, what, what.adding, what.x
        self.indices, self.updates, self.buffers = what.indices, what.updates, what.buffers
        self.dtype, self.shape, axis = self.x.node.dtype, self.x.node.shape, self.adding.axis
        self.out = f"%a{self.buffers - 1}"
        self.c = c = KernelBuilder(e, what.dims)
        before, behind = self.shape[:axis], self.shape[axis + 1 :]
        self.behind = behind
        self.n, self.inner = c.extent(self.shape[axis]), c.product(behind)
        # How many rows of updates an entry has.
        shape = self.indices.node.shape
        self.count = c.extent(shape[axis]) if self.adding.paired else c.product(shape)
        self.how = scatter_schedule(e.target, self.adding, self.dtype, self.shape)
        self.width = self.how.width
        self.by_rows = self.how.way is not ScatterWay.COLUMNS
        self.whole_rows = self.how.way is ScatterWay.WHOLE
        if self.whole_rows:
            self.units: tuple[Extent, ...] = before
        else:
            self.units = (*before, self.shape[axis]) if self.by_rows else (*before, *behind)

    @property
    def row_bytes(self) -> int | None:
        """Bytes of a slice; None where that is not known."""
        return static_size(self.behind) * self.dtype.itemsize if is_static(self.behind) else None

    @contextmanager
    def parts(self) -> Iterator[tuple[Ref, Range, Range]]:
        """The parts of the result that units stand for: (outer, rows, columns)."""
        if self.whole_rows:
            with self.c.loop("%begin", "%end") as entry:
                yield entry.index, (0, self.n), (0, self.inner)
            return
        with self.c.spans("%begin", "%end", self.n if self.by_rows else self.inner) as (outer, first, last):
            if self.by_rows:
                yield outer, (first, last), (0, self.inner)
            else:
                yield outer, (0, self.n), (first, last)

    def write(self, outer: Ref, rows: Range, columns: Range) -> None:
        """Write a part of the result; where it is the whole of an entry, without looking which updates are its own."""
        if self.whole_rows or not self.by_rows or rows == (0, self.n) or not self.finds_blocks:
            self._write(outer, rows, columns)
            return
        c = self.c
        whole = c.both(c.compare("eq", rows[0], 0), c.compare("eq", rows[1], self.n))
        with c.when(whole):
            self._write(outer, (0, self.n), columns)
        with c.when(c.negation(whole)):
            self._write(outer, rows, columns)

    def _write(self, outer: Ref, rows: Range, columns: Range) -> None:
        out = self.copied(outer, rows, columns)
        add = self.add_elements if self.in_blocks else self.add_pairs if self.adding.paired else self.add_slices
        add(out, outer, rows, columns)

    def copied(self, outer: Ref, rows: Range, columns: Range) -> str:
        """Copy a part of entry ``outer`` from x to out; the address of that entry of out."""
        c, e, item = self.c, self.e, self.dtype.itemsize
        start = c.mul(c.mul(outer, self.n), self.inner)
        to = c.at(self.out, start, item)

        def copy(i: Ref, mask: Val | None) -> None:
            e.store(self.x.value(c, c.add(start, i), mask), c.at(to, i, item), mask)

        source = self.x.in_memory
        with c.when(True if source is None else c.pointers_differ(source, self.out)):
            if columns == (0, self.inner):  # whole rows, one behind the other
                begin, end = (c.mul(row, self.inner) for row in rows)
                c.vector_loop(begin, end, lanes_for(e.target, self.dtype, _WIDE), copy)
            else:
                with c.loop(*rows) as row:
                    begin = c.mul(row.index, self.inner)
                    first, last = (c.add(begin, column) for column in columns)
                    c.vector_loop(first, last, self.width, copy)
        return to

    @property
    def finds_blocks(self) -> bool:
        """Whether there are so many indices for each entry that they are worth being found in vectors."""
        few = isinstance(self.count, int) and self.count < MOST_LANES
        return self.e.target.kind == "cpu" and not few

    @property
    def in_blocks(self) -> bool:
        """Whether single elements are added whose places are found in vectors."""
        return self.inner == 1 and self.finds_blocks

    def add_elements(self, out: str, outer: Ref, rows: Range, columns: Range) -> None:
        """Add the updates of an entry whose slices are single elements."""
        c, e, item = self.c, self.e, self.dtype.itemsize
        places = IndexBlocks(c, self.shape[self.adding.axis], self.indices, self.updates, rows)
        entry = c.mul(outer, self.count)
        first, shift = (entry, 0) if self.adding.paired else (0, entry)

        def add(iteration: int, place: str, update: Val) -> None:
            at = places.address(out, place, item)
            e.store(update if self.adding.replaces else self.sum(e.load(at, self.dtype), update), at)

        places.each(first, c.add(first, self.count), shift, add)

    def add_slices(self, out: str, outer: Ref, rows: Range, columns: Range) -> None:
        """Add the updates of an entry, each row of which has one index."""
        c, e, item = self.c, self.e, self.dtype.itemsize

        def add_slice(place: Ref, j: Ref) -> None:
            to = c.at(out, c.mul(place, self.inner), item)
            row = c.mul(c.add(c.mul(outer, self.count), j), self.inner)

            def add(i: Ref, mask: Val | None) -> None:
                here = c.at(to, i, item)
                update = self.updates.value(c, c.add(row, i), mask)
                if not self.adding.replaces:
                    update = self.sum(e.load(here, self.dtype, mask), update)
                e.store(update, here, mask)

            c.vector_loop(*columns, self.width, add)

        if self.finds_blocks and rows != (0, self.n):
            places = IndexBlocks(c, self.shape[self.adding.axis], self.indices, self.updates, rows)
            places.each_inside(0, self.count, lambda place, j: add_slice(c.add(rows[0], place), j))
            return
        with c.loop(0, self.count) as j, c.width(1):
            index = self.index(j.index, None)
            with c.when(self.within(index, rows).ref):
                add_slice(index.ref, j.index)

    def add_pairs(self, out: str, outer: Ref, rows: Range, columns: Range) -> None:
        """Add the updates of an entry, each of which has its index."""
        c, e = self.c, self.e
        with c.loop(0, self.count) as j:
            row = c.mul(c.add(c.mul(outer, self.count), j.index), self.inner)

            def add(i: Ref, mask: Val | None) -> None:
                position = c.add(row, i)
                index = self.index(position, mask)
                inside = self.within(index, rows)
                active = inside if mask is None else e.and_(inside, mask)
                # Lanes lie in different columns, so no two of them meet in one element.
                lanes = e.add(e.splat(c.value(i)), e.iota())
                offsets = e.add(e.mul(index, e.splat(c.value(self.inner))), lanes)
                update = self.updates.value(c, position, mask)
                e.scatter(self.sum(e.gather(out, self.dtype, offsets, active), update), out, offsets, active)

            c.vector_loop(*columns, self.width, add)

    def index(self, position: Ref, mask: Val | None) -> Val:
        """The indices from ``position``, counted from the front."""
        c, e = self.c, self.e
        index = e.convert(self.indices.value(c, position, mask), dt.int64)
        return e.select(e.lt(index, 0), e.add(index, e.splat(c.value(self.n))), index)

    def within(self, index: Val, rows: Range) -> Val:
        e = self.e
        first, last = (e.splat(self.c.value(row)) for row in rows)
        return e.and_(e.ge(index, first), e.lt(index, last))

    def sum(self, a: Val, b: Val) -> Val:
        e, wide = self.e, dt.compute_dtype(self.dtype)
        return e.convert(e.add(e.convert(a, wide), e.convert(b, wide)), self.dtype)

    def finish(self, module: LLVMModule, symbol: str) -> EmittedKernel:
        """The phase that is written, after that of the check of all indices."""
        checking = self.checking(module, symbol)
        self.e.line("ret void")
        written = module.function(self.e, symbol, kernel_parameters(self.buffers), linkage="internal")
        main = self.phase(written)
        sequential = None if checking else self.sequential(module, symbol, main)
        return EmittedKernel(
            (*checking, main), SCRATCH if self.finds_blocks else 0, sequential=sequential, schedule=str(self.how)
        )

    def phase(self, symbol: str) -> Phase:
        """How the units of the function ``symbol`` are cut.  Rows of one cache line stay together: two workers would
        fight for it."""
        if self.whole_rows:
            return Phase(symbol, self.units, checks=False)
        if not self.by_rows:
            return Phase(symbol, self.units, self.width, checks=False, least=COLUMNS * self.width)
        bytes_, rows = self.row_bytes or CACHE_LINE, self.shape[self.adding.axis]
        least = max(rows, 1) if isinstance(rows, int) else MANY_ROWS  # an entry, while there is one for each worker
        workers = 2 if bytes_ >= FEW_LINES * CACHE_LINE else 4
        return Phase(symbol, self.units, max(CACHE_LINE // bytes_, 1), checks=False, least=least, workers=workers)

    def sequential(self, module: LLVMModule, symbol: str, main: Phase) -> Phase | None:
        """What a single thread does, which has the whole result to itself, and need not look what lies in its part."""
        if not self.by_rows or self.whole_rows or not self.finds_blocks:
            return None
        whole = Scatter(self.e.sibling(), self.what)
        with whole.c.loop(0, whole.c.product(self.shape[: self.adding.axis])) as entry:
            whole.write(entry.index, (0, whole.n), (0, whole.inner))
        whole.e.line("ret void")
        name, parameters = f"{symbol}_alone", kernel_parameters(self.buffers)
        return replace(main, symbol=module.function(whole.e, name, parameters, linkage="internal"))

    def checking(self, module: LLVMModule, symbol: str) -> tuple[Phase, ...]:
        """The phase that looks at all indices, unless that has been done, or none can be out of range."""
        axis = self.adding.axis
        if self.adding.check is None or all_within(known_bounds(self.indices, self.e.fastmath), self.shape[axis]):
            return ()
        looking = Scatter(self.e.sibling(), self.what)
        looking.check_indices(self.adding.check)
        looking.e.line("ret void")
        name, parameters = f"{symbol}_check", kernel_parameters(self.buffers)
        written = module.function(looking.e, name, parameters, linkage="internal")
        return (Phase(written, self.indices.node.shape, _WIDE),)

    def check_indices(self, failing: Check) -> None:
        """Fail the check where an index is out of range, and slices have elements that would be added there."""
        c, e, axis = self.c, self.e, self.adding.axis
        slices = c.product((*self.shape[:axis], *self.shape[axis + 1 :]))

        def check(i: Ref, mask: Val | None) -> None:
            outside = e.not_(self.within(self.index(i, mask), (0, self.n)))
            e.raise_if(outside, failing)

        with c.when(c.compare("ne", slices, 0)):
            c.vector_loop("%begin", "%end", lanes_for(e.target, dt.int64, _WIDE), check)
