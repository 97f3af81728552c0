"""Matrix products: packed panels, and a micro-kernel that keeps a tile of sums in registers.

The order of the sum, hence its bits, is the same for every target, tile, shape and cut among threads (see order.py):

    total = 0;  for each block of K_BLOCK consecutive k, in order:
        p = 0;  for each k of the block, in order:  p = fma(a, b, p)
        total = total + p

float16 and bfloat16 are summed in float32 and rounded once; integers wrap.

How a kernel runs: the rows and columns that it is asked for are walked in blocks.  Per block and k-block, rows of x
are packed so that the micro-kernel finds each element at a constant distance; then, panel by panel of columns, y is
packed (or read where it lies) and the micro-kernel runs down the rows.  It is one function that knows only full tiles:
at the edges the packing repeats the last row or column, and what was computed from those is not stored.  Totals rest in
scratch between k-blocks; the epilogue reads a finished tile from there while it is still in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.phases import KernelCode, kernel_parameters, one_phase
from hybridflow.compiler.codegen.structured import Code, Ref, lanes_for
from hybridflow.compiler.codegen.tiles import transposed
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ops.order import K_BLOCK
from hybridflow.compiler.target import Target

Epilogue = Callable[[Emitter, Val, str, str, str, "Val | None"], None]
"""``epilogue(e, value, batch, row, col, mask)`` stores a finished vector, of the product's dtype and ``e.width`` lanes
that follow (row, col) in row-major order, which are i64 operands.  ``mask`` is None when all lanes are active."""

_Work = tuple[tuple[Extent, ...], int, Extent]  # units, grain, scratch

_UNKNOWN = 4096  # what a symbolic extent is taken for when a tile or a cut is chosen
_COLUMNS = 512  # of the product per packing of x
_CYCLES_PER_TILE = 60  # a call, and the latencies at the ends of its loop


@dataclass(frozen=True)
class Tile:
    """The part of the product that the micro-kernel holds in registers: ``rows`` by ``vectors`` of ``width`` lanes."""

    rows: int
    vectors: int
    width: int

    @property
    def columns(self) -> int:
        return self.vectors * self.width


def choose_tile(target: Target, dtype: np.dtype, m: Extent, n: Extent, depth: int = K_BLOCK) -> Tile:
    """The tile with the least estimated time for an m x n product with sums of ``depth``, edges included."""
    rows = m if isinstance(m, int) else _UNKNOWN
    columns = n if isinstance(n, int) else _UNKNOWN
    width = lanes_for(target, dtype, columns)
    # Accumulators, a row of b and one element of a stay in registers, with one left over.  Products that take several
    # instructions need registers themselves, and gain nothing from a large tile.
    simple = target.fma if dt.is_float(dtype) else dtype.itemsize == 4
    registers = target.registers - 1 if simple else 8

    def time(tile: Tile) -> tuple[float, int]:
        # Cycles per k: two multiply-adds or two loads each, and four until a sum can be added to again.
        sums = tile.rows * tile.vectors
        cycles = max(sums / 2, (tile.rows + tile.vectors) / 2, 4)
        tiles = -(-rows // tile.rows) * -(-columns // tile.columns)
        return tiles * (cycles * depth + _CYCLES_PER_TILE), tile.vectors

    tiles = [Tile(r, v, width) for v in range(1, 9) for r in range(1, registers) if (r + 1) * v + 1 <= registers]
    return min(tiles, key=time)


def emit_matmul(
    module: ModuleText,
    e: Emitter,
    symbol: str,
    dtype: np.dtype,
    batch: Sequence[Extent],
    m: Extent,
    n: Extent,
    k: Extent,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dims: Sequence[str] = (),
    buffers: int = 3,
    epilogue: Epilogue | None = None,
) -> KernelCode:
    """Add the kernel ``symbol``: %a0 = x[batch, m, k], %a1 = y[batch, k, n] (each perhaps with its last two axes
    swapped), and without an ``epilogue`` %a2 = out[batch, m, n].

    ``e`` is a fresh emitter of the kernel's body.  Units on a CPU: rows (or columns, where there are more of them than
    rows) of each batch entry; on a GPU: elements of the product.
    """
    transpose_a = transpose_a and m != 1  # one row lies in memory alike
    product = _Product(e, dtype, tuple(batch), m, n, k, transpose_a, transpose_b, dims, epilogue)
    if n == 1 and m != 1:
        product = product.swapped()
    units, grain, scratch = product.elementwise() if e.target.kind == "cuda" else product.blocked(module, symbol)
    e.line("ret void")
    symbol = module.function(e, symbol, kernel_parameters(buffers), linkage="internal")
    return one_phase(symbol, units, grain, scratch)


class _Product:
    """One product being emitted."""

    def __init__(
        self,
        e: Emitter,
        dtype: np.dtype,
        batch: tuple[Extent, ...],
        m: Extent,
        n: Extent,
        k: Extent,
        transpose_a: bool,
        transpose_b: bool,
        dims: Sequence[str],
        epilogue: Epilogue | None,
    ) -> None:
        self.e, self.dtype, self.sum_dtype = e, dtype, dt.compute_dtype(dtype)
        self.batch, self.extents, self.dims = batch, (m, n, k), dims
        self.transpose_a, self.transpose_b = transpose_a, transpose_b
        self.c = Code(e, dims, (m, n, k))
        self.m, self.n, self.k = (self.c.extent(x) for x in (m, n, k))
        self.x, self.y = "%a0", "%a1"
        self.epilogue = epilogue or self._store

    def swapped(self) -> _Product:
        """The same for a product of one column, as the row that lies in memory alike: vectors then run along it."""
        (m, _, k), finish = self.extents, self.epilogue

        def epilogue(e: Emitter, value: Val, batch: str, row: str, col: str, mask: Val | None) -> None:
            finish(e, value, batch, col, row, mask)

        # y, a column, lies in memory as a row already.
        other = _Product(self.e, self.dtype, self.batch, 1, m, k, False, not self.transpose_a, self.dims, epilogue)
        other.x, other.y = self.y, self.x
        return other

    def _store(self, e: Emitter, value: Val, batch: str, row: str, col: str, mask: Val | None) -> None:
        c = self.c
        line = c.add(c.mul(batch, self.m), row)
        e.store(value, c.at("%a2", c.add(c.mul(line, self.n), col), self.dtype.itemsize), mask)

    # ---- one element at a time

    def elementwise(self) -> _Work:
        """A thread of a GPU computes whole elements."""
        c, e = self.c, self.e
        e.width = 1
        per_entry = c.mul(self.m, self.n)
        with c.loop("%begin", "%end") as unit:
            entry = c.div(unit.index, per_entry)
            inside = c.rem(unit.index, per_entry)
            row, col = c.div(inside, self.n), c.rem(inside, self.n)
            x = c.at(self.x, c.mul(entry, c.mul(self.m, self.k)), self.dtype.itemsize)
            y = c.at(self.y, c.mul(entry, c.mul(self.k, self.n)), self.dtype.itemsize)
            with c.loop(0, self.k, K_BLOCK, [e.zero(self.sum_dtype)]) as block:
                last = c.min(c.add(block.index, K_BLOCK), self.k)
                with c.loop(block.index, last, 1, [e.zero(self.sum_dtype)]) as at_k:
                    a = self._element(
                        x, *((at_k.index, row, self.m) if self.transpose_a else (row, at_k.index, self.k))
                    )
                    b = self._element(
                        y, *((col, at_k.index, self.k) if self.transpose_b else (at_k.index, col, self.n))
                    )
                    at_k.next = [_multiply_add(e, a, b, at_k.carried[0])]
                block.next = [e.add(block.carried[0], at_k.carried[0])]
            self.epilogue(e, e.convert(block.carried[0], self.dtype), str(entry), str(row), str(col), None)
        return (*self.batch, self.extents[0], self.extents[1]), 1, 0

    def _element(self, base: str, row: Ref, col: Ref, pitch: Ref) -> Val:
        """Element (row, col) of a matrix with rows of ``pitch``, in the dtype of the sums and splat over the lanes."""
        c = self.c
        address = c.at(base, c.add(c.mul(row, pitch), col), self.dtype.itemsize)
        return self.e.convert(self.e.load(address, self.dtype, width=1), self.sum_dtype)

    # ---- blocks and tiles

    def blocked(self, module: ModuleText, symbol: str) -> _Work:
        c, e = self.c, self.e
        m, n, k = self.extents
        target, item = e.target, self.sum_dtype.itemsize
        by_columns = (n if isinstance(n, int) else _UNKNOWN) > (m if isinstance(m, int) else _UNKNOWN)
        self.depth = min(K_BLOCK, max(k, 1)) if isinstance(k, int) else K_BLOCK  # of packed panels
        self.tile = tile = choose_tile(target, self.sum_dtype, m, n, self.depth)
        self.one_block = isinstance(k, int) and k <= K_BLOCK
        # Packed rows fill half of the second cache.  Totals are touched once per k-block, so they may lie farther away.
        rows = _up_to(target.l2 // 2 // (K_BLOCK * item), tile.rows, m)
        columns = _up_to(_COLUMNS, tile.columns, n)
        # Without transposition packed rows of x keep their direction.  A pitch that is not a power of two spreads them
        # over the sets of the cache.
        self.pitch = self.depth if self.transpose_a else self.depth + 64 // item
        totals = tile.rows * tile.columns if self.one_block else rows * columns
        offsets = [0]
        for items in (rows * self.pitch, tile.columns * self.depth, totals):
            offsets.append(offsets[-1] + -(-items * item // 64) * 64)
        self.packed_a, self.packed_b, self.totals = (c.at("%scratch", offset, 1) for offset in offsets[:3])
        self.micro_kernel = self._emit_micro_kernel(module, f"{symbol}.tile")

        with c.spans("%begin", "%end", self.n if by_columns else self.m) as (entry, first, last):
            x = c.at(self.x, c.mul(entry, c.mul(self.m, self.k)), self.dtype.itemsize)
            y = c.at(self.y, c.mul(entry, c.mul(self.k, self.n)), self.dtype.itemsize)
            col_range = (first, last) if by_columns else (0, self.n)
            row_range = (0, self.m) if by_columns else (first, last)
            col_step, row_step = (
                self._even(*r) for r in ((*col_range, columns, tile.columns), (*row_range, rows, tile.rows))
            )
            with c.loop(*col_range, col_step) as cols, c.loop(*row_range, row_step) as block:
                height = c.min(row_step, c.sub(row_range[1], block.index))
                length = c.min(col_step, c.sub(col_range[1], cols.index))
                with c.loop(0, c.max(self.k, 1), K_BLOCK) as at_k:  # an empty sum takes one turn as well
                    self._block(x, y, entry, block.index, height, cols.index, length, at_k.index, rows)
        unit, grain = (n, tile.columns) if by_columns else (m, tile.rows)
        return (*self.batch, unit), grain, offsets[-1]

    def _even(self, begin: Ref, end: Ref, most: int, grain: int) -> Ref:
        """The step of the least number of equal steps of whole grains, ``most`` at the most, from begin to end."""
        c = self.c
        length = c.max(c.sub(end, begin), 1)
        steps = c.div(c.add(length, most - 1), most)
        each = c.div(c.add(length, c.sub(steps, 1)), steps)
        return c.mul(c.div(c.add(each, grain - 1), grain), grain)

    def _block(
        self, x: str, y: str, entry: Ref, row: Ref, height: Ref, col: Ref, length: Ref, k: Ref, rows: int
    ) -> None:
        """The products of one k-block, for ``height`` rows from ``row`` and ``length`` columns from ``col``."""
        c, tile, item = self.c, self.tile, self.sum_dtype.itemsize
        depth = self.k if self.one_block else c.min(K_BLOCK, c.sub(self.k, k))
        first = True if self.one_block else c.compare("eq", k, 0)
        last = True if self.one_block else c.compare("sge", c.add(k, K_BLOCK), self.k)
        if self.transpose_a:
            self._pack_a_transposed(c.at(x, c.add(c.mul(k, self.m), row), self.dtype.itemsize), height, depth)
        else:
            self._pack_a(c.at(x, c.add(c.mul(row, self.k), k), self.dtype.itemsize), height, depth)
        with c.loop(0, length, tile.columns) as panel:
            width = c.min(tile.columns, c.sub(length, panel.index))
            source, pitch = self._panel_of_b(y, k, c.add(col, panel.index), depth, width, height)
            with c.loop(0, height, tile.rows) as down:
                total: Ref = 0
                if not self.one_block:
                    total = c.add(c.mul(panel.index, rows), c.mul(down.index, tile.columns))
                totals = c.at(self.totals, total, item)
                a = c.at(self.packed_a, c.mul(down.index, self.pitch), item)
                starts = str(first).lower()
                self.e.line(
                    f"call void @{self.micro_kernel}(ptr {a}, ptr {source}, i64 {pitch}, ptr {totals}, i64 {depth}, "
                    f"i1 {starts})"
                )
                with c.when(last):
                    high = c.min(tile.rows, c.sub(height, down.index))
                    self._finish(totals, entry, c.add(row, down.index), high, c.add(col, panel.index), width)

    def _emit_micro_kernel(self, module: ModuleText, symbol: str) -> str:
        """One tile over one k-block: totals of the tile = (0 if %first else totals) + the block's sums.  Its name."""
        tile, item = self.tile, self.sum_dtype.itemsize
        e = Emitter(self.e.target, tile.width, self.e.fastmath)
        c = Code(e)
        row_step, k_step = (1, tile.rows) if self.transpose_a else (self.pitch, 1)
        zeros = [e.zero(self.sum_dtype)] * (tile.rows * tile.vectors)
        with c.loop(0, "%depth", 1, [*zeros, c.value(0), c.value(0)]) as at_k:
            *sums, a_position, b_position = at_k.carried
            a_k, b_k = c.at("%a", a_position.ref, item), c.at("%b", b_position.ref, item)
            b = [e.load(c.at(b_k, v * tile.width, item), self.sum_dtype) for v in range(tile.vectors)]
            added = []
            for r in range(tile.rows):
                a = e.load_splat(c.at(a_k, r * row_step, item), self.sum_dtype)
                added += [_multiply_add(e, a, b[v], sums[r * tile.vectors + v]) for v in range(tile.vectors)]
            at_k.next = [*added, e.add(a_position, k_step), e.add(b_position, c.value("%b_pitch"))]
        first = e.splat(Val("%first", dt.bool_, 1))  # a mask: a scalar condition would become a branch each time
        for i, p in enumerate(at_k.carried[: len(zeros)]):
            address = c.at("%totals", i * tile.width, item)
            before = e.zero(self.sum_dtype)
            if not self.one_block:
                before = e.select(first, before, e.load(address, self.sum_dtype))
            e.store(e.add(before, p), address)
        e.line("ret void")
        parameters = "ptr noalias %a, ptr noalias %b, i64 %b_pitch, ptr noalias %totals, i64 %depth, i1 %first"
        return module.function(e, symbol, parameters, linkage="internal")

    # ---- packing

    def _copy(self, to: str, source: str, width: int, mask: Val | None = None) -> None:
        """``width`` consecutive elements, converted to the dtype of the sums."""
        with self.c.width(width):
            self.e.store(self.e.convert(self.e.load(source, self.dtype, mask), self.sum_dtype), to)

    def _pack_a(self, source: str, height: Ref, depth: Ref) -> None:
        """Rows of x, one after the other."""
        c, item, width = self.c, self.dtype.itemsize, self.tile.width
        whole = c.mul(c.div(depth, width), width)
        with c.loop(0, self._padded(height)) as r:
            row = c.at(source, c.mul(c.min(r.index, c.sub(height, 1)), self.k), item)
            to = c.at(self.packed_a, c.mul(r.index, self.pitch), self.sum_dtype.itemsize)
            for begin, end, step in ((0, whole, width), (whole, depth, 1)):
                if begin == end:
                    continue
                with c.loop(begin, end, step) as at_k:
                    i = at_k.index
                    self._copy(c.at(to, i, self.sum_dtype.itemsize), c.at(row, i, item), step)

    def _pack_a_transposed(self, source: str, height: Ref, depth: Ref) -> None:
        """Panels of tile.rows columns of x (which are rows of the product), each k by k."""
        c, tile, item, to_item = self.c, self.tile, self.dtype.itemsize, self.sum_dtype.itemsize
        with c.loop(0, height, tile.rows) as panel:
            high = c.min(tile.rows, c.sub(height, panel.index))
            start = c.at(source, panel.index, item)
            to = c.at(self.packed_a, c.mul(panel.index, self.pitch), to_item)
            with c.loop(0, depth) as at_k:
                line = c.at(start, c.mul(at_k.index, self.m), item)
                into = c.at(to, c.mul(at_k.index, tile.rows), to_item)
                with c.when(c.compare("eq", high, tile.rows)):
                    done = 0
                    while done < tile.rows:  # the widest vectors that fit: 14 is 8 + 4 + 2
                        width = min(tile.width, 1 << ((tile.rows - done).bit_length() - 1))
                        self._copy(c.at(into, done, to_item), c.at(line, done, item), width)
                        done += width
                with c.when(c.compare("ne", high, tile.rows)), c.loop(0, tile.rows) as r:
                    nearest = c.min(r.index, c.sub(high, 1))
                    self._copy(c.at(into, r.index, to_item), c.at(line, nearest, item), 1)

    def _panel_of_b(self, y: str, k: Ref, col: Ref, depth: Ref, width: Ref, height: Ref) -> tuple[str, Ref]:
        """The address of a full panel of y and the distance of its rows."""
        c, tile, item = self.c, self.tile, self.dtype.itemsize
        if self.transpose_b:
            self._pack_b_transposed(c.at(y, c.add(c.mul(col, self.k), k), item), depth, width)
            return self.packed_b, tile.columns
        source = c.at(y, c.add(c.mul(k, self.n), col), item)
        # A panel that few tiles read is read where it lies.
        direct: str | bool = False
        if self.dtype == self.sum_dtype:
            m = self.extents[0]
            few = 4 * tile.rows
            direct = m <= few if isinstance(m, int) else c.compare("sle", height, few)
            direct = c.both(direct, c.compare("eq", width, tile.columns))
        with c.when(c.negation(direct)):
            self._pack_b(source, depth, width)
        return c.choose_pointer(direct, source, self.packed_b), c.choose(direct, self.n, tile.columns)

    def _pack_b(self, source: str, depth: Ref, width: Ref) -> None:
        """A panel of tile.columns columns of y, k by k."""
        c, e, tile, item, to_item = self.c, self.e, self.tile, self.dtype.itemsize, self.sum_dtype.itemsize
        full = c.compare("eq", width, tile.columns)
        with c.when(full), c.loop(0, depth) as at_k:
            line = c.at(source, c.mul(at_k.index, self.n), item)
            into = c.at(self.packed_b, c.mul(at_k.index, tile.columns), to_item)
            for v in range(0, tile.columns, tile.width):
                self._copy(c.at(into, v, to_item), c.at(line, v, item), tile.width)
        with c.when(c.compare("ne", width, tile.columns)):
            with c.width(tile.width):
                masks = [c.lanes_below(c.sub(width, v)) for v in range(0, tile.columns, tile.width)]
            with c.loop(0, depth) as at_k:
                line = c.at(source, c.mul(at_k.index, self.n), item)
                into = c.at(self.packed_b, c.mul(at_k.index, tile.columns), to_item)
                if e.target.masked:
                    for v, mask in zip(range(0, tile.columns, tile.width), masks):
                        self._copy(c.at(into, v, to_item), c.at(line, v, item), tile.width, mask)
                else:
                    with c.loop(0, tile.columns) as j:
                        nearest = c.min(j.index, c.sub(width, 1))
                        self._copy(c.at(into, j.index, to_item), c.at(line, nearest, item), 1)

    def _pack_b_transposed(self, source: str, depth: Ref, width: Ref) -> None:
        """A panel of tile.columns rows of y (which are columns of the product), turned so that it lies k by k."""
        c, e, tile, item, to_item = self.c, self.e, self.tile, self.dtype.itemsize, self.sum_dtype.itemsize
        lanes, square = tile.width, min(tile.width, 8)  # squares of 16 cost more to compile than they save
        whole = c.mul(c.div(depth, square), square)
        last = c.sub(width, 1)
        with c.loop(0, tile.columns, lanes) as group:
            lines = [c.at(source, c.mul(c.min(c.add(group.index, t), last), self.k), item) for t in range(lanes)]
            into = c.at(self.packed_b, group.index, to_item)
            with c.loop(0, whole, square) as at_k:
                with c.width(square):
                    parts = [e.load(c.at(line, at_k.index, item), self.dtype) for line in lines]
                # Two squares of 8 lie side by side in vectors of 16.
                rows = parts if lanes == square else [e.shuffle(a, b, range(lanes)) for a, b in zip(parts, parts[8:])]
                corner = c.at(into, c.mul(at_k.index, tile.columns), to_item)
                for t, turned in enumerate(transposed(e, [e.convert(row, self.sum_dtype) for row in rows])):
                    e.store(turned, c.at(corner, t * tile.columns, to_item))
        with c.loop(whole, depth) as at_k, c.loop(0, tile.columns) as j:
            line = c.at(source, c.mul(c.min(j.index, last), self.k), item)
            to = c.add(c.mul(at_k.index, tile.columns), j.index)
            self._copy(c.at(self.packed_b, to, to_item), c.at(line, at_k.index, item), 1)

    # ---- results

    def _finish(self, totals: str, entry: Ref, row: Ref, height: Ref, col: Ref, width: Ref) -> None:
        """Hand the finished tile to the epilogue, vector by vector."""
        c, e, tile, item = self.c, self.e, self.tile, self.sum_dtype.itemsize
        with c.loop(0, height) as r:
            line = c.at(totals, c.mul(r.index, tile.columns), item)

            def hand_over(j: Ref, mask: Val | None) -> None:
                value = e.convert(e.load(c.at(line, j, item), self.sum_dtype), self.dtype)
                self.epilogue(e, value, str(entry), str(c.add(row, r.index)), str(c.add(col, j)), mask)

            c.vector_loop(0, width, tile.width, hand_over)

    def _padded(self, height: Ref) -> Ref:
        """``height`` rounded up to whole tiles."""
        c, rows = self.c, self.tile.rows
        return c.mul(c.div(c.add(height, rows - 1), rows), rows)


def _multiply_add(e: Emitter, a: Val, b: Val, total: Val) -> Val:
    return e.fma(a, b, total) if dt.is_float(a.dtype) else e.add(e.mul(a, b), total)


def _up_to(wanted: int, grain: int, extent: Extent) -> int:
    """About ``wanted``, in whole grains; no more grains than ``extent`` has."""
    grains = max(1, wanted // grain)
    if isinstance(extent, int):
        grains = max(1, min(grains, -(-extent // grain)))
    return grains * grain
