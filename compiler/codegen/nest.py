"""Loop-nest kernels: a cluster's loops around the elements of its nodes.

Three forms, told apart by the cluster's space:

map      nothing is reduced (``maps``)
rows     the last loop is reduced (``rows``)
columns  the last loop is kept (``columns``)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from hybridflow.compiler.codegen.elements import Elements, Place
from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.index import Index, Ix, LoopVar
from hybridflow.compiler.loops.kernel import IsLeaf, Kernel, between
from hybridflow.compiler.loops.schedule import Schedule
from hybridflow.compiler.loops.space import Space

NESTED = 32  # nodes of a kernel that may wait for each other


class Nest:
    """Writes one kernel over the loops of ``space``.  ``pointers`` has the address of each root and of each input."""

    def __init__(
        self,
        e: Emitter,
        code: Code,
        kernel: Kernel,
        space: Space,
        schedule: Schedule,
        is_leaf: IsLeaf,
        pointers: dict[Node, str],
    ) -> None:
        self.e, self.code, self.kernel, self.is_leaf = e, code, kernel, is_leaf
        self.space, self.schedule = space, schedule
        self.rows = kernel.cluster.rows
        self.pointers = pointers
        self.counters: dict[LoopVar, Ref] = {}
        self.fixed: dict[LoopVar, Ref] = {}  # loops of which this call runs one turn, and which
        self.given: dict[Node, Val] = {}
        self.places: dict[Node, Place] = {n: Place(pointers[n]) for n in kernel.inputs}
        self.sequences: dict[tuple[Node, ...], list[Node]] = {}
        self.allocas: list[str] = []
        self.scratch: list[Extent] = []
        self.width = schedule.lanes

    def write(self) -> None:
        self.e.width = 1
        if self._is_gpu:
            self._fix_kept_loops()
        self._write()
        self.e.lines[0:0] = self.allocas  # in the entry block, so that the stack does not grow in a loop

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

    def _write(self) -> None:
        raise NotImplementedError

    def _allocate(self, nbytes: int) -> str:
        name = self.e.fresh("cells")
        self.allocas.append(f"  {name} = alloca [{nbytes} x i8], align 64")
        return name

    def _position(self, vars: Sequence[LoopVar]) -> Ref:
        """The current turn of the loops, as one row-major number."""
        position: Ref = 0
        for var in vars:
            position = self.code.add(self.code.mul(position, self.code.extent(var.extent)), self.counters[var])
        return position

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

        width = self.width * self.schedule.vectors
        exact = isinstance(var.extent, int) and var.extent % width == 0
        self.code.vector_loop(start, stop, width, at, exact, self.width)

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
