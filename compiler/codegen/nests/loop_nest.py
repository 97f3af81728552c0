"""Loop-nest kernels: a cluster's loops around the elements of its nodes.

There is a class for each form of schedule (``loops.schedule.Form``); ``module_builder.NESTS`` has them by form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from hybridflow.compiler.codegen.core.elements import Elements, MemoryPlace
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.unit_ranges import UnitRanges
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.nests.reduction import Cells, Fold, State
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir.extents import Extent, aligned, larger
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT
from hybridflow.compiler.loops.kernel import IsLeaf, Kernel, between
from hybridflow.compiler.loops.schedule import Schedule
from hybridflow.compiler.loops.tuning import LONG_REMAINDER, ON_STACK, VECTOR_BYTES
from hybridflow.compiler.ops import Kind


class PhaseMemory:
    """Memory that the phases of a kernel share, for partial results and statistics.  ``size`` are the bytes so far."""

    def __init__(self) -> None:
        self.size: Extent = 0
        self._results: dict[Node, Extent] = {}
        self._partial: dict[tuple[int, tuple[Node, ...]], list[Extent]] = {}

    def _reserve(self, nbytes: Extent) -> Extent:
        offset = self.size
        self.size = offset + aligned(nbytes, 64)
        return offset

    def result(self, code: KernelBuilder, node: Node, count: Extent) -> str:
        """Where ``count`` elements of a node lie."""
        if node not in self._results:
            self._results[node] = self._reserve(count * node.dtype.itemsize)
        return code.at("%shared", code.extent(self._results[node]), 1)

    def partial(self, code: KernelBuilder, nodes: Sequence[Node], count: Extent, level: int = 0) -> Cells:
        """``count`` states of the folds that these nodes are, of which there may be several levels."""
        key = level, tuple(nodes)
        known = self._partial.get(key)
        offsets = iter(known or ())
        areas = self._partial[key] = []
        reserve: Callable[[Extent], Extent] = self._reserve if known is None else lambda nbytes: next(offsets)

        def allocate(nbytes: Extent) -> str:
            areas.append(reserve(nbytes))
            return code.at("%shared", code.extent(areas[-1]), 1)

        return Cells(code, allocate, [Fold(node) for node in nodes], count)


_ROWS = "%rows"  # scratch memory for rows of elements
NESTED = 32  # nodes of a kernel that may wait for each other


class PhaseText(NamedTuple):
    """A phase that is written: the emitter that holds its lines, the extents of its parallel loops, its grain, and how
    many threads of a GPU run a unit."""

    e: Emitter
    units: tuple[Extent, ...]
    grain: int
    group_size: int


class LoopNest:
    """Writes one kernel over the loops of ``space``.  ``pointers`` has the address of each root and of each input,
    ``new_code`` begins a function."""

    code: KernelBuilder
    e: Emitter

    def __init__(
        self,
        new_code: Callable[[], KernelBuilder],
        kernel: Kernel,
        space: Space,
        schedule: Schedule,
        is_leaf: IsLeaf,
        pointers: dict[Node, str],
    ) -> None:
        self.new_code, self.kernel, self.is_leaf = new_code, kernel, is_leaf
        self.space, self.schedule = space, schedule
        self.rows = kernel.cluster.rows
        self.pointers = pointers
        self.scratch: Extent = 0
        self.shared = PhaseMemory()
        self.width = schedule.lanes
        self.phases: list[PhaseText] = []

    def write(self) -> list[PhaseText]:
        """The kernel's phases, in order."""
        with self._phase(self.schedule.parallel, self.schedule.grain, self.schedule.group_size):
            self._write()
        return self.phases

    def _write(self) -> None:
        raise NotImplementedError

    @contextmanager
    def _phase(self, parallel: Sequence[LoopVar], grain: int = 1, group: int = 1) -> Iterator[None]:
        """Write a phase whose units are the turns of the ``parallel`` loops, the outermost first.  Within, they have to
        be opened in that order, and only what this call runs of them is run."""
        self.code = self.new_code()
        self.e = self.code.e
        times = Counter(node.op.name for node in self.kernel.nodes)
        self.e.often = frozenset(name for name, count in times.items() if count > 1)
        self.thread_group = ThreadGroup(self.code, group) if group > 1 else None
        self.counters: dict[LoopVar, Ref] = {}
        self.given: dict[Node, Val] = {}
        self.places: dict[Node, MemoryPlace] = {n: MemoryPlace(self.pointers[n]) for n in self.kernel.inputs}
        self.sequences: dict[tuple[tuple[Node, ...], IndexExpr], list[Node]] = {}
        self.allocas: list[str] = []
        self.on_stack = 0  # bytes
        self.in_scratch = 0  # bytes of cells, before those of rows
        self.of_rows: Extent = 0
        self.cuts: dict[LoopVar, UnitRanges] = {}
        is_unit = self.e.target.kind == "cuda"
        with self._unit(parallel, grain) if is_unit else self._cut(parallel, "%begin", "%end") as self.cut:
            yield
        if self.of_rows != 0:
            self.allocas.append(f"  {_ROWS} = getelementptr i8, ptr %scratch, i64 {self.in_scratch}")
        self.scratch = larger(self.scratch, self.of_rows + self.in_scratch)
        self.e.lines[0:0] = self.allocas  # in the entry block, so that the stack does not grow in a loop
        self.e.line("ret void")
        extents = tuple(v.extent for v in parallel)
        if self.e.target.kind == "cuda" and grain > 1:
            extents, grain = (*extents[:-1], -(-extents[-1] // grain)), 1
        self.phases.append(PhaseText(self.e, extents, grain, group))

    @contextmanager
    def _cut(self, vars: Sequence[LoopVar], begin: Ref, end: Ref) -> Iterator[UnitRanges]:
        """Code that runs, of these loops, the turns [begin, end), counted in row-major order."""
        cut = UnitRanges(self.code, vars, begin, end)
        self.cuts.update(dict.fromkeys(vars, cut))
        yield cut
        cut.check_used()
        for var in vars:
            del self.cuts[var]

    @contextmanager
    def _unit(self, vars: Sequence[LoopVar], grain: int, unit: Ref = "%begin") -> Iterator[UnitRanges | None]:
        """Code for a thread of a GPU, which has a single unit: one turn of all parallel loops, or up to ``grain`` of
        the last one."""
        remainder = unit
        with ExitStack() as stack:
            for k in reversed(range(len(vars))):
                size = grain if k == len(vars) - 1 else 1
                extent = self.code.extent(-(-vars[k].extent // size))
                number = remainder if k == 0 else self.code.rem(remainder, extent)
                iteration = self.code.mul(number, size)
                end = self.code.add(iteration, size)
                if not (size == 1 or (isinstance(vars[k].extent, int) and vars[k].extent % size == 0)):
                    end = self.code.min(end, self.code.extent(vars[k].extent))
                stack.enter_context(self._cut(vars[k : k + 1], iteration, end))
                remainder = self.code.div(remainder, extent) if k else remainder
            yield None

    def _allocate(self, nbytes: int) -> str:
        """Memory for this call: on the stack while that is little, in scratch memory beyond."""
        name, size = self.e.fresh("cells"), aligned(nbytes, ALIGNMENT)
        if size <= ALIGNMENT or self.on_stack + size <= ON_STACK or self.e.target.kind == "cuda":
            self.on_stack += size
            self.allocas.append(f"  {name} = alloca [{nbytes} x i8], align {ALIGNMENT}")
        else:
            self.allocas.append(f"  {name} = getelementptr i8, ptr %scratch, i64 {self.in_scratch}")
            self.in_scratch += size
        return name

    def _row_of_scratch(self, itemsize: int) -> str:
        """Scratch memory for a row of elements."""
        at = self.code.extent(self.of_rows)
        self.of_rows += aligned(product(tuple(v.extent for v in self.space.folded)) * itemsize, ALIGNMENT)
        return self.code.at(_ROWS, at, 1)

    def _position(self, vars: Sequence[LoopVar]) -> Ref:
        """The current turn of the loops, as one row-major number."""
        position: Ref = 0
        for var in vars:
            position = self.code.add(self.code.mul(position, self.code.extent(var.extent)), self.counters[var])
        return position

    def _elements(self, lane: LoopVar | None, mask: Val | None = None) -> Elements:
        return Elements(self.code, self.counters, lane, self.places, self.given, mask)

    def _bounds(self, var: LoopVar) -> tuple[Ref, Ref]:
        """The part of a loop that is run in the current turn of those around it; CompileError where these are not
        open."""
        cut = self.cuts.get(var)
        return (0, self.code.extent(var.extent)) if cut is None else cut.bounds(var)

    def _units(self) -> tuple[Ref, Ref]:
        """The units that this call runs, for code that does not go by the parallel loops."""
        assert self.cut is not None
        return self.cut.units()

    @contextmanager
    def _loops(self, vars: Sequence[LoopVar]) -> Iterator[None]:
        with ExitStack() as stack:
            for var in vars:
                self.counters[var] = stack.enter_context(self._iterations(var))
            yield

    @contextmanager
    def _once(self) -> Iterator[None]:
        """Code for one thread of the team: to write what all of them know."""
        with self.code.when(True if self.thread_group is None else self.thread_group.is_first):
            yield

    @contextmanager
    def _iterations(self, var: LoopVar) -> Iterator[Ref]:
        cut = self.cuts.get(var)
        if cut is not None:
            with cut.iterations(var) as iteration:
                yield iteration
            return
        with self.code.loop(0, self.code.extent(var.extent)) as loop:
            yield loop.index

    def _has_long_remainder(self, var: LoopVar) -> bool:
        """Whether what is left over behind vectors along a loop may take long if it goes element by element."""
        return isinstance(var.extent, int) and var.extent < LONG_REMAINDER * self.width**2

    def _vector_loop(self, var: LoopVar, body: Callable[[Val | None], None], halves: bool = False) -> None:
        """``body(mask)`` for each vector along ``var``, with a rest in ``halves`` if it may be; the threads of a team
        take elements in turn."""
        start, stop = self._bounds(var)
        if self.thread_group is not None:
            with self.code.loop(self.code.add(start, self.thread_group.rank), stop, self.thread_group.size) as loop:
                self.counters[var] = loop.index
                body(None)
            return

        def at(i: Ref, mask: Val | None) -> None:
            self.counters[var] = i
            body(mask)

        if self.e.target.kind == "cuda" and self.width > 1:
            self._one_vector(start, stop, at)
            return
        width = self.width * self.schedule.vectors
        exact, exact_rest = (isinstance(var.extent, int) and var.extent % n == 0 for n in (width, self.width))
        self.code.vector_loop(start, stop, width, at, exact, self.width, exact_rest, halves)

    def _one_vector(self, start: Ref, stop: Ref, at: Callable[[Ref, Val | None], None]) -> None:
        """``at`` for the vector from a multiple of its width on that a thread of a GPU has; element by element where
        less than that is left, or some buffer does not begin where vectors may."""
        code, width = self.code, self.width
        ends = code.compare("sle", code.add(start, width), stop)
        whole = code.both(ends, code.multiples(list(self.pointers.values()), VECTOR_BYTES))
        with code.when(whole), code.width(width):
            at(start, None)
        with code.when(code.negation(whole)), code.loop(start, stop) as loop:
            at(loop.index, None)

    def _compute(self, elements: Elements, wanted: Sequence[Node], position: IndexExpr | None = None) -> None:
        """Compute what the wanted values are made of, one after the other.  Left to the rules of ops, which ask for
        their inputs, calls would nest as deep as the kernel is long."""
        if len(self.kernel.nodes) <= NESTED:
            return
        full = self.space.full if position is None else position
        key = tuple(wanted), full
        if key not in self.sequences:
            known = {*self.places, *self.given, *elements.given, *self.rows}
            self.sequences[key] = between(self.kernel, wanted, full, known, self.is_leaf)
        for node in self.sequences[key]:
            elements.value(node, Index(node.shape, linear=full))

    def _fold_results(self, *folds: Node) -> list[Node]:
        """What is wanted of folds: their nodes, or the projections of one with several results."""
        several = {node for node in folds if isinstance(node.type, TupleType)}
        projected = [n for n in self.kernel.nodes if several and n.op.kind is Kind.PROJECT and n.inputs[0] in several]
        return [*(node for node in folds if node not in several), *projected]

    def _finished_values(self, fold: Fold, state: State) -> list[tuple[Node, Val]]:
        """The nodes that a fold makes, and their values."""
        values = fold.finish(self.e, state)
        return [(node, values[node.attrs.get("index", 0)]) for node in self._fold_results(fold.node)]

    def _store_roots(self, elements: Elements, roots: Sequence[Node], position: IndexExpr) -> None:
        """Compute all, then store all: a root may be written over what another one reads."""
        self._compute(elements, roots, position)
        values = [elements.value(root, Index(root.shape, linear=position)) for root in roots]
        for root, value in zip(roots, values):
            elements.store(value, self.pointers[root], position)
