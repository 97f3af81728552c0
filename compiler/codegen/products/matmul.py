"""Matrix products: packed panels, and a micro-kernel that keeps a tile of sums in registers.

The order of the sum (``ops/evaluation_order.py``), hence its bits, is the same for every target, tile, shape and cut
of the work:

    total = 0;  for each block of K_BLOCK consecutive k, in order:
        p = 0;  for each k of the block, in order:  p = fma(a, b, p)
        total = total + p

Sums of narrow floats are kept in float32 and rounded once; integers wrap.  bfloat16 goes in runs of k, of which even
and odd ones are summed apart, by an fma that takes denormal numbers for zeros.  What a target has instructions for
decides how factors are packed, and changes no bits (``packed_formats.py``).  One row or one column may be summed in
the order of a row reduction instead: see ``gemv.py``.

How a kernel runs is decided in ``product_schedule.py``.  Rows or columns are cut into units; the rows and columns that
a piece asks for are walked in blocks.  Per block and k-block, rows of x are packed so that the micro-kernel finds each
element at a constant distance; then, panel by panel of columns, y is packed (or read where it lies) and the micro-
kernel runs down the rows.  Where several blocks of rows follow each other, panels are packed for the first of them and
kept for the others.  The micro-kernel is one function that knows only full tiles: at the edges the packing fills them
up, and what was computed from that is not stored.  Between k-blocks totals rest where the product is wanted, if all
there is to do is to store it; others rest in scratch, and the epilogue reads a finished tile from there while it is
still in the cache.  Of a symmetric product half the tiles are computed (``syrk.py``).  A product of one row does
without all this: see ``single_row_matmul.py`` and ``single_row_matmul_transposed.py``.

Factors are read through ``operand.Operand``, so whatever a factor is made of is computed as it is packed.

On a GPU teams of threads do the same, in the same order (``group_matmul.py``, ``group_gemv.py``), and single threads
what is too small for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.gpu.group_gemv import emit_group_gemv
from hybridflow.compiler.codegen.gpu.group_matmul_phases import GroupProduct, by_tiles
from hybridflow.compiler.codegen.gpu.shared_memory_operands import FactorOperand, SharedOperand
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.products.cache_blocking import SplitSide, even_step, steps_to
from hybridflow.compiler.codegen.products.gemv import Finish as LinesFinish, GemvOperands, Work, emit_gemv, go_along
from hybridflow.compiler.codegen.products.macro_kernel import (
    EpilogueOperands,
    IsNeeded,
    MacroKernel,
    OutputTotals,
    TileBounds,
)
from hybridflow.compiler.codegen.products.micro_kernel import Tile
from hybridflow.compiler.codegen.products.packed_formats import (
    Add,
    MultiplyKind,
    factor,
    multiply_add,
    packed_format_of,
    sum_depth,
)
from hybridflow.compiler.codegen.products.packing import BATCH, DEPTH, FREE
from hybridflow.compiler.codegen.products.product_schedule import (
    BlockedSchedule,
    LanesSchedule,
    ProductFacts,
    ProductSchedule,
    RowSchedule,
    SplitSchedule,
    TransposedRowSchedule,
    UnpackedSchedule,
    candidates,
    factor_facts,
)
from hybridflow.compiler.codegen.products.single_row_matmul import SingleRowMatmul
from hybridflow.compiler.codegen.products.single_row_matmul_transposed import SingleRowMatmulTransposed
from hybridflow.compiler.codegen.products.syrk import Finish
from hybridflow.compiler.codegen.products.unpacked_matmul import UnpackedMatmul
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent, larger
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.schedule_choice import Choose, take_first
from hybridflow.compiler.loops.tuning import MIN_PACKED_EXTENT
from hybridflow.compiler.ops.evaluation_order import K_BLOCK

Epilogue = Callable[[Emitter, Val, str, str, str, "Val | None"], None]
"""``epilogue(e, value, batch, row, col, mask)`` stores a finished vector, of the product's dtype and ``e.width`` lanes
that follow (row, col) in row-major order, which are i64 operands.  ``mask`` is None when all lanes are active."""

NeededElements = Callable[[Emitter, str, str, str, "Val | None"], Val]
"""``looks(e, batch, row, col, mask)``: at which of the elements that an epilogue is given it looks."""


@dataclass(frozen=True)
class MatmulShape:
    """The extents of a product; those of ``batch`` and of each part of the operands have been multiplied."""

    batch: tuple[Extent, ...]
    m: Extent
    n: Extent
    k: Extent

    @property
    def swapped(self) -> MatmulShape:
        return MatmulShape(self.batch, self.n, self.m, self.k)


_Written = Callable[..., "tuple[_Matmul, EmittedKernel]"]


class MatmulOperands(NamedTuple):
    """What the body of a phase is written with, from its beginning: the parts of the operands are batch, rows or
    columns, and depth (see ``packing``).  ``plain`` points to the product itself, [batch, m, n], where the epilogue
    does nothing else than store it.  ``beside`` are arrays that lie like it, whose same element the epilogue reads: the
    address of the first, and the bytes of one.  ``looks``: a tile at no element of which anybody looks is not computed,
    but zeros."""

    code: KernelBuilder
    left: Operand
    right: Operand
    epilogue: Epilogue
    plain: str | None = None
    epilogue_operands: tuple[tuple[str, int], ...] = ()
    needed: NeededElements | None = None


def emit_matmul(
    module: LLVMModule,
    source: Callable[[], MatmulOperands],
    symbol: str,
    shape: MatmulShape,
    buffers: int,
    result: np.dtype,
    lanes: bool = False,
    thread_groups: bool = False,
    precision: str = "highest",
    block: int = 0,
    skip_zeros: bool = False,
    symmetric: bool = False,
    choose: Choose = take_first,
) -> tuple[EmittedKernel, str]:
    """Add the kernel ``symbol`` over ``buffers`` buffers: out[batch, m, n] = the sum over k of left times right, of
    dtype ``result``; a single row or column is summed by ``lanes`` where asked for.  Also says how.  On a GPU units may
    be those of ``thread_groups`` of threads, whose tensor cores may be of ``precision``; or of a team that is a
    ``block`` of so many threads, within a kernel that has it do all units.

    ``gaps``: rows on the left are expected to begin or end with zeros.  ``symmetric``: the right is the left one's
    transpose.  On a CPU ``choose`` takes one of the schedules.

    ``source`` is asked once for each phase.  Units on a CPU: a panel of rows by blocks of columns, or of columns by
    blocks of rows, of each batch entry; two panels of columns, where only half of a symmetric product is computed;
    where the depth is cut, blocks of it, and then rows; on a GPU: tiles, or elements of the product.
    """

    def written(name: str, write: Callable[[_Matmul], Work], for_host: bool = False) -> tuple[_Matmul, EmittedKernel]:
        product = _Matmul(source(), shape, result, precision, skip_zeros, symmetric)
        if shape.n == 1 and shape.m != 1:
            product = product.swapped()
        units, grain, scratch = write(product)
        product.e.line("ret void")
        parameters = kernel_parameters(buffers)
        function = module.function(product.e, name, parameters, linkage="internal", for_host=for_host)
        phase = Phase(
            function,
            units,
            grain,
            least=product.least,
            group_size=product.group,
            dynamic_shared_bytes=product.dynamic_shared_bytes,
        )
        return product, EmittedKernel((phase,), scratch, product.shared)

    def whole(product: _Matmul) -> Work:
        facts = product.facts(lanes)
        return product.emit_scheduled(module, symbol, choose(facts, candidates(facts, module.target)))

    if module.target.kind == "cuda":
        return _for_gpu(written, symbol, lanes, thread_groups, block)
    first, code = written(symbol, whole)
    how = first.schedule
    if not isinstance(how, SplitSchedule):
        return code, str(how)
    (sequential,) = code.phases
    _, sums = written(f"{symbol}_depths", lambda product: product.sums_of_depths(module, symbol, how), True)
    _, totals = written(f"{symbol}_totals", lambda product: product.totals(how.pieces), True)
    scratch = larger(code.scratch, sums.scratch)
    return EmittedKernel((*sums.phases, *totals.phases), scratch, sums.shared, sequential), str(how)


def _for_gpu(written: _Written, symbol: str, lanes: bool, thread_groups: bool, block: int) -> tuple[EmittedKernel, str]:
    """A product by teams of threads, where these may be and have something to do together, or by single threads."""
    if lanes:
        product, code = written(
            symbol, lambda product: product.by_group_lanes() if thread_groups else product.by_lanes()
        )
        return code, product.how
    how: GroupProduct | None = None

    def whole(product: _Matmul) -> Work:
        nonlocal how
        how = product.thread_groups(block) if thread_groups or block else None
        return product.elementwise() if how is None else product.by_thread_groups(how)

    product, code = written(symbol, whole)
    if how is None:
        return code, product.how
    chosen = how
    if chosen.how.blocks == 1:
        return code, str(chosen.how)
    _, totals = written(f"{symbol}_totals", lambda product: product.totals_by_elements(chosen))
    return replace(code, phases=(*code.phases, *totals.phases)), str(chosen.how)


class _Matmul:
    """One product being emitted."""

    def __init__(
        self,
        source: MatmulOperands,
        shape: MatmulShape,
        result: np.dtype,
        precision: str = "highest",
        skip_zeros: bool = False,
        symmetric: bool = False,
    ) -> None:
        self.precision, self.skip_zeros, self.symmetric = precision, skip_zeros, symmetric
        self.c, self.left, self.right, self.epilogue, self.plain, self.beside, self.needed = source
        self.e, self.shape, self.result = self.c.e, shape, result
        self.form = packed_format_of(self.e.target, self.left.dtype, result)
        self.m, self.n, self.k = (self.c.extent(x) for x in (shape.m, shape.n, shape.k))
        self.least = 1  # units that are worth packing the other factor for
        self.group = 1  # threads of a GPU that run a unit
        self.dynamic_shared_bytes = 0  # bytes of memory of the block that they have the use of
        self.how = "an element a thread"
        self.schedule: ProductSchedule | None = None  # on a CPU
        self.shared: Extent = 0  # bytes

    def swapped(self) -> _Matmul:
        """The same for a product of one column, as one row: vectors then run along it."""
        finish, needed = self.epilogue, self.needed

        def epilogue(e: Emitter, value: Val, batch: str, row: str, col: str, mask: Val | None) -> None:
            finish(e, value, batch, col, row, mask)

        def looked(e: Emitter, batch: str, row: str, col: str, mask: Val | None) -> Val:
            assert needed is not None
            return needed(e, batch, col, row, mask)

        swapped = MatmulOperands(
            self.c, self.right, self.left, epilogue, self.plain, self.beside, None if needed is None else looked
        )
        return _Matmul(swapped, self.shape.swapped, self.result, self.precision)

    def facts(self, lanes: bool) -> ProductFacts:
        """What decides how it runs on a CPU."""
        is_plain = self.plain is not None and self.form.sums == self.result
        return ProductFacts(
            *(self.shape.batch, self.shape.m, self.shape.n, self.shape.k, self.form),
            *(factor_facts(self.left), factor_facts(self.right)),
            *(lanes, self.symmetric, is_plain, self.skip_zeros),
        )

    def emit_scheduled(self, module: LLVMModule, symbol: str, schedule: ProductSchedule) -> Work:
        """All of the product, as a schedule says."""
        self.schedule = schedule
        whole = schedule.whole if isinstance(schedule, SplitSchedule) else schedule
        if isinstance(whole, LanesSchedule):
            return self.by_lanes(whole.along)
        if isinstance(whole, RowSchedule):
            return self._row(whole)
        if isinstance(whole, TransposedRowSchedule):
            return self._transposed_row(whole)
        if isinstance(whole, UnpackedSchedule):
            return self._unpacked(whole.tile)
        return self._half(module, symbol, whole) if whole.halved else self._emit_blocked(module, symbol, whole)

    def by_lanes(self, along: bool | None = None) -> Work:
        """One row: the lines are the columns of the other factor."""
        lines, finish = self._lines()
        return emit_gemv(self.c, lines, finish, self._are_needed, go_along(lines) if along is None else along)

    def by_group_lanes(self) -> Work:
        work = emit_group_gemv(self.c, *self._lines())
        self.group, self.how = work.group_size, work.how
        return work.units, 1, 0

    def _lines(self) -> tuple[GemvOperands, LinesFinish]:
        shape = self.shape

        def finish(value: Val, entry: Ref, line: Ref, mask: Val | None) -> None:
            self.epilogue(self.e, self.e.convert(value, self.result), str(entry), "0", str(line), mask)

        return GemvOperands(self.right, self.left, dt.compute_dtype(self.result), shape.batch, shape.n, shape.k), finish

    # ---- one element at a time

    def elementwise(self) -> Work:
        """A thread of a GPU computes whole elements."""
        c, e, shape = self.c, self.e, self.shape
        e.width = 1
        per_entry = c.mul(self.m, self.n)
        with c.loop("%begin", "%end") as unit:
            entry = c.div(unit.index, per_entry)
            inside = c.rem(unit.index, per_entry)
            row, col = c.div(inside, self.n), c.rem(inside, self.n)
            x = self.left.start.at(BATCH, entry).at(FREE, row)
            y = self.right.start.at(BATCH, entry).at(FREE, col)
            with c.loop(0, self.k, K_BLOCK, [e.zero(self.form.sums)]) as block:
                last = c.min(c.add(block.index, K_BLOCK), self.k)
                zeros = [e.zero(self.form.sums)]
                (total,) = sum_depth(c, self.form, block.index, last, zeros, (), self._adding(x, y))
                block.next = [e.add(block.carried[0], total)]
            self.epilogue(e, e.convert(block.carried[0], self.result), str(entry), str(row), str(col), None)
        return (*shape.batch, shape.m, shape.n), 1, 0

    def _adding(self, x: OperandAccess, y: OperandAccess) -> Add:
        """Adds the products of a row and a column, element by element."""
        c, e, form = self.c, self.e, self.form

        def add(first: Ref, count: int, chains: list[list[Val]], positions: Sequence[Val]) -> Sequence[Val]:
            for i in range(count):
                sums, k = chains[i % len(chains)], c.add(first, i)
                a, b = (reading.value(reading.counters_at(DEPTH, k)) for reading in (x, y))
                sums[0] = multiply_add(e, form, factor(e, a, form, True), factor(e, b, form, False), sums[0])
            return ()

        return add

    # ---- teams of threads

    def thread_groups(self, block: int) -> GroupProduct | None:
        """How teams do it, or one that is a block of so many threads."""
        shape, may_round = self.shape, self.precision == "high" and self.result == dt.float32
        return by_tiles(
            self.form, shape.batch, shape.m, shape.n, shape.k, self.e.fastmath, self.left.dtype, may_round, block
        )

    def by_thread_groups(self, groups: GroupProduct) -> Work:
        """Units: tiles of the product, or of the sums of each block of the depth, which go to shared memory."""
        tile = groups.how.tile

        def sides(c: KernelBuilder, group: ThreadGroup) -> tuple[SharedOperand, SharedOperand]:
            return (
                FactorOperand(c, group, groups.form, True, tile.rows, tile.depth, self.m, self.k, self.left),
                FactorOperand(c, group, groups.form, False, tile.columns, tile.depth, self.n, self.k, self.right),
            )

        groups.write(self.c, sides, self._store)
        self.group, self.shared = tile.threads, groups.shared
        self.dynamic_shared_bytes = tile.nbytes(groups.form.sums.itemsize) if groups.how.dynamic_shared_bytes else 0
        return groups.units, 1, 0

    def totals_by_elements(self, groups: GroupProduct) -> Work:
        """Elements of the product from the sums of all blocks of the depth."""
        groups.write_totals(self.c, self._store)
        return (*self.shape.batch, self.shape.m, self.shape.n), 1, 0

    def _store(self, value: Val, entry: Ref, row: Ref, col: Ref) -> None:
        self.epilogue(self.e, self.e.convert(value, self.result), str(entry), str(row), str(col), None)

    # ---- blocks and tiles

    def _unpacked(self, tile: Tile) -> Work:
        """Units: tiles down the rows."""
        c, e, (m, n, k) = self.c, self.e, (self.shape.m, self.shape.n, self.shape.k)
        assert isinstance(m, int) and isinstance(n, int) and isinstance(k, int)

        def finish(value: Val, entry: Ref, row: Ref, col: Ref, mask: Val | None) -> None:
            self.epilogue(e, e.convert(value, self.result), str(entry), str(row), str(col), mask)

        def finish_tile(totals: str, entry: Ref, row: Ref, height: Ref, col: Ref, width: Ref) -> None:
            self._finish(totals, tile, entry, row, height, col, width)

        def is_seen(entry: Ref, row: Ref, height: Ref, col: Ref, width: Ref) -> str | bool:
            return self._is_needed(tile, entry, TileBounds(row, height, col, width))

        direct = UnpackedMatmul(c, self.form, self.left, self.right, tile, m, n, k, finish, finish_tile, is_seen)
        direct.emit()
        return (*self.shape.batch, direct.steps), 1, direct.scratch

    def _row(self, how: RowSchedule) -> Work:
        """Units: strips of columns."""
        n, k = self.shape.n, self.shape.k
        row = SingleRowMatmul(self.c, self.form, self.left, self.right, n, k, self._finish_row, how.width)
        row.emit()
        return (*self.shape.batch, row.steps), 1, row.scratch

    def _transposed_row(self, how: TransposedRowSchedule) -> Work:
        """Units: strips of columns."""
        n, k = self.shape.n, self.shape.k
        row = SingleRowMatmulTransposed(
            self.c,
            self.form,
            self.left,
            self.right,
            n,
            k,
            self._finish_row,
            self._are_needed,
            how.width,
            how.squares,
            how.by_halves,
        )
        row.emit()
        return (*self.shape.batch, row.steps), 1, row.scratch

    def _finish_row(self, value: Val, entry: Ref, col: Ref, mask: Val | None) -> None:
        self.epilogue(self.e, self.e.convert(value, self.result), str(entry), "0", str(col), mask)

    def _half(self, module: LLVMModule, symbol: str, how: BlockedSchedule) -> Work:
        """Units: two panels of columns, one as far from the first as the other is from the last.  From the diagonal
        down, all of these pairs have as many tiles, but that the first unit may be a single panel, the middle one:
        pieces of many units come first."""
        c, block = self.c, how.blocks
        rows, columns = block.tile.rows, block.tile.columns
        routine = self._routine(module, symbol, how)
        panels = steps_to(self.shape.n, columns)
        pairs = steps_to(panels, 2)
        self.least = -(-MIN_PACKED_EXTENT // (2 * columns))
        count, half = c.extent(panels), c.extent(pairs)
        with c.spans("%begin", "%end", half) as (entry, first, last):
            x, y = self.left.start.at(BATCH, entry), self.right.start.at(BATCH, entry)
            left, right = c.sub(half, last), c.sub(count, c.sub(half, last))  # of all our panels
            meet = c.compare("eq", first, 0)  # then all panels between are ours as well

            def finish(totals: str, row: Ref, height: Ref, col: Ref, width: Ref) -> None:
                self._finish(totals, block.tile, entry, row, height, col, width)

            with c.loop(0, 2) as side:
                near = c.compare("eq", side.index, 0)
                begin = c.choose(near, left, c.choose(meet, right, c.sub(count, c.sub(half, first))))
                end = c.choose(near, c.choose(meet, right, c.sub(half, first)), right)
                begin, end = c.mul(begin, columns), c.min(c.mul(end, columns), self.n)
                step = even_step(c, begin, end, block.columns, columns)
                with c.loop(begin, end, step) as across:
                    length, top = c.min(step, c.sub(end, across.index)), c.mul(c.div(across.index, rows), rows)
                    down_step = even_step(c, top, self.m, block.height, rows)
                    with c.loop(top, self.m, down_step) as down:
                        height = c.min(down_step, c.sub(self.m, down.index))
                        self._all_depth(
                            routine, entry, (x, y), TileBounds(down.index, height, across.index, length), finish
                        )
        return (*self.shape.batch, pairs), 1, routine.scratch

    def _routine(self, module: LLVMModule, symbol: str, how: BlockedSchedule) -> MacroKernel:
        return MacroKernel(module, f"{symbol}.tile", self.c, self.left, self.right, self.form, how)

    def _emit_blocked(self, module: LLVMModule, symbol: str, how: BlockedSchedule) -> Work:
        c, block, tile = self.c, how.blocks, how.blocks.tile
        routine = self._routine(module, symbol, how)
        sides = SplitSide(self.shape.m, block.height, tile.rows), SplitSide(self.shape.n, block.columns, tile.columns)
        by_rows = how.splits_rows
        cut, whole = sides if by_rows else sides[::-1]
        self.least = 1 if routine.steps_of_rows and not by_rows else cut.least  # there, no rows are packed
        across, down = cut.steps, whole.blocks  # units of a line, and lines of a batch entry
        whole_step = even_step(c, 0, c.extent(whole.extent), whole.block, whole.grain)

        with c.spans("%begin", "%end", c.extent(across)) as (line, first, last):
            entry, at = c.div(line, c.extent(down)), c.mul(c.rem(line, c.extent(down)), whole_step)
            beside = at, c.min(whole_step, c.sub(c.extent(whole.extent), at))
            x, y = self.left.start.at(BATCH, entry), self.right.start.at(BATCH, entry)
            begin, end = c.mul(first, cut.grain), c.min(c.mul(last, cut.grain), c.extent(cut.extent))
            cut_step = even_step(c, begin, end, cut.block, cut.grain)

            def finish(totals: str, row: Ref, height: Ref, col: Ref, width: Ref) -> None:
                self._finish(totals, tile, entry, row, height, col, width)

            def is_seen(place: TileBounds) -> str | bool:
                return self._is_needed(tile, entry, place)

            with c.loop(begin, end, cut_step) as part:
                part_range = part.index, c.min(cut_step, c.sub(end, part.index))
                (row, height), (col, length) = (part_range, beside) if by_rows else (beside, part_range)
                self._all_depth(routine, entry, (x, y), TileBounds(row, height, col, length), finish, is_seen)
        return (*self.shape.batch, down, across), 1, routine.scratch

    def _all_depth(
        self,
        routine: MacroKernel,
        entry: Ref,
        factors: tuple[OperandAccess, OperandAccess],
        place: TileBounds,
        finish: Finish,
        is_seen: IsNeeded | None = None,
    ) -> None:
        """The sums of a block of rows and columns, one block of the depth after the other."""
        c = self.c
        with c.loop(0, c.max(self.k, 1), self.form.block) as at_k:  # an empty sum takes one turn as well
            output, epilogue_operands = self._output_totals(entry), self._epilogue_operands(entry)
            routine.run(
                *factors,
                *place,
                at_k.index,
                self.k,
                finish,
                output,
                epilogue_operands=epilogue_operands,
                is_needed=is_seen,
            )

    @property
    def _accumulates_in_output(self) -> bool:
        """Whether totals may grow in the product: these are all that there is to store."""
        return self.plain is not None and self.form.sums == self.result and self.form.multiply is not MultiplyKind.TILES

    def _output_totals(self, entry: Ref) -> OutputTotals | None:
        if self.plain is None or not self._accumulates_in_output:
            return None
        c, size = self.c, self.result.itemsize
        return OutputTotals(c.at(self.plain, c.mul(entry, c.mul(self.m, self.n)), size), self.n)

    def _epilogue_operands(self, entry: Ref) -> EpilogueOperands | None:
        """What the epilogue reads beside the product.  It is walked by tiles, which no machine foresees, and weights
        were last seen a step ago: only what fits into the first cache is not asked for."""
        c, each = self.c, sum(size for _, size in self.beside)
        if not each:
            return None
        matrix = c.mul(self.m, self.n)
        arrays = [(c.at(pointer, c.mul(entry, matrix), size), size) for pointer, size in self.beside]
        return EpilogueOperands(arrays, self.n, c.compare("sgt", c.mul(matrix, each), self.e.target.l1))

    def _is_needed(self, tile: Tile, entry: Ref, place: TileBounds) -> str | bool:
        """Whether somebody looks at a tile.  The last row is asked first: it sees most where masks are causal."""
        c, e, needed = self.c, self.e, self.needed
        if needed is None or self.form.multiply is MultiplyKind.TILES:
            return True
        whole = isinstance(place.width, int) and place.width == tile.columns

        def some(row: Ref) -> str:
            with c.width(tile.width):
                any_lane = e.const(False, dt.bool_)
                for start in range(0, tile.columns, tile.width):
                    e.mask = None if whole else c.lanes_below(c.max(c.sub(place.width, start), 0))
                    lanes = needed(e, str(entry), str(row), str(c.add(place.col, start)), e.mask)
                    any_lane = e.or_(any_lane, lanes if e.mask is None else e.and_(lanes, e.mask))
                e.mask = None
                return e.any(any_lane)

        def others() -> list[Val]:
            with c.loop(0, c.sub(place.height, 1), 1, [e.const(False, dt.bool_, 1)]) as r:
                r.next = [e.or_(r.carried[0], Val(some(c.add(place.row, r.index)), dt.bool_, 1))]
            return r.carried

        last = some(c.add(place.row, c.sub(place.height, 1)))
        (needed_tile,) = c.either_way(last, lambda: [e.const(True, dt.bool_, 1)], others)
        return needed_tile.ref

    def _are_needed(self, entry: Ref, first: Ref, end: Ref) -> str | bool:
        """Whether somebody looks at columns of a single row, ``e.width`` at the most."""
        c, e, needed = self.c, self.e, self.needed
        if needed is None:
            return True
        e.mask = c.lanes_below(c.sub(end, first))
        lanes = e.and_(needed(e, str(entry), "0", str(first), e.mask), e.mask)
        e.mask = None
        return e.any(lanes)

    # ---- blocks of the depth

    def sums_of_depths(self, module: LLVMModule, symbol: str, how: SplitSchedule) -> Work:
        """The sums of each block of the depth, into shared memory: [batch, block, row, column]."""
        c, sums, count, block = self.c, self.form.sums, how.pieces, how.piece.blocks
        at_home = how.piece.in_output
        routine = self._routine(module, symbol, how.piece)
        row_step, col_step = (
            even_step(c, 0, extent, most, grain)
            for extent, most, grain in (
                (self.m, block.height, block.tile.rows),
                (self.n, block.columns, block.tile.columns),
            )
        )
        with c.spans("%begin", "%end", count) as (entry, first, last):
            x, y = self.left.start.at(BATCH, entry), self.right.start.at(BATCH, entry)
            with c.loop(first, last) as at:
                base = c.mul(c.add(c.mul(entry, count), at.index), self.m)

                def finish(totals: str, row: Ref, height: Ref, col: Ref, width: Ref) -> None:
                    def keep(value: Val, r: Ref, j: Ref, mask: Val | None) -> None:
                        position = c.add(c.mul(c.add(base, r), self.n), j)
                        self.e.store(value, c.at("%shared", position, sums.itemsize), mask)

                    self._each_sum(totals, block.tile, row, height, col, width, keep)

                with c.loop(0, self.m, row_step) as down, c.loop(0, self.n, col_step) as across:
                    height, length = (
                        c.min(a, c.sub(b, i.index))
                        for a, b, i in ((row_step, self.m, down), (col_step, self.n, across))
                    )
                    routine.run(
                        x,
                        y,
                        down.index,
                        height,
                        across.index,
                        length,
                        c.mul(at.index, self.form.least_block),
                        self.k,
                        finish,
                        OutputTotals(c.at("%shared", c.mul(base, self.n), sums.itemsize), self.n) if at_home else None,
                        sequential=True,
                    )
        self.shared = product((*self.shape.batch, count, self.shape.m, self.shape.n)) * sums.itemsize
        return (*self.shape.batch, count), 1, routine.scratch

    def totals(self, count: int) -> Work:
        """Rows of the product from the sums of all blocks of the depth, added up in order."""
        c, e, sums = self.c, self.e, self.form.sums
        size = c.mul(self.m, self.n)
        with c.spans("%begin", "%end", self.m) as (entry, first, last), c.loop(first, last) as row:
            start = c.add(c.mul(c.mul(entry, count), size), c.mul(row.index, self.n))

            def total(col: Ref, mask: Val | None) -> None:
                with c.loop(0, count, 1, [e.zero(sums)]) as block:
                    address = c.at("%shared", c.add(start, c.add(c.mul(block.index, size), col)), sums.itemsize)
                    block.next = [e.add(block.carried[0], e.load(address, sums, mask))]
                value = e.convert(block.carried[0], self.result)
                self.epilogue(e, value, str(entry), str(row.index), str(col), mask)

            c.vector_loop(0, self.n, lanes_for(e.target, sums, self.shape.n), total)
        return (*self.shape.batch, self.shape.m), 1, 0

    def _finish(self, totals: str, tile: Tile, entry: Ref, row: Ref, height: Ref, col: Ref, width: Ref) -> None:
        """Hand the finished tile to the epilogue."""

        def hand_over(value: Val, row: Ref, col: Ref, mask: Val | None) -> None:
            self.epilogue(self.e, self.e.convert(value, self.result), str(entry), str(row), str(col), mask)

        self._each_sum(totals, tile, row, height, col, width, hand_over)

    def _each_sum(
        self,
        totals: str,
        tile: Tile,
        row: Ref,
        height: Ref,
        col: Ref,
        width: Ref,
        action: Callable[[Val, Ref, Ref, Val | None], None],
    ) -> None:
        """``action(sums, row, col, mask)`` for each vector of a tile's finished sums."""
        c, sums = self.c, self.form.sums
        with c.loop(0, height) as r:
            line = c.at(totals, c.mul(r.index, tile.columns), sums.itemsize)

            def at(j: Ref, mask: Val | None) -> None:
                value = self.e.load(c.at(line, j, sums.itemsize), sums)
                action(value, c.add(row, r.index), c.add(col, j), mask)

            c.vector_loop(0, width, tile.width, at)
