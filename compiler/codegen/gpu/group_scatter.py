"""Scatters by all threads of a GPU.

The copy of what is scattered into, the indices and what is added have launches of their own.  Additions of integers are
atomic: their order makes no difference.  Of updates that replace each other, each place notes the number of the last
one, which is then the one that writes.  Additions of floats are made in the order of ``ops/evaluation_order.py``: the
numbers of the updates are sorted stably by index, so that those of one place stand side by side.  Whoever has the first
of them adds them up, one after the other, each rounded to the dtype.

Where there is little to add, or so many columns that these fill a GPU, a thread walks all indices of a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val, type_text
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.gpu.radix_sort import RadixSort, word_for
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.ordering.scatter_add import Scatter, ScatterOperands
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent, aligned, at_least
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT
from hybridflow.compiler.loops.tuning import ENOUGH_COLUMNS, ENOUGH_ON_GPU, FEW_UPDATES

_COPY = 4096  # elements that a team copies
_COPY_GROUP = 256
_AHEAD = 16  # updates of a place that are asked for at once
_MOST_BITS = 40  # of the number of a place: the memory of a GPU has no more


def emit_group_scatter(module: LLVMModule, e: Emitter, symbol: str, what: ScatterOperands) -> EmittedKernel:
    """Add the kernel ``symbol``; see ``scatter_add.emit_scatter_add``."""
    return _Scatters(module, e, symbol, what).emit()


class _Scatters:
    def __init__(self, module: LLVMModule, e: Emitter, symbol: str, what: ScatterOperands) -> None:
        self.module, self.e, self.symbol, self.what, self.adding = module, e, symbol, what, what.adding
        self.x, self.updates, self.dims, self.buffers = what.x, what.updates, what.dims, what.buffers
        self.dtype, self.out = self.x.node.dtype, f"%a{self.buffers - 1}"
        shape, indices, axis = self.x.node.shape, what.indices.node.shape, self.adding.axis
        self.before, self.n, self.behind = shape[:axis], shape[axis], shape[axis + 1 :]
        self.columns: Extent = product((*self.before, *self.behind))
        # Updates of a line of indices, of which each column has its own where indices are paired.
        self.count: Extent = indices[axis] if self.adding.paired else product(indices)
        self.lines: Extent = self.columns if self.adding.paired else 1
        self.word, self.item = word_for(self.count), word_for(self.n + 1)
        if isinstance(self.n, int) and self.n < 1 << 16:
            self.item = np.dtype(np.uint8 if self.n < 1 << 8 else np.uint16)

    def emit(self) -> EmittedKernel:
        phases = [*self._scatter().checking(self.module, self.symbol), self._copying()]
        shared: Extent = 0
        walks = self._iterates(KernelBuilder(self.e.sibling(), self.dims))
        if walks is not False:
            phases.append(self._phase("walk", (*self.before, *self.behind), self._iterate, self._iterates))
        if walks is True:
            pass
        elif self.adding.replaces:
            added, shared = self._replacing()
            phases += added
        elif not dt.is_float(self.dtype):
            phases.append(self._phase("add", (self.columns, self.count), self._add_atomically, self._sorts))
        else:
            added, shared = self._sorting()
            phases += added
        return EmittedKernel(tuple(phases), shared=shared * self._if_sorted())

    def _scatter(self, e: Emitter | None = None) -> Scatter:
        body = self.e.sibling() if e is None else e
        return Scatter(body, self.what)

    def _phase(
        self,
        name: str,
        units: Sequence[Extent],
        write: Callable[[Scatter], None],
        when: Callable[[KernelBuilder], str | bool] = lambda c: True,
        group: int = 1,
    ) -> Phase:
        scatter = self._scatter()
        with scatter.c.when(when(scatter.c)):
            write(scatter)
        scatter.e.line("ret void")
        parameters = kernel_parameters(self.buffers)
        function = self.module.function(scatter.e, f"{self.symbol}_{name}", parameters, linkage="internal")
        return Phase(function, tuple(units), checks=False, group_size=group)

    # ---- who does it

    def _iterates(self, c: KernelBuilder) -> str | bool:
        """Whether a thread walks all indices of a column."""
        few = c.compare("sle", c.extent(self.count), FEW_UPDATES)
        return c.either(few, c.compare("sge", c.extent(self.columns), self._enough))

    @property
    def _enough(self) -> int:
        """Columns, of which each may be a thread's own."""
        return ENOUGH_ON_GPU if self.adding.paired else ENOUGH_COLUMNS

    def _if_sorted(self) -> Extent:
        """1 unless a thread walks all indices of a column, else 0."""
        return at_least(self.count, FEW_UPDATES + 1) * (1 - at_least(self.columns, self._enough))

    def _sorts(self, c: KernelBuilder) -> str | bool:
        return c.negation(self._iterates(c))

    # ---- phases

    def _copying(self) -> Phase:
        """Elements to where they are scattered into, unless they lie there."""
        size = product(self.x.node.shape)

        def write(s: Scatter) -> None:
            c, e, item = s.c, s.e, self.dtype.itemsize
            group = ThreadGroup(c, _COPY_GROUP)
            source, end = self.x.in_memory, c.extent(size)
            elsewhere = True if source is None else c.pointers_differ(source, self.out)
            with c.when(elsewhere), c.loop("%begin", "%end") as unit:
                begin = c.mul(unit.index, _COPY)
                with c.loop(c.add(begin, group.rank), c.min(c.add(begin, _COPY), end), _COPY_GROUP) as at:
                    e.store(self.x.value(c, at.index), c.at(self.out, at.index, item))

        return self._phase("copy", ((size + (_COPY - 1)) // _COPY,), write, group=_COPY_GROUP)

    def _iterate(self, s: Scatter) -> None:
        with s.parts() as (outer, rows, columns):
            out = s.c.at(s.out, s.c.mul(s.c.mul(outer, s.n), s.inner), self.dtype.itemsize)
            (s.add_pairs if self.adding.paired else s.add_slices)(out, outer, rows, columns)

    def _add_atomically(self, s: Scatter) -> None:
        """A unit is an update: of columns, where indices are paired, else of rows."""
        c, e = s.c, s.e
        with c.loop("%begin", "%end") as unit:
            index, inside, to = self._target(s, unit.index)
            with c.when(inside):
                update = self.updates.value(c, unit.index)
                bits = type_text(self.dtype)
                place = c.at(self.out, to(index), self.dtype.itemsize)
                e.line(f"{e.fresh()} = atomicrmw add ptr {place}, {bits} {update.ref} monotonic")

    def _target(self, s: Scatter, update: Ref) -> tuple[Ref, str, Callable[[Ref], Ref]]:
        """The index of an update, whether there is such a place, and where the update goes for an index."""
        c = s.c
        outer, inside = c.div(update, c.mul(s.count, s.inner)), c.rem(update, s.inner)
        j = c.rem(c.div(update, s.inner), s.count)
        index = s.index(update if self.adding.paired else j, None)
        within = s.within(index, (0, s.n)).ref

        def to(place: Ref) -> Ref:
            return c.add(c.mul(c.add(c.mul(outer, s.n), place), s.inner), inside)

        return index.ref, within, to

    def _replacing(self) -> tuple[list[Phase], Extent]:
        """Each place hears the numbers of its updates, counted from 1."""
        item = self.word.itemsize

        def winner(s: Scatter, index: Ref) -> str:
            return s.c.at("%shared", index, item)

        def each(body: Callable[[Scatter, Ref, Ref], None]) -> Callable[[Scatter], None]:
            def write(s: Scatter) -> None:
                with s.c.loop("%begin", "%end") as unit:
                    index = s.index(unit.index, None)
                    with s.c.when(s.within(index, (0, s.n)).ref):
                        body(s, unit.index, index.ref)

            return write

        def forget(s: Scatter, j: Ref, index: Ref) -> None:
            s.e.store(s.e.zero(self.word, 1), winner(s, index))

        def hear(s: Scatter, j: Ref, index: Ref) -> None:
            number = s.e.convert(s.c.value(s.c.add(j, 1)), self.word)
            place, kind = winner(s, index), type_text(self.word)
            s.e.line(f"{s.e.fresh()} = atomicrmw umax ptr {place}, {kind} {number.ref} monotonic")

        def write(s: Scatter) -> None:
            c, e = s.c, s.e
            with c.loop("%begin", "%end") as unit:
                index, inside, to = self._target(s, unit.index)
                with c.when(inside):
                    last = e.convert(e.load(winner(s, index), self.word), dt.int64)
                    j = c.rem(c.div(unit.index, s.inner), s.count)
                    with c.when(c.compare("eq", last.ref, c.add(j, 1))):
                        e.store(self.updates.value(c, unit.index), c.at(self.out, to(index), self.dtype.itemsize))

        phases = [
            self._phase("forget", (self.count,), each(forget), self._sorts),
            self._phase("hear", (self.count,), each(hear), self._sorts),
            self._phase("replace", (self.columns, self.count), write, self._sorts),
        ]
        return phases, self.n * item

    # ---- additions in order

    def _sorting(self) -> tuple[list[Phase], Extent]:
        item, word, elements = self.item.itemsize, self.word.itemsize, self.lines * self.count
        bits = self.n.bit_length() if isinstance(self.n, int) else _MOST_BITS
        sizes = [aligned(size, ALIGNMENT) for size in (elements * item, elements * word, self.lines * self.n * word)]

        def source(c: KernelBuilder, line: Ref, j: Ref, mask: Val | None) -> Val:
            """The place of an update; past all others where there is none."""
            s = self._scatter_in(c)
            outer, inside = c.div(line, s.inner), c.rem(line, s.inner)
            at = c.add(c.mul(c.add(c.mul(outer, s.count), j), s.inner), inside) if self.adding.paired else j
            index = s.index(at, mask)
            position = c.e.select(s.within(index, (0, s.n)), index, c.value(s.n))
            return c.e.convert(position, self.item)

        def finish(c: KernelBuilder, line: Ref, place: Ref, key: Val, position: Val | None) -> None:
            assert position is not None
            keys, numbers, _ = memory(c)
            at = c.add(c.mul(line, c.extent(self.count)), place)
            c.e.store(key, c.at(keys, at, item))
            c.e.store(position, c.at(numbers, at, word))

        radix = RadixSort(
            self.lines, self.count, self.item, bits, True, source, lambda c, key: key, finish, self._sorts
        )

        def memory(c: KernelBuilder) -> tuple[str, str, str]:
            """Sorted places of updates, numbers of these, and for each place where its updates end."""
            keys = c.at("%shared", c.extent(radix.shared), 1)
            numbers = c.at(keys, c.extent(sizes[0]), 1)
            return keys, numbers, c.at(numbers, c.extent(sizes[1]), 1)

        def key_at(c: KernelBuilder, at: Ref) -> Ref:
            return c.e.convert(c.e.load(c.at(memory(c)[0], at, item), self.item), dt.int64).ref

        def note_ends(s: Scatter) -> None:
            c, e = s.c, s.e
            with c.loop("%begin", "%end") as unit:
                line, at = c.div(unit.index, s.count), c.rem(unit.index, s.count)
                key = key_at(c, unit.index)
                following = c.min(c.add(unit.index, 1), c.sub(c.mul(c.add(line, 1), s.count), 1))
                is_last = c.either(c.compare("eq", following, unit.index), c.compare("ne", key_at(c, following), key))
                with c.when(c.both(is_last, c.compare("slt", key, s.n))):
                    end = e.convert(c.value(c.add(at, 1)), self.word)
                    e.store(end, c.at(memory(c)[2], c.add(c.mul(line, s.n), key), word))

        def add(s: Scatter) -> None:
            """A unit is a sorted update of each column, or of its own."""
            c, e = s.c, s.e
            with c.loop("%begin", "%end") as unit:
                if self.adding.paired:
                    line, at = c.div(unit.index, s.count), c.rem(unit.index, s.count)
                    outer, inside = c.div(line, s.inner), c.rem(line, s.inner)
                else:
                    line, at = 0, c.rem(c.div(unit.index, s.inner), s.count)
                    outer, inside = c.div(unit.index, c.mul(s.count, s.inner)), c.rem(unit.index, s.inner)
                start = c.mul(line, s.count)
                key = key_at(c, c.add(start, at))
                former = key_at(c, c.add(start, c.max(c.sub(at, 1), 0)))
                is_first = c.either(c.compare("eq", at, 0), c.compare("ne", former, key))
                with c.when(c.both(is_first, c.compare("slt", key, s.n))):
                    _, numbers, ends = memory(c)
                    stop = e.convert(e.load(c.at(ends, c.add(c.mul(line, s.n), key), word), self.word), dt.int64).ref

                    def update(k: Ref) -> Val:
                        number = e.load(c.at(numbers, c.add(start, k), word), self.word)
                        j = e.convert(number, dt.int64).ref
                        return self.updates.value(c, c.add(c.mul(c.add(c.mul(outer, s.count), j), s.inner), inside))

                    place = c.add(c.mul(c.add(c.mul(outer, s.n), key), s.inner), inside)
                    to = c.at(self.out, place, self.dtype.itemsize)
                    self._add_up(s, to, at, stop, update)

        phases = [
            *radix.phases(self.module, lambda: KernelBuilder(self.e.sibling(), self.dims), self.symbol, self.buffers),
            self._phase("ends", (self.lines, self.count), note_ends, self._sorts),
            self._phase("add", (self.columns, self.count), add, self._sorts),
        ]
        return phases, radix.shared + sum(sizes, start=0)

    def _add_up(self, s: Scatter, to: str, begin: Ref, end: Ref, update: Callable[[Ref], Val]) -> None:
        """The updates of a place, of which several are on their way at once."""
        c, e = s.c, s.e
        many = c.add(begin, c.mul(c.div(c.sub(end, begin), _AHEAD), _AHEAD))
        with c.loop(begin, many, _AHEAD, [e.load(to, self.dtype, width=1)]) as iteration:
            total = iteration.carried[0]
            for value in [update(c.add(iteration.index, k)) for k in range(_AHEAD)]:
                total = s.sum(total, value)
            iteration.next = [total]
        with c.loop(many, end, 1, iteration.carried) as remainder:
            remainder.next = [s.sum(remainder.carried[0], update(remainder.index))]
        e.store(remainder.carried[0], to)

    def _scatter_in(self, c: KernelBuilder) -> Scatter:
        """What a scatter knows of its indices, in the code of somebody else."""
        result = self._scatter(c.e)
        result.c = c
        return result
