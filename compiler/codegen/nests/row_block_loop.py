"""Kernels that run a graph for a panel of rows after another; see ``ops.row_blocks``.

The graph is emitted as a function, as those of other control flow are, and finds its buffers through a table of
addresses.  In it a panel's part of each operand and result stands.  A unit is one panel; where panels add up sums, it
is a batch entry, whose panels go one after another.  What the graph makes on the way lies in the scratch memory of the
worker.

On a GPU a block of threads runs a unit: they go through the graph's kernels together (see ``together``), and what these
make on the way lies in memory of the block, as much as the launch asks for; where that is not enough, or nobody knows,
it lies in memory of the device, which each block has for one panel.
"""

from __future__ import annotations

from hybridflow.compiler.codegen.control.control_flow import KernelContext, SubgraphFunction, operands_of
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters, one_phase
from hybridflow.compiler.codegen.gpu.thread_group import dynamic_shared
from hybridflow.compiler.ir.dtypes import DType
from hybridflow.compiler.ir.extents import Extent, aligned, larger
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT, byte_size
from hybridflow.compiler.loops.kernel import Kernel
from hybridflow.compiler.loops.tuning import ROW_BLOCK_GROUP, ROW_BLOCKS_PER_MULTIPROCESSOR
from hybridflow.compiler.ops.lowering import RowBlocks


def write_row_blocks(
    home: KernelContext, e: Emitter, symbol: str, kernel: Kernel, how: RowBlocks
) -> tuple[EmittedKernel, str]:
    """Add the kernel; also says how, for a GPU."""
    on_gpu = home.module.target.kind == "cuda"
    writer = _GroupWriter(home, e, kernel, how) if on_gpu else _Writer(home, e, kernel, how)
    writer.write()
    e.line("ret void")
    name = home.module.function(e, symbol, kernel_parameters(len(operands_of(kernel))), linkage="internal")
    return writer.kernel(name)


class _Writer:
    """Scratch memory: the number of a panel's first row, the graphs' arena, their scratch memory."""

    group = 0  # threads of a GPU that run a unit

    def __init__(self, home: KernelContext, e: Emitter, kernel: Kernel, how: RowBlocks) -> None:
        self.e, self.how = e, how
        self.code = KernelBuilder(e, home.dim_names)
        node = kernel.cluster.anchor
        self.functions = [home.function_of(graph, block=self.group) for graph, _ in how.graphs]
        self.given = [(f"%a{k}", n.dtype) for k, n in enumerate(node.inputs)]
        places = {
            n.attrs["index"]: f"%a{k}" for k, n in enumerate(operands_of(kernel)[len(self.given) :], len(self.given))
        }
        self.made = [(places[k], n) for k, n in enumerate(how.body.outputs)]
        arena: Extent = 0
        inner: Extent = 0
        for function in self.functions:
            arena, inner = larger(arena, function.memory.arena), larger(inner, function.memory.scratch)
        self.first = self._first()
        self.arena = self.first + ALIGNMENT
        self.inner = self.arena + aligned(arena, ALIGNMENT)
        self.size = self.inner + aligned(inner, ALIGNMENT)
        self.memory = "%scratch"

    def _first(self) -> int:
        """Where the number of the first row lies in the memory."""
        return 0

    def kernel(self, symbol: str) -> tuple[EmittedKernel, str]:
        return one_phase(symbol, self.units, scratch=self.size), ""

    @property
    def units(self) -> tuple[Extent, ...]:
        return self.how.batch if self.how.accumulates else (*self.how.batch, self.how.num_blocks)

    def write(self) -> None:
        c, how, e = self.code, self.how, self.e
        self.row_address, self.arena_address, self.inner_address = (
            c.at(self.memory, c.extent(at), 1) for at in (self.first, self.arena, self.inner)
        )
        self.table = e.fresh("table")
        slots = 1 + len(self.given) + len(self.made) + (how.sums if how.accumulates else 0)
        e.line(f"{self.table} = alloca [{slots} x ptr], align 8")
        with c.loop("%begin", "%end") as unit:
            if how.accumulates:
                self._clear(unit.index)
                with c.loop(0, how.num_blocks) as panel:
                    self._row_block(unit.index, panel.index)
            else:
                self._row_block(c.div(unit.index, how.num_blocks), c.rem(unit.index, how.num_blocks))

    def _clear(self, entry: Ref) -> None:
        c = self.code
        self.e.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        for pointer, node in self.made[-self.how.sums :]:
            size = c.extent(byte_size(node))
            address = c.at(pointer, c.mul(entry, size), 1)
            self.e.line(f"call void @llvm.memset.p0.i64(ptr {address}, i8 0, i64 {size}, i1 false)")

    def _row_block(self, entry: Ref, panel: Ref) -> None:
        c, how = self.code, self.how
        row = c.mul(panel, how.block)
        self.e.store(c.value(row), self.row_address)  # by each thread of a team, before it reads it
        self._fill(entry, row)
        is_last = c.compare("eq", panel, how.num_blocks - 1) if how.tail else False
        with c.when(c.negation(is_last)):
            self._call(self.functions[0])
        with c.when(is_last):
            self._call(self.functions[-1])

    def _fill(self, entry: Ref, row: Ref) -> None:
        """Lay down where a panel's parts are."""
        c, how = self.code, self.how
        position = [*self._digits(entry), row]
        addresses = [self.row_address]
        for (pointer, dtype), start, steps in zip(self.given, how.starts, how.steps):
            at = c.extent(start)
            for number, step in zip(position, steps):
                at = c.add(at, c.mul(number, c.extent(step)))
            addresses.append(self._at(pointer, at, dtype))
        stacked = len(self.made) - how.sums
        results = []
        for k, (pointer, node) in enumerate(self.made):
            size = c.extent(product(node.shape if k >= stacked else node.shape[1:]))
            number = entry if k >= stacked else c.add(c.mul(entry, how.rows), row)
            results.append(self._at(pointer, c.mul(number, size), node.dtype))
        if how.accumulates:
            addresses += results[stacked:]
        for k, address in enumerate((*addresses, *results)):
            self.e.line(f"store ptr {address}, ptr {c.at(self.table, k, 8)}, align 8")

    def _at(self, pointer: str, position: Ref, dtype: DType) -> str:
        return self.code.at(pointer, position, dtype.itemsize)

    def _digits(self, entry: Ref) -> list[Ref]:
        """The position of an entry along each axis of the batch."""
        c, digits = self.code, list[Ref]()
        for extent in reversed(self.how.batch[1:]):
            digits.append(c.rem(entry, c.extent(extent)))
            entry = c.div(entry, c.extent(extent))
        return [*([entry] if self.how.batch else []), *reversed(digits)]

    def _call(self, function: SubgraphFunction) -> None:
        arguments = f"ptr {self.table}, ptr %dims, ptr {self.arena_address}, ptr null, ptr {self.inner_address}"
        self.e.line(f"{self.e.fresh('r')} = call i32 @{function.symbol}({arguments})")


class _GroupWriter(_Writer):
    """Memory: tiles of products, and the same."""

    group = ROW_BLOCK_GROUP

    def __init__(self, home: KernelContext, e: Emitter, kernel: Kernel, how: RowBlocks) -> None:
        assert not how.accumulates
        super().__init__(home, e, kernel, how)
        self.room = home.module.target.block_memory
        self.fits = isinstance(self.size, int) and self.size <= self.room
        if self.fits:
            self.memory = dynamic_shared(e)

    def _first(self) -> int:
        return -(-max(function.dynamic_shared_bytes for function in self.functions) // ALIGNMENT) * ALIGNMENT

    def kernel(self, symbol: str) -> tuple[EmittedKernel, str]:
        where = "memory of the block" if self.fits else "memory of the device for each team"
        how = f"{self.how.block} rows a team of {self.group}; {self.size} bytes of {where}"
        size, scratch = (self.size, 0) if self.fits else (self._first(), self.size)
        assert isinstance(size, int)
        at_once = max(1, min(ROW_BLOCKS_PER_MULTIPROCESSOR, self.room // max(size, 1)))
        phase = Phase(
            symbol, self.units, group_size=self.group, threads=at_once * self.group, dynamic_shared_bytes=size
        )
        return EmittedKernel((phase,), scratch=scratch), how
