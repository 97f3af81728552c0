"""A block of a product over one k-block: packs both factors and runs the micro-kernel; see ``contract``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, OperandAccess, stride
from hybridflow.compiler.codegen.products import amx_micro_kernel
from hybridflow.compiler.codegen.products.cache_blocking import even_step
from hybridflow.compiler.codegen.products.micro_kernel import UnpackedColumns, emit_micro_kernel
from hybridflow.compiler.codegen.products.packed_formats import (
    MultiplyKind,
    PackedFormat,
    magnitudes,
    never_denormal,
)
from hybridflow.compiler.codegen.products.packing import DEPTH, FREE, Packing
from hybridflow.compiler.codegen.products.product_schedule import BlockedSchedule, ColumnsRead, RowsRead
from hybridflow.compiler.codegen.products.syrk import Finish, SymmetricFill
from hybridflow.compiler.codegen.products.zero_skipping import SPAN, emit_nonzero_span, is_finite, load_nonzero_span
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.tuning import (
    CACHE_LINE,
    FEW_TILES,
    FEW_TILES_OF_LINES,
)


class OutputTotals(NamedTuple):
    """Where a matrix of totals lies in memory: the address of its first element, and the elements from row to row."""

    address: str
    pitch: Ref


class EpilogueOperands(NamedTuple):
    """Matrices whose elements are read with those of the totals: the address of the first and the bytes of one, of
    each; the elements from row to row; and whether they are so large that they have to be asked for in advance."""

    arrays: Sequence[tuple[str, int]]
    pitch: Ref
    far: str | bool


IsNeeded = Callable[["TileBounds"], "str | bool"]
"""Whether somebody looks at a tile."""


class _KBlock(NamedTuple):
    """A k-block: where it begins, how deep it is in elements and in cells, and whether it is the first or the last one;
    and what becomes of its sums."""

    k: Ref
    depth: Ref
    cells: Ref
    first: str | bool
    last: str | bool
    finish: Finish
    output: OutputTotals | None
    epilogue_operands: EpilogueOperands | None
    is_needed: IsNeeded | None


class TileBounds(NamedTuple):
    """What of a tile, or of a block, there is in the product."""

    row: Ref
    height: Ref
    col: Ref
    width: Ref


class MacroKernel:
    """The sums of a block of rows and columns over one k-block: packs both factors and runs the micro-kernel.

    Scratch, from %scratch on: packed rows, packed panels of columns, totals, where groups are packed one panel before
    that, with ``gaps`` where the rows of each tile are zero; what of a product that is ``halved`` is being transposed;
    ``scratch`` bytes in all.  Totals that grow in the output need room for those of one tile.

    Of a product that is ``halved``, tiles whose elements all lie above the diagonal are left out; after the last
    k-block they are filled with what lies opposite (see ``syrk.py``).
    """

    def __init__(
        self,
        module: LLVMModule,
        symbol: str,
        code: KernelBuilder,
        left: Operand,
        right: Operand,
        form: PackedFormat,
        schedule: BlockedSchedule,
    ) -> None:
        self.c, self.e, self.form, self.schedule, self.blocks = code, code.e, form, schedule, schedule.blocks
        blocks, at_home, halved, skip_zeros = self.blocks, schedule.in_output, schedule.halved, schedule.skips_zeros
        width = blocks.tile.width
        self.left, self.right = Packing(code, left, form, width, True), Packing(code, right, form, width, False)
        self.lines = schedule.rows in (RowsRead.LINES, RowsRead.TRANSPOSED_CELLS)
        self.transposed = schedule.columns is ColumnsRead.TRANSPOSED
        tile, self.item = blocks.tile, form.cell.itemsize
        self.steps_of_rows = schedule.row_steps
        # A pitch of lines that is not a power of two spreads them over the sets of the cache.
        self.pitch = blocks.depth + 64 // self.item if self.lines else blocks.depth
        # Rows of x whose neighbours lie across them are packed like columns, and then transposed cell by cell.
        self.cells_are_transposed = schedule.rows is RowsRead.TRANSPOSED_CELLS
        totals = tile.rows * tile.columns if blocks.one_block or at_home else blocks.height * blocks.columns
        if halved and blocks.one_block and not at_home:  # those of a panel are turned together
            totals = blocks.rows * tile.columns
        widest = max(tile.rows, tile.columns) * blocks.depth
        loose = widest if form.group > 1 else 0
        # Panels begin at different sets of the cache, too.
        self.panel_pitch = tile.columns * blocks.depth + 64 // self.item
        panels = blocks.columns // tile.columns if blocks.keeps else blocks.panels_per_pass
        columns = 0 if schedule.columns is ColumnsRead.PREPACKED else panels * self.panel_pitch
        unturned = tile.rows * blocks.depth if self.cells_are_transposed else 0
        opposite = SymmetricFill.size(tile) if halved else 0
        rows = 0 if self.steps_of_rows else blocks.rows * self.pitch
        offsets = [0]
        for cells, size in (
            (rows, self.item),
            (columns, self.item),
            (totals, form.sums.itemsize),
            (loose, self.item),
            (unturned, self.item),
            (blocks.rows // tile.rows if skip_zeros else 0, SPAN),
            (opposite, form.sums.itemsize),
        ):
            offsets.append(offsets[-1] + -(-cells * size // 64) * 64)
        self.packed_a, self.packed_b, self.totals, self.loose, self.unturned = (
            code.at("%scratch", at, 1) for at in offsets[:5]
        )
        self.spans = code.at("%scratch", offsets[5], 1) if skip_zeros else ""
        self.mirror = SymmetricFill(code, form.sums, tile, code.at("%scratch", offsets[6], 1)) if halved else None
        self.scratch = offsets[-1]
        self.steps = steps = self.steps_of_rows or ((self.pitch, 1) if self.lines else (1, tile.rows))
        forms = {"": form} if form.multiply is not MultiplyKind.RUNS else {"": form, ".unflushed": form.unflushed}
        target, fastmath = code.e.target, code.e.fastmath
        self.find_span = (
            emit_nonzero_span(module, f"{symbol}.span", target, tile, form.cell, steps) if skip_zeros else None
        )
        self.unpacked_kernel: str | None = None
        if form.multiply is MultiplyKind.TILES:
            kernel = amx_micro_kernel.emit_tile_kernel(
                module, symbol, target, fastmath, form, tile, steps[0], blocks.one_block
            )
            self.micro_kernels = [kernel]
            return
        multiple = 1 if skip_zeros else blocks.multiple  # what is left out may be any number of cells
        self.micro_kernels = [
            emit_micro_kernel(module, symbol + suffix, target, fastmath, one, tile, *steps, blocks.one_block, multiple)
            for suffix, one in forms.items()
        ]
        # Cells of what is not packed are made in registers.  Panels of lines that are not whole are packed.
        if form.group > 1 and schedule.columns in (ColumnsRead.IN_PLACE_IF_FEW, ColumnsRead.PREPACKED):
            self.unpacked_kernel = emit_micro_kernel(
                *(module, f"{symbol}.unpacked", target, fastmath, form, tile, *steps, blocks.one_block, multiple),
                UnpackedColumns(right.dtype, schedule.columns is ColumnsRead.PREPACKED),
            )

    def run(
        self,
        x: OperandAccess,
        y: OperandAccess,
        row: Ref,
        height: Ref,
        col: Ref,
        length: Ref,
        k: Ref,
        end: Ref,
        finish: Finish,
        output: OutputTotals | None = None,
        sequential: bool = False,
        epilogue_operands: EpilogueOperands | None = None,
        is_needed: IsNeeded | None = None,
    ) -> None:
        """One k-block, from ``k`` of ``end``, for ``height`` rows from ``row`` and ``length`` columns from ``col``.
        After the last k-block, or if it stands ``sequential``, each tile is handed to ``finish``; but totals grow in
        their ``home``, if they have one."""
        c, tile, blocks = self.c, self.blocks.tile, self.blocks
        depth = c.min(self.form.least_block if sequential else self.form.block, c.sub(end, k))
        sequential |= blocks.one_block
        first = True if sequential else c.compare("eq", k, 0)
        last = True if sequential else c.compare("sge", c.add(k, self.form.block), end)
        k_block = _KBlock(
            k, depth, self.form.cells(c, depth), first, last, finish, output, epilogue_operands, is_needed
        )
        most = FEW_TILES if self.unpacked_kernel is None else FEW_TILES_OF_LINES
        most = 1 if self.right.operand.collides(DEPTH) else most
        few = c.compare("sle", height, most * tile.rows) if blocks.tiles is None else blocks.tiles <= most
        step = even_step(c, 0, height, blocks.rows, tile.rows) if blocks.keeps else height
        if self.mirror is not None:
            length = self.mirror.columns(col, length, c.add(row, height))
        with c.loop(0, height if blocks.keeps else 1, step if blocks.keeps else 1) as part:
            high, top = c.min(step, c.sub(height, part.index)), c.add(row, part.index)
            if self.steps_of_rows is None:
                self._pack_rows(x, top, high, k, depth)
            self._find_spans(x, top, high, k, depth)
            least = self._least_of_rows(high, depth)
            with c.loop(0, length, blocks.panels_per_pass * tile.columns) as group:
                wide, left = (
                    c.min(blocks.panels_per_pass * tile.columns, c.sub(length, group.index)),
                    c.add(col, group.index),
                )
                panels = self._packed_panel(self.packed_b, group.index if blocks.keeps else 0)
                with c.when(c.compare("eq", part.index, 0)):
                    self._pack_columns(y, panels, few, k, left, depth, wide)
                with c.loop(0, wide, tile.columns) as panel:
                    width = tile.columns if blocks.even_columns else c.min(tile.columns, c.sub(wide, panel.index))
                    source, pitch = self._panel(
                        y, self._packed_panel(panels, panel.index), few, k, c.add(left, panel.index), width
                    )
                    routine = self._micro_kernel(least, source, depth)
                    if self.unpacked_kernel is not None:
                        routine = c.choose_pointer(self._direct(few, width), f"@{self.unpacked_kernel}", routine)
                    finite = self._skips_zeros and is_finite(c, tile, self.form.cell, source, pitch, depth)
                    column, totals = c.add(left, panel.index), self.totals
                    if not sequential and output is None:
                        line = c.mul(c.add(group.index, panel.index), blocks.height)
                        line = c.add(line, c.mul(part.index, tile.columns))
                        totals = c.at(totals, line, self.form.sums.itemsize)
                    kept = output is None and not (sequential and self.mirror is None)
                    start = 0 if self.mirror is None else self.mirror.first_row(top, column)
                    with c.loop(start, high, tile.rows) as down:
                        place = TileBounds(
                            c.add(top, down.index),
                            tile.rows if blocks.even_rows else c.min(tile.rows, c.sub(high, down.index)),
                            column,
                            width,
                        )
                        line = c.mul(down.index, tile.columns) if kept else 0
                        row_totals = c.at(totals, line, self.form.sums.itemsize)
                        a, above = self._tile_of_rows(x, place.row, down.index, k)
                        cells, skipped = self._cells(k_block, place, down.index, finite)
                        a = c.at(a, c.mul(skipped, self.steps[1]), self.item)
                        b = c.at(source, c.mul(skipped, pitch), self.item)
                        self._tile(k_block, place, routine, a, above, b, pitch, row_totals, cells)
                    if self.mirror is not None:
                        with c.when(k_block.last):
                            self._fill_upper(self.mirror, k_block, top, high, column, totals)

    @property
    def _skips_zeros(self) -> bool:
        return self.find_span is not None

    def _find_spans(self, x: OperandAccess, top: Ref, height: Ref, k: Ref, depth: Ref) -> None:
        """Note where the rows of each tile are zero."""
        c, rows = self.c, self.blocks.tile.rows
        if self.find_span is None:
            return
        with c.loop(0, height, rows) as down:
            a, _ = self._tile_of_rows(x, c.add(top, down.index), down.index, k)
            span = c.at(self.spans, c.div(down.index, rows), SPAN)
            self._call(f"@{self.find_span}", f"ptr {a}, i64 {depth}, ptr {span}")

    def _cells(self, k_block: _KBlock, place: TileBounds, down: Ref, finite: str | bool) -> tuple[Ref, Ref]:
        """How many cells of the depth a tile is summed over, and how many are left out before these."""
        c, cells = self.c, k_block.cells
        skipped: Ref = 0
        if self._skips_zeros:
            first, end = load_nonzero_span(c, self.spans, c.div(down, self.blocks.tile.rows))
            skipped = c.choose(finite, first, 0)
            cells = c.sub(c.choose(finite, end, cells), skipped)
        if k_block.is_needed is not None:
            cells = c.choose(k_block.is_needed(place), cells, 0)
        return cells, skipped

    def _tile(
        self,
        k_block: _KBlock,
        place: TileBounds,
        routine: str,
        a: str,
        above: Ref,
        source: str,
        pitch: Ref,
        totals: str,
        cells: Ref,
    ) -> None:
        """A tile's sums over so many cells, whose rows begin ``above`` so many at ``a``, and whose columns lie at
        ``source``."""
        c, columns, output = self.c, self.blocks.tile.columns, k_block.output
        if k_block.epilogue_operands is not None:
            with c.when(c.both(k_block.last, k_block.epilogue_operands.far)):
                self._prefetch(k_block.epilogue_operands, place)
        begin = c.at(totals, c.mul(above, columns), self.form.sums.itemsize)
        if self.form.multiply is MultiplyKind.TILES:
            starts = str(k_block.first).lower()
            self._call(routine, f"ptr {a}, ptr {source}, i64 {pitch}, ptr {totals}, i64 {cells}, i1 {starts}")
        elif output is None:
            before = self._before(k_block.first, totals, columns)
            self._call(routine, f"ptr {a}, ptr {source}, i64 {pitch}, i64 {cells}, {before}ptr {totals}, i64 {columns}")
        else:
            there = c.at(output.address, c.add(c.mul(place.row, output.pitch), place.col), self.form.sums.itemsize)
            whole = c.both(c.compare("eq", place.width, columns), c.compare("eq", place.height, self.blocks.tile.rows))
            into, apart = c.choose_pointer(whole, there, totals), c.choose(whole, output.pitch, columns)
            before = self._before(c.either(k_block.first, c.negation(whole)), into, apart)
            self._call(routine, f"ptr {a}, ptr {source}, i64 {pitch}, i64 {cells}, {before}ptr {into}, i64 {apart}")
            with c.when(c.negation(whole)):
                self._add_part(k_block.first, begin, there, output.pitch, place)
            return
        with c.when(k_block.last):
            k_block.finish(begin, place.row, place.height, place.col, place.width)

    def _fill_upper(
        self, mirror: SymmetricFill, k_block: _KBlock, top: Ref, height: Ref, col: Ref, totals: str
    ) -> None:
        """Finish what lies opposite of ``height`` rows of a panel, whose totals are finished."""
        c, output, pitch = self.c, k_block.output, self.blocks.tile.columns
        if output is None:
            mirror.fill_upper(totals, pitch, top, height, col, k_block.finish)
        else:
            there = c.at(output.address, c.add(c.mul(top, output.pitch), col), self.form.sums.itemsize)
            mirror.fill_upper(there, output.pitch, top, height, col, k_block.finish)

    def _add_part(self, first: str | bool, sums: str, output: str, pitch: Ref, place: TileBounds) -> None:
        """Add a tile of sums that is not whole to the totals in their home."""
        c, e, columns, dtype = self.c, self.e, self.blocks.tile.columns, self.form.sums
        zeros = self._zeros()
        with c.loop(0, place.height) as r:
            line, there = c.mul(r.index, columns), c.mul(r.index, pitch)
            source, to = c.at(sums, line, dtype.itemsize), c.at(output, there, dtype.itemsize)
            before = c.choose_pointer(first, zeros, to)

            def add(j: Ref, mask: Val | None) -> None:
                of, addend = (e.load(c.at(at, j, dtype.itemsize), dtype, mask) for at in (before, source))
                e.store(e.add(of, addend), c.at(to, j, dtype.itemsize), mask)

            c.vector_loop(0, place.width, self.blocks.tile.width, add)

    def _prefetch(self, epilogue_operands: EpilogueOperands, place: TileBounds) -> None:
        """Ask for what lies beside a tile, while its sums are made."""
        c, columns = self.c, self.blocks.tile.columns
        with c.loop(0, place.height) as r:
            at = c.add(c.mul(c.add(place.row, r.index), epilogue_operands.pitch), place.col)
            for pointer, size in epilogue_operands.arrays:
                for line in range(0, columns, CACHE_LINE // size):
                    self.e.prefetch(c.at(pointer, c.add(at, line), size))

    def _call(self, routine: str, arguments: str) -> None:
        self.e.line(f"call void {routine}({arguments})")

    def _before(self, first: str | bool, totals: str, pitch: Ref) -> str:
        """Where a tile's totals of the blocks before are, and how far apart its rows lie there, as arguments."""
        if self.blocks.one_block:
            return ""
        c = self.c
        return f"ptr {c.choose_pointer(first, self._zeros(), totals)}, i64 {c.choose(first, 0, pitch)}, "

    def _zeros(self) -> str:
        """A row of a tile."""
        columns, sums = self.blocks.tile.columns, self.form.sums
        return self.e.table(np.zeros(columns, sums), f"zeros_{sums}_{columns}")

    # ---- sums that may be denormal

    def _micro_kernel(self, least: Val | None, panel: str, depth: Ref) -> str:
        """The function for a panel."""
        names = [f"@{name}" for name in self.micro_kernels]
        if least is None:
            return names[0]
        smallest = self._least(panel, 1, 0, self.c.mul(depth, self.blocks.tile.columns))
        return self.c.choose_pointer(never_denormal(self.e, least, smallest), names[1], names[0])

    def _least_of_rows(self, height: Ref, depth: Ref) -> Val | None:
        """The least magnitude among packed rows, where sums are flushed."""
        if self.form.multiply is not MultiplyKind.RUNS:
            return None
        c, rows = self.c, self.blocks.tile.rows
        panels = c.div(c.add(height, rows - 1), rows)
        if self.lines:
            return self._least(self.packed_a, c.mul(panels, rows), self.pitch, depth)
        return self._least(self.packed_a, panels, rows * self.pitch, c.mul(depth, rows))

    def _least(self, base: str, lines: Ref, pitch: Ref, length: Ref) -> Val:
        """The least magnitude (see ``magnitudes``) of packed elements in lines of that length, ``pitch`` apart."""
        c, e, width = self.c, self.e, self.blocks.tile.width
        whole = c.mul(c.div(length, width), width)
        least = [e.const(np.iinfo(np.uint32).max, dt.uint32, lanes) for lanes in (width, 1)]
        with c.loop(0, lines, 1, least) as line:
            start = c.at(base, c.mul(line.index, pitch), self.item)
            minima = []
            for (begin, end, lanes), before in zip(((0, whole, width), (whole, length, 1)), line.carried):
                with c.width(lanes), c.loop(begin, end, lanes, [before]) as at:
                    values = e.load(c.at(start, at.index, self.item), self.form.packed)
                    at.next = [e.minimum(at.carried[0], magnitudes(e, values))]
                minima.append(at.carried[0])
            line.next = minima
        vector, one = line.carried
        for lane in range(width):
            one = e.minimum(one, e.extract(vector, lane))
        return one

    # ---- packing

    def _tile_of_rows(self, x: OperandAccess, row: Ref, down: Ref, k: Ref) -> tuple[str, Ref]:
        """The address of the rows from ``row``, ``down`` from the first of the block, and how many rows above them it
        begins: in place there is nothing behind the last row, so the last tile reaches back."""
        c, place, extent = self.c, self.left.operand.in_memory, self.left.free.extent
        if self.steps_of_rows is None:
            return c.at(self.packed_a, c.mul(down, self.pitch), self.item), 0
        assert place is not None and isinstance(extent, int)
        first = c.min(row, extent - self.blocks.tile.rows)
        return x.address(*place, {self.left.free: first, self.left.depth: k}), c.sub(row, first)

    def _pack_rows(self, x: OperandAccess, row: Ref, height: Ref, k: Ref, depth: Ref) -> None:
        c, rows, group = self.c, self.blocks.tile.rows, self.form.group
        if self.cells_are_transposed:
            self._transpose_rows(x, row, height, k, depth)
            return
        if self.lines:
            padded = c.mul(c.div(c.add(height, rows - 1), rows), rows)
            self.left.lines(x, self.packed_a, self.pitch * group, row, height, padded, k, depth)
            return
        with c.loop(0, height, rows) as panel:
            to = c.at(self.packed_a, c.mul(panel.index, self.pitch), self.item)
            high = c.min(rows, c.sub(height, panel.index))
            plain = to if group == 1 else self.loose
            self.left.panel(x, plain, rows, c.add(row, panel.index), high, k, depth)
            if group > 1:
                self.left.interleave(plain, rows, to, rows, depth)

    def _transpose_rows(self, x: OperandAccess, row: Ref, height: Ref, k: Ref, depth: Ref) -> None:
        c, rows = self.c, self.blocks.tile.rows
        cells = self.form.cells(c, depth)
        with c.loop(0, height, rows) as panel:
            high = c.min(rows, c.sub(height, panel.index))
            first = c.add(row, panel.index)
            source, pitch = self._plain_panel(self.left, x, self.loose, k, first, depth, high, rows)
            self.left.interleave(source, pitch, self.unturned, rows, depth)
            self._fill_tiles(self.unturned, cells, rows)
            to = c.at(self.packed_a, c.mul(panel.index, self.pitch), self.item)
            self.left.transpose_cells(self.unturned, rows, to, self.pitch, amx_micro_kernel.whole_tiles(c, cells))

    def _packed_panel(self, base: str, column: Ref) -> str:
        """Where the packed panel from a column on is, a multiple of a tile's."""
        return self.c.at(base, self.c.mul(self.c.div(column, self.blocks.tile.columns), self.panel_pitch), self.item)

    def _pack_columns(
        self, y: OperandAccess, to: str, few: str | bool, k: Ref, col: Ref, depth: Ref, length: Ref
    ) -> None:
        """Pack panels of y that the micro-kernel will not read where they lie."""
        c, columns = self.c, self.blocks.tile.columns
        if self.schedule.columns is ColumnsRead.PREPACKED:
            return
        done: Ref = 0
        if self.schedule.columns is ColumnsRead.IN_PLACE_IF_FEW:
            done = c.choose(few, c.mul(c.div(length, columns), columns), 0)
        if not self.transposed and self.form.group == 1:
            first, count = c.add(col, done), c.sub(length, done)
            self.right.panels(y, self._packed_panel(to, done), self.panel_pitch, columns, first, count, k, depth)
            return
        with c.loop(done, length, columns) as panel:
            width = columns if self.blocks.even_columns else c.min(columns, c.sub(length, panel.index))
            self._pack_panel(y, self._packed_panel(to, panel.index), k, c.add(col, panel.index), depth, width)

    def _pack_panel(self, y: OperandAccess, to: str, k: Ref, col: Ref, depth: Ref, width: Ref) -> None:
        """Pack a panel whose columns have to be turned, or whose elements go in groups."""
        columns, group = self.blocks.tile.columns, self.form.group
        source = to if group == 1 else self.loose
        pitch: Ref = columns
        if self.transposed:
            self.right.transpose(y, source, columns, col, width, k, depth)
        else:
            source, pitch = self._plain_panel(self.right, y, source, k, col, depth, width, columns)
        if group > 1:
            self.right.interleave(source, pitch, to, columns, depth)
        if self.form.multiply is MultiplyKind.TILES:
            self._fill_tiles(to, self.form.cells(self.c, depth), columns)

    def _panel(self, y: OperandAccess, packed: str, few: str | bool, k: Ref, col: Ref, width: Ref) -> tuple[str, Ref]:
        """The address of a full panel of y and the distance of its lines in cells."""
        columns = self.blocks.tile.columns
        if self.schedule.columns is ColumnsRead.PREPACKED:
            assert self.right.lies is not None
            counters = {**y.counters_at(FREE, col), **y.counters_at(DEPTH, k)}
            return y.address(*self.right.lies, counters), columns * self.form.group
        if self.schedule.columns is not ColumnsRead.IN_PLACE_IF_FEW:
            return packed, columns
        return self._direct_or_packed(self.right, y, packed, self._direct(few, width), k, col, columns)

    def _direct(self, few: str | bool, width: Ref) -> str | bool:
        """Whether a panel of so many columns is read where it lies, if those may be."""
        if self.schedule.columns is ColumnsRead.PREPACKED:
            return True
        return self.c.both(few, self.c.compare("eq", width, self.blocks.tile.columns))

    def _fill_tiles(self, panel: str, cells: Ref, extent: int) -> None:
        """Zeros behind the last line of a panel of so many columns, or rows, to the end of a tile."""
        c, width = self.c, self.blocks.tile.width
        end = c.mul(amx_micro_kernel.whole_tiles(c, cells), extent)
        with c.loop(c.mul(cells, extent), end, width) as at:
            self.e.store(self.e.zero(dt.int32, width), c.at(panel, at.index, self.item))

    def _plain_panel(
        self, packing: Packing, at: OperandAccess, to: str, k: Ref, first: Ref, depth: Ref, count: Ref, extent: int
    ) -> tuple[str, Ref]:
        """Where a panel of ``extent`` columns, or rows, lies of which ``count`` are there, depth by depth, and the
        distance of its lines: in memory, or packed if it does not lie there."""
        c = self.c
        direct = self._lies_in_panels(packing) and c.compare("eq", count, extent)
        with c.when(c.negation(direct)):
            packing.panel(at, to, extent, first, count, k, depth)
        return self._direct_or_packed(packing, at, to, direct, k, first, extent)

    def _lies_in_panels(self, packing: Packing) -> bool:
        """Whether whole panels of an operand may be read where they lie: rows or columns are side by side in memory,
        and elements along the depth equally far apart."""
        operand = packing.operand
        if packing.lies is None or operand.dtype != self.form.packed:
            return False
        single = all(len(operand.loops[part]) == 1 for part in (FREE, DEPTH))
        return single and packing.lies[1].coefficient(packing.free) == 1

    def _direct_or_packed(
        self, packing: Packing, at: OperandAccess, to: str, direct: str | bool, k: Ref, first: Ref, extent: int
    ) -> tuple[str, Ref]:
        c = self.c
        if direct is False or packing.lies is None:
            return to, extent
        pointer, position = packing.lies
        source = at.address(pointer, position, {packing.free: first, packing.depth: k})
        pitch = stride(c, position, packing.depth)
        return c.choose_pointer(direct, source, to), c.choose(direct, pitch, extent)
