"""Matrix products: packed panels, and a micro-kernel that keeps a tile of sums in registers.

The order of the sum (``ops/order.py``), hence its bits, is the same for every target, tile, shape and cut of the work:

    total = 0;  for each block of K_BLOCK consecutive k, in order:
        p = 0;  for each k of the block, in order:  p = fma(a, b, p)
        total = total + p

Sums of narrow floats are kept in float32 and rounded once; integers wrap.  bfloat16 goes in runs of k, of which even
and odd ones are summed apart, by an fma that takes denormal numbers for zeros.  What a target has instructions for
decides how factors are packed, and changes no bits (``factors.py``).  One row or one column may be summed in the order
of a row reduction instead: see ``vectors.py``.

How a kernel runs: rows or columns are cut into units (see ``cut_by_rows``); the rows and columns that a piece asks for
are walked in blocks.  Per block and k-block, rows of x are packed so that the micro-kernel finds each element at a
constant distance; then, panel by panel of columns, y is packed (or read where it lies) and the micro-kernel runs down
the rows.  Where several blocks of rows follow each other, panels are packed for the first of them and kept for the
others.  The micro-kernel is one function that knows only full tiles: at the edges the packing fills them up, and what
was computed from that is not stored.  Between k-blocks totals rest where the product is wanted, if all there is to do
is to store it; others rest in scratch, and the epilogue reads a finished tile from there while it is still in the
cache.  Of a symmetric product half the tiles are computed (``mirror.py``).  A product of one row does without all
this: see ``one_row.py`` and ``one_row_turned.py``.

Factors are read through ``operand.Operand``, so whatever a factor is made of is computed as it is packed.

On a GPU teams of threads do the same, in the same order (``team_product.py``, ``team_lines.py``), and single threads
what is too small for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hybridflow.compiler.codegen import one_row, one_row_turned, tile_registers
from hybridflow.compiler.codegen.direct import Direct, suits
from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.factors import (
    Add,
    Form,
    How,
    factor,
    form_of,
    magnitudes,
    multiply_add,
    never_denormal,
    summed,
)
from hybridflow.compiler.codegen.gaps import SPAN, emit_span, is_finite, load_span
from hybridflow.compiler.codegen.micro_kernel import Tile, emit_micro_kernel
from hybridflow.compiler.codegen.mirror import Finish, Mirror
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.operand import UNKNOWN, Operand, Reading, stride
from hybridflow.compiler.codegen.packing import BATCH, DEPTH, FREE, Packing
from hybridflow.compiler.codegen.phases import KernelCode, Phase, kernel_parameters
from hybridflow.compiler.codegen.structured import Code, Ref, lanes_for
from hybridflow.compiler.codegen.team import Team
from hybridflow.compiler.codegen.team_lines import emit_team_lines
from hybridflow.compiler.codegen.team_phases import Product, by_tiles
from hybridflow.compiler.codegen.team_sides import FactorSide, Side
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.codegen.vectors import Finish as LinesFinish, Lines, Work, emit_lines
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent, larger
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.limits import (
    CYCLES_PER_TILE,
    ENOUGH_PANELS,
    FAR,
    FAR_MORE,
    FEW_TILES,
    FEW_UNITS,
    KEPT_BLOCKS,
    KEPT_ROWS,
    KEPT_TOTALS,
    LINE,
    LITTLE_TO_HALVE,
    NARROW,
    PACKED_COLUMNS,
    PANELS_TOGETHER,
    WORTH_HALVING,
    WORTH_PACKING,
)
from hybridflow.compiler.ops.order import K_BLOCK
from hybridflow.compiler.target import Target

Epilogue = Callable[[Emitter, Val, str, str, str, "Val | None"], None]
"""``epilogue(e, value, batch, row, col, mask)`` stores a finished vector, of the product's dtype and ``e.width`` lanes
that follow (row, col) in row-major order, which are i64 operands.  ``mask`` is None when all lanes are active."""

Looks = Callable[[Emitter, str, str, str, "Val | None"], Val]
"""``looks(e, batch, row, col, mask)``: at which of the elements that an epilogue is given it looks."""


def choose_tile(target: Target, form: Form, m: Extent, n: Extent, depth: int = K_BLOCK) -> Tile:
    """The tile with the least estimated time for an m x n product with sums of ``depth`` cells, edges included."""
    rows = m if isinstance(m, int) else UNKNOWN
    columns = n if isinstance(n, int) else UNKNOWN
    if form.how is How.TILES:
        return tile_registers.choose(rows, columns, depth)
    dtype = form.sums
    width = max(lanes_for(target, dtype, columns), form.least_width)
    # Accumulators, a row of b and one element of a stay in registers, with one left over.  Products that take several
    # instructions need registers themselves, and gain nothing from a large tile.
    simple = target.fma if dt.is_float(dtype) else dtype.itemsize == 4
    registers = target.registers - 1 if simple or form.group > 1 else 8
    chains = form.chains
    extra = 1 if form.how is How.SIGNED_BYTES else 0  # rows of sums

    def time(tile: Tile) -> tuple[float, int]:
        # Cycles per k: two multiply-adds or two loads each, and four until a sum of a chain can be added to again.
        sums = tile.rows * tile.vectors
        cycles = max(sums / 2, (tile.rows + tile.vectors) / 2, 4 / chains)
        tiles = -(-rows // tile.rows) * -(-columns // tile.columns)
        return tiles * (cycles * depth + CYCLES_PER_TILE), tile.vectors

    tiles = [
        Tile(r, v, width)
        for v in range(1, 9)
        for r in range(1, registers)
        if (chains * r + 1 + extra) * v + 1 + extra <= registers
    ]
    if rows == 1 and form.group == 1:  # a row of b is needed once, and waits for memory: the longer it is, the better
        tiles.append(Tile(1, registers // (chains + 1) + 1, width))
    return min(tiles, key=time)


@dataclass(frozen=True)
class Blocks:
    """How a product is cut: tiles, the rows and columns for which factors are packed together, the depth of packed
    panels in cells, and whether that is all of the depth.  ``height``: the rows for which packed columns are kept, one
    or more times ``rows``; ``together``: panels of columns that are packed in one go.  ``tiles``: how many read a panel
    of columns, which is read where it lies if they are few; None where that depends on symbolic extents.  ``narrow``:
    there are so few columns that rows of x may be read where they lie.  ``even_rows``, ``even_columns``: they fill
    whole tiles.  ``multiple``: the cells of each part of the depth are a multiple of so many."""

    tile: Tile
    rows: int
    height: int
    columns: int
    together: int
    depth: int
    one_block: bool
    tiles: int | None
    narrow: bool
    even_rows: bool
    even_columns: bool
    multiple: int

    @property
    def keeps(self) -> bool:
        """Whether all panels of columns are kept, rather than those that are packed in one go."""
        return self.height > self.rows


def choose_blocks(target: Target, form: Form, m: Extent, n: Extent, k: Extent, at_home: bool = False) -> Blocks:
    """The blocks of an m x n product of depth k.  ``at_home``: its totals grow where it is wanted."""
    depth = -(-(min(form.block, max(k, 1)) if isinstance(k, int) else form.block) // form.group)
    if form.how is How.TILES:
        depth = -(-depth // tile_registers.CELLS) * tile_registers.CELLS
    tile = choose_tile(target, form, m, n, depth)
    # Packed rows fill a quarter of the second cache: what they are read from, columns and totals pass through it, too.
    # Totals are touched once per k-block, so they may lie farther away.
    rows = _up_to(target.l2 // 4 // (K_BLOCK * form.sums.itemsize), tile.rows, m)
    columns = _up_to(PACKED_COLUMNS, tile.columns, n)
    one_block = isinstance(k, int) and k <= form.block
    # Products of symbolic extents are cut into blocks of rows, too: there may be few columns.
    most = KEPT_ROWS if isinstance(m, int) and isinstance(n, int) else KEPT_BLOCKS * rows
    if not (at_home or one_block):
        most = min(most, KEPT_TOTALS // (columns * form.sums.itemsize))
    height = _up_to(max(most, rows), tile.rows, m)
    together = min(PANELS_TOGETHER, columns // tile.columns) if form.group == 1 and height > rows else 1
    tiles = -(-m // tile.rows) if isinstance(m, int) else None
    return Blocks(
        tile,
        rows,
        height,
        columns,
        together,
        depth,
        one_block,
        tiles,
        isinstance(n, int) and n <= NARROW * tile.columns,
        isinstance(m, int) and m % tile.rows == 0,
        isinstance(n, int) and n % tile.columns == 0,
        max(math.gcd(k, K_BLOCK) // form.group, 1) if isinstance(k, int) else 1,
    )


def times_read(target: Target, node: Node) -> tuple[int | None, ...]:
    """How often a product comes to each element of its factors: how often one is packed."""
    if 0 in node.shape:
        return None, None
    types = tuple(n.type for n in node.inputs)
    axes = node.op.contraction(types, node.attrs)
    batch, *others = axes.extents(*types)
    m, n, k = map(product, others)
    swapped = n == 1 and m != 1
    if swapped:
        m, n = n, m
    rows, columns = (extent if isinstance(extent, int) else UNKNOWN for extent in (m, n))
    if axes.lanes:  # the row goes with each line of the other factor
        times = columns, 1
    elif target.kind == "cuda":
        form = form_of(target, types[0].dtype, node.dtype)
        found = by_tiles(form, batch, m, n, k, False, types[0].dtype, axes.precision == "high")
        tile = None if found is None else found.how.tile
        times = (columns, rows) if tile is None else (-(-columns // tile.columns), -(-rows // tile.rows))
    else:
        blocks = choose_blocks(target, form_of(target, types[0].dtype, node.dtype), m, n, k)
        times = -(-columns // blocks.columns), -(-rows // blocks.height)
    return times[::-1] if swapped else times


@dataclass(frozen=True)
class _Side:
    """Rows or columns of a product: ``block`` of them at the most have their factors packed together, in panels of
    ``grain``."""

    extent: Extent
    block: int
    grain: int

    @property
    def steps(self) -> Extent:
        return _steps(self.extent, self.grain)

    @property
    def blocks(self) -> Extent:
        return _steps(self.extent, self.block)

    @property
    def least(self) -> int:
        """Units of a piece that are worth packing the factor of the other side for."""
        return -(-WORTH_PACKING // self.grain)


def cut_by_rows(tile: Tile, m: Extent, n: Extent) -> bool:
    """Whether units are rows of an m x n product, rather than columns.

    Each worker packs the factor of the other side, and rows, which are copied as they lie, cost less than columns: so
    columns are cut unless they are far fewer, or make fewer units than rows do and not enough of them."""
    if not (isinstance(m, int) and isinstance(n, int)):
        return False
    rows, columns = -(-m // tile.rows), -(-n // tile.columns)
    return m >= FAR_MORE * n or (m >= n and columns < min(rows, ENOUGH_PANELS))


@dataclass(frozen=True)
class Shape:
    """The extents of a product; those of ``batch`` and of each part of the operands have been multiplied."""

    batch: tuple[Extent, ...]
    m: Extent
    n: Extent
    k: Extent

    @property
    def swapped(self) -> Shape:
        return Shape(self.batch, self.n, self.m, self.k)


_Written = Callable[..., "tuple[_Product, KernelCode]"]


class Source(NamedTuple):
    """What the body of a phase is written with, from its beginning: the parts of the operands are batch, rows or
    columns, and depth (see ``packing``).  ``plain`` points to the product itself, [batch, m, n], where the epilogue
    does nothing else than store it.  ``beside`` are arrays that lie like it, whose same element the epilogue reads: the
    address of the first, and the bytes of one.  ``looks``: a tile at no element of which anybody looks is not computed,
    but zeros."""

    code: Code
    left: Operand
    right: Operand
    epilogue: Epilogue
    plain: str | None = None
    beside: tuple[tuple[str, int], ...] = ()
    looks: Looks | None = None


def emit_product(
    module: ModuleText,
    source: Callable[[], Source],
    symbol: str,
    shape: Shape,
    buffers: int,
    result: np.dtype,
    lanes: bool = False,
    teams: bool = False,
    precision: str = "highest",
    block: int = 0,
    gaps: bool = False,
    symmetric: bool = False,
) -> tuple[KernelCode, str]:
    """Add the kernel ``symbol`` over ``buffers`` buffers: out[batch, m, n] = the sum over k of left times right, of
    dtype ``result``; a single row or column is summed by ``lanes`` where asked for.  Also says how, for a GPU, where
    units may be those of ``teams`` of threads, whose tensor cores may be of ``precision``; or of a team that is a
    ``block`` of so many threads, within a kernel that has it do all units.

    ``gaps``: rows on the left are expected to begin or end with zeros.  ``symmetric``: the right is the left one's
    transpose.

    ``source`` is asked once for each phase.  Units on a CPU: a panel of rows by blocks of columns, or of columns by
    blocks of rows, of each batch entry; two panels of columns, where only half of a symmetric product is computed;
    where the depth is cut, blocks of it, and then rows; on a GPU: tiles, or elements of the product.
    """

    def written(name: str, write: Callable[[_Product], Work], for_host: bool = False) -> tuple[_Product, KernelCode]:
        made = _Product(source(), shape, result, precision, gaps, symmetric)
        if shape.n == 1 and shape.m != 1:
            made = made.swapped()
        units, grain, scratch = write(made)
        made.e.line("ret void")
        parameters = kernel_parameters(buffers)
        found = module.function(made.e, name, parameters, linkage="internal", for_host=for_host)
        phase = Phase(found, units, grain, least=made.least, team=made.team, lent=made.lent)
        return made, KernelCode((phase,), scratch, made.shared)

    def whole(made: _Product) -> Work:
        return made.by_lanes() if lanes else made.by_tiles(module, symbol)

    if module.target.kind == "cuda":
        return _for_gpu(written, symbol, lanes, teams, block)
    first, code = written(symbol, whole)
    (alone,) = code.phases
    count = 1 if lanes else first.depths(alone.units)
    if count == 1:
        return code, ""
    _, sums = written(f"{symbol}_depths", lambda made: made.sums_of_depths(module, symbol, count), True)
    _, totals = written(f"{symbol}_totals", lambda made: made.totals(count), True)
    scratch = larger(code.scratch, sums.scratch)
    return KernelCode((*sums.phases, *totals.phases), scratch, sums.shared, alone), ""


def _for_gpu(written: _Written, symbol: str, lanes: bool, teams: bool, block: int) -> tuple[KernelCode, str]:
    """A product by teams of threads, where these may be and have something to do together, or by single threads."""
    if lanes:
        made, code = written(symbol, lambda made: made.by_team_lanes() if teams else made.by_lanes())
        return code, made.how
    how: Product | None = None

    def whole(made: _Product) -> Work:
        nonlocal how
        how = made.teams(block) if teams or block else None
        return made.elementwise() if how is None else made.by_teams(how)

    made, code = written(symbol, whole)
    if how is None:
        return code, made.how
    chosen = how
    if chosen.how.blocks == 1:
        return code, str(chosen.how)
    _, totals = written(f"{symbol}_totals", lambda made: made.totals_by_elements(chosen))
    return replace(code, phases=(*code.phases, *totals.phases)), str(chosen.how)


class _Product:
    """One product being emitted."""

    def __init__(
        self,
        source: Source,
        shape: Shape,
        result: np.dtype,
        precision: str = "highest",
        gaps: bool = False,
        symmetric: bool = False,
    ) -> None:
        self.precision, self.gaps, self.symmetric = precision, gaps, symmetric
        self.c, self.left, self.right, self.epilogue, self.plain, self.beside, self.looks = source
        self.e, self.shape, self.result = self.c.e, shape, result
        self.form = form_of(self.e.target, self.left.dtype, result)
        self.m, self.n, self.k = (self.c.extent(x) for x in (shape.m, shape.n, shape.k))
        self.least = 1  # units that are worth packing the other factor for
        self.team = 1  # threads of a GPU that run a unit
        self.lent = 0  # bytes of memory of the block that they have the use of
        self.how = "an element a thread"
        self.shared: Extent = 0  # bytes

    def swapped(self) -> _Product:
        """The same for a product of one column, as one row: vectors then run along it."""
        finish, looks = self.epilogue, self.looks

        def epilogue(e: Emitter, value: Val, batch: str, row: str, col: str, mask: Val | None) -> None:
            finish(e, value, batch, col, row, mask)

        def looked(e: Emitter, batch: str, row: str, col: str, mask: Val | None) -> Val:
            assert looks is not None
            return looks(e, batch, col, row, mask)

        swapped = Source(
            self.c, self.right, self.left, epilogue, self.plain, self.beside, None if looks is None else looked
        )
        return _Product(swapped, self.shape.swapped, self.result, self.precision)

    def by_lanes(self) -> Work:
        """One row: the lines are the columns of the other factor."""
        return emit_lines(self.c, *self._lines(), self._are_seen)

    def by_team_lanes(self) -> Work:
        work = emit_team_lines(self.c, *self._lines())
        self.team, self.how = work.team, work.how
        return work.units, 1, 0

    def _lines(self) -> tuple[Lines, LinesFinish]:
        shape = self.shape

        def finish(value: Val, entry: Ref, line: Ref, mask: Val | None) -> None:
            self.epilogue(self.e, self.e.convert(value, self.result), str(entry), "0", str(line), mask)

        return Lines(self.right, self.left, dt.compute_dtype(self.result), shape.batch, shape.n, shape.k), finish

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
                (total,) = summed(c, self.form, block.index, last, zeros, (), self._adding(x, y))
                block.next = [e.add(block.carried[0], total)]
            self.epilogue(e, e.convert(block.carried[0], self.result), str(entry), str(row), str(col), None)
        return (*shape.batch, shape.m, shape.n), 1, 0

    def _adding(self, x: Reading, y: Reading) -> Add:
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

    def teams(self, block: int) -> Product | None:
        """How teams do it, or one that is a block of so many threads."""
        shape, may_round = self.shape, self.precision == "high" and self.result == dt.float32
        return by_tiles(
            self.form, shape.batch, shape.m, shape.n, shape.k, self.e.fastmath, self.left.dtype, may_round, block
        )

    def by_teams(self, found: Product) -> Work:
        """Units: tiles of the product, or of the sums of each block of the depth, which go to shared memory."""
        tile = found.how.tile

        def sides(c: Code, team: Team) -> tuple[Side, Side]:
            return (
                FactorSide(c, team, found.form, True, tile.rows, tile.depth, self.m, self.k, self.left),
                FactorSide(c, team, found.form, False, tile.columns, tile.depth, self.n, self.k, self.right),
            )

        found.write(self.c, sides, self._store)
        self.team, self.shared = tile.threads, found.shared
        self.lent = tile.nbytes(found.form.sums.itemsize) if found.how.lent else 0
        return found.units, 1, 0

    def totals_by_elements(self, found: Product) -> Work:
        """Elements of the product from the sums of all blocks of the depth."""
        found.write_totals(self.c, self._store)
        return (*self.shape.batch, self.shape.m, self.shape.n), 1, 0

    def _store(self, value: Val, entry: Ref, row: Ref, col: Ref) -> None:
        self.epilogue(self.e, self.e.convert(value, self.result), str(entry), str(row), str(col), None)

    # ---- blocks and tiles

    def by_tiles(self, module: ModuleText, symbol: str) -> Work:
        c, e, (m, n, k) = self.c, self.e, (self.shape.m, self.shape.n, self.shape.k)
        if one_row.suits(self.form, self.left, self.right, m):
            return self._one_row(lambda done: one_row.OneRow(c, self.form, self.left, self.right, n, k, done))
        if one_row_turned.suits(self.form, self.left, self.right, m, n, one_row_turned.square_width(c, self.form, n)):
            return self._one_row(
                lambda done: one_row_turned.OneRowTurned(
                    c, self.form, self.left, self.right, n, k, done, self._are_seen
                )
            )
        blocks = choose_blocks(e.target, self.form, m, n, k, self._grows_at_home)
        halved, tile = self._halves(blocks.tile), blocks.tile
        blocked = self._half if halved else self._blocked
        if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
            return blocked(module, symbol, blocks)
        large = halved and n > LITTLE_TO_HALVE * tile.columns
        if large or not suits(e.target, self.form, self.left, self.right, tile, m, n, k):
            return blocked(module, symbol, blocks)

        def finish(value: Val, entry: Ref, row: Ref, col: Ref, mask: Val | None) -> None:
            self.epilogue(e, e.convert(value, self.result), str(entry), str(row), str(col), mask)

        def finish_tile(totals: str, entry: Ref, row: Ref, height: Ref, col: Ref, width: Ref) -> None:
            self._finish(totals, tile, entry, row, height, col, width)

        def is_seen(entry: Ref, row: Ref, height: Ref, col: Ref, width: Ref) -> str | bool:
            return self._is_seen(tile, entry, _Place(row, height, col, width))

        direct = Direct(c, self.form, self.left, self.right, tile, m, n, k, finish, finish_tile, is_seen)
        direct.emit()
        return (*self.shape.batch, direct.steps), 1, direct.scratch

    def _one_row(self, made: Callable[[one_row.Finish], one_row.OneRow | one_row_turned.OneRowTurned]) -> Work:
        """Units: strips of columns."""
        shape = self.shape

        def finish(value: Val, entry: Ref, col: Ref, mask: Val | None) -> None:
            self.epilogue(self.e, self.e.convert(value, self.result), str(entry), "0", str(col), mask)

        row = made(finish)
        row.emit()
        return (*shape.batch, row.steps), 1, row.scratch

    def _half(self, module: ModuleText, symbol: str, block: Blocks) -> Work:
        """Units: two panels of columns, one as far from the first as the other is from the last.  From the diagonal
        down, all of these pairs have as many tiles, but that the first unit may be a single panel, the middle one:
        pieces of many units come first."""
        c, (rows, columns) = self.c, (block.tile.rows, block.tile.columns)
        routine = self._routine(module, symbol, block, self._grows_at_home)
        panels = _steps(self.shape.n, columns)
        pairs = _steps(panels, 2)
        self.least = -(-WORTH_PACKING // (2 * columns))
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
                step = _even(c, begin, end, block.columns, columns)
                with c.loop(begin, end, step) as across:
                    length, top = c.min(step, c.sub(end, across.index)), c.mul(c.div(across.index, rows), rows)
                    down_step = _even(c, top, self.m, block.height, rows)
                    with c.loop(top, self.m, down_step) as down:
                        height = c.min(down_step, c.sub(self.m, down.index))
                        with c.loop(0, c.max(self.k, 1), self.form.block) as at_k:
                            home, read_too = self._home(entry), self._beside(entry)
                            routine.run(
                                x,
                                y,
                                down.index,
                                height,
                                across.index,
                                length,
                                at_k.index,
                                self.k,
                                finish,
                                home,
                                beside=read_too,
                            )
        return (*self.shape.batch, pairs), 1, routine.scratch

    def _routine(self, module: ModuleText, symbol: str, block: Blocks, at_home: bool) -> BlockRoutine:
        name, halved = f"{symbol}.tile", self._halves(block.tile)
        return BlockRoutine(module, name, self.c, self.left, self.right, self.form, block, at_home, self.gaps, halved)

    def _halves(self, tile: Tile) -> bool:
        """Whether only half of a symmetric product is computed: where there is something to leave out, and more to it
        than to turn the rest."""
        n, k = self.shape.n, self.shape.k
        little = (isinstance(n, int) and n <= tile.columns) or (isinstance(k, int) and k < WORTH_HALVING)
        return self.symmetric and not little

    def _blocked(self, module: ModuleText, symbol: str, block: Blocks) -> Work:
        c, tile = self.c, block.tile
        routine = self._routine(module, symbol, block, self._grows_at_home)
        sides = _Side(self.shape.m, block.height, tile.rows), _Side(self.shape.n, block.columns, tile.columns)
        by_rows = cut_by_rows(tile, self.shape.m, self.shape.n)
        cut, whole = sides if by_rows else sides[::-1]
        self.least = 1 if routine.steps_of_rows and not by_rows else cut.least  # there, no rows are packed
        across, down = cut.steps, whole.blocks  # units of a line, and lines of a batch entry
        whole_step = _even(c, 0, c.extent(whole.extent), whole.block, whole.grain)

        with c.spans("%begin", "%end", c.extent(across)) as (line, first, last):
            entry, at = c.div(line, c.extent(down)), c.mul(c.rem(line, c.extent(down)), whole_step)
            beside = at, c.min(whole_step, c.sub(c.extent(whole.extent), at))
            x, y = self.left.start.at(BATCH, entry), self.right.start.at(BATCH, entry)
            begin, end = c.mul(first, cut.grain), c.min(c.mul(last, cut.grain), c.extent(cut.extent))
            cut_step = _even(c, begin, end, cut.block, cut.grain)

            def finish(totals: str, row: Ref, height: Ref, col: Ref, width: Ref) -> None:
                self._finish(totals, tile, entry, row, height, col, width)

            def is_seen(place: _Place) -> str | bool:
                return self._is_seen(tile, entry, place)

            with c.loop(begin, end, cut_step) as part:
                own = part.index, c.min(cut_step, c.sub(end, part.index))
                (row, height), (col, length) = (own, beside) if by_rows else (beside, own)
                with c.loop(0, c.max(self.k, 1), self.form.block) as at_k:  # an empty sum takes one turn as well
                    home, read_too = self._home(entry), self._beside(entry)
                    routine.run(
                        x,
                        y,
                        row,
                        height,
                        col,
                        length,
                        at_k.index,
                        self.k,
                        finish,
                        home,
                        beside=read_too,
                        is_seen=is_seen,
                    )
        return (*self.shape.batch, down, across), 1, routine.scratch

    @property
    def _grows_at_home(self) -> bool:
        """Whether totals may grow in the product: these are all that there is to store."""
        return self.plain is not None and self.form.sums == self.result and self.form.how is not How.TILES

    def _home(self, entry: Ref) -> Home | None:
        if self.plain is None or not self._grows_at_home:
            return None
        c, size = self.c, self.result.itemsize
        return Home(c.at(self.plain, c.mul(entry, c.mul(self.m, self.n)), size), self.n)

    def _beside(self, entry: Ref) -> Beside | None:
        """What the epilogue reads beside the product.  It is walked by tiles, which no machine foresees, and weights
        were last seen a step ago: only what fits into the first cache is not asked for."""
        c, each = self.c, sum(size for _, size in self.beside)
        if not each:
            return None
        matrix = c.mul(self.m, self.n)
        arrays = [(c.at(pointer, c.mul(entry, matrix), size), size) for pointer, size in self.beside]
        return Beside(arrays, self.n, c.compare("sgt", c.mul(matrix, each), self.e.target.l1))

    def _is_seen(self, tile: Tile, entry: Ref, place: _Place) -> str | bool:
        """Whether somebody looks at a tile.  The last row is asked first: it sees most where masks are causal."""
        c, e, looks = self.c, self.e, self.looks
        if looks is None or self.form.how is How.TILES:
            return True
        whole = isinstance(place.width, int) and place.width == tile.columns

        def some(row: Ref) -> str:
            with c.width(tile.width):
                found = e.const(False, dt.bool_)
                for start in range(0, tile.columns, tile.width):
                    e.mask = None if whole else c.lanes_below(c.max(c.sub(place.width, start), 0))
                    lanes = looks(e, str(entry), str(row), str(c.add(place.col, start)), e.mask)
                    found = e.or_(found, lanes if e.mask is None else e.and_(lanes, e.mask))
                e.mask = None
                return e.any(found)

        def others() -> list[Val]:
            with c.loop(0, c.sub(place.height, 1), 1, [e.const(False, dt.bool_, 1)]) as r:
                r.next = [e.or_(r.carried[0], Val(some(c.add(place.row, r.index)), dt.bool_, 1))]
            return r.carried

        last = some(c.add(place.row, c.sub(place.height, 1)))
        (seen,) = c.either_way(last, lambda: [e.const(True, dt.bool_, 1)], others)
        return seen.ref

    def _are_seen(self, entry: Ref, first: Ref, end: Ref) -> str | bool:
        """Whether somebody looks at columns of a single row, ``e.width`` at the most."""
        c, e, looks = self.c, self.e, self.looks
        if looks is None:
            return True
        e.mask = c.lanes_below(c.sub(end, first))
        lanes = e.and_(looks(e, str(entry), "0", str(first), e.mask), e.mask)
        e.mask = None
        return e.any(lanes)

    # ---- blocks of the depth

    def depths(self, units: tuple[Extent, ...]) -> int:
        """Blocks of the depth that a host's workers share out: 1 where the units of the whole are enough for them, or
        where the sums of all blocks would be more than half of what the factors are."""
        m, n, k, whole = self.shape.m, self.shape.n, self.shape.k, product(units)
        if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int) and isinstance(whole, int)):
            return 1
        blocks = -(-k // self.form.least_block)
        few = whole < FEW_UNITS and blocks >= 2 * max(whole, 1)
        return blocks if few and 2 * m * n * blocks <= (m + n) * k else 1

    def sums_of_depths(self, module: ModuleText, symbol: str, count: int) -> Work:
        """The sums of each of ``count`` blocks of the depth, into shared memory: [batch, block, row, column]."""
        c, sums, at_home = self.c, self.form.sums, self.form.how is not How.TILES
        block = choose_blocks(self.e.target, self.form, self.shape.m, self.shape.n, self.shape.k, at_home)
        routine = self._routine(module, symbol, block, at_home)
        row_step, col_step = (
            _even(c, 0, extent, most, grain)
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
                        Home(c.at("%shared", c.mul(base, self.n), sums.itemsize), self.n) if at_home else None,
                        alone=True,
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


class Home(NamedTuple):
    """Where a matrix of totals lies in memory: the address of its first element, and the elements from row to row."""

    address: str
    pitch: Ref


class Beside(NamedTuple):
    """Matrices whose elements are read with those of the totals: the address of the first and the bytes of one, of
    each; the elements from row to row; and whether they are so large that they have to be asked for in advance."""

    arrays: Sequence[tuple[str, int]]
    pitch: Ref
    far: str | bool


IsSeen = Callable[["_Place"], "str | bool"]
"""Whether somebody looks at a tile."""


class _Turn(NamedTuple):
    """A k-block: where it begins, how deep it is in elements and in cells, and whether it is the first or the last one;
    and what becomes of its sums."""

    k: Ref
    depth: Ref
    cells: Ref
    first: str | bool
    last: str | bool
    finish: Finish
    home: Home | None
    beside: Beside | None
    is_seen: IsSeen | None


class _Place(NamedTuple):
    """What of a tile there is in the product."""

    row: Ref
    height: Ref
    col: Ref
    width: Ref


class BlockRoutine:
    """The sums of a block of rows and columns over one k-block: packs both factors and runs the micro-kernel.

    Scratch, from %scratch on: packed rows, packed panels of columns, totals, where groups are packed one panel before
    that, with ``gaps`` where the rows of each tile are zero, and what of a product that is ``halved`` is being turned;
    ``scratch`` bytes in all.  Totals ``at_home`` need room for those of one tile.

    Of a product that is ``halved``, tiles whose elements all lie above the diagonal are left out; after the last
    k-block they are filled with what lies opposite (see ``mirror.py``).
    """

    def __init__(
        self,
        module: ModuleText,
        symbol: str,
        code: Code,
        left: Operand,
        right: Operand,
        form: Form,
        blocks: Blocks,
        at_home: bool,
        gaps: bool = False,
        halved: bool = False,
    ) -> None:
        self.c, self.e, self.form, self.blocks = code, code.e, form, blocks
        width = blocks.tile.width
        self.left, self.right = Packing(code, left, form, width, True), Packing(code, right, form, width, False)
        # In what direction elements lie side by side: rows of x that do keep theirs, a panel of y that does is copied.
        self.lines = form.how is How.TILES or left.along(DEPTH) >= left.along(FREE)
        self.turned = right.along(DEPTH) > right.along(FREE)
        tile, self.item = blocks.tile, form.cell.itemsize
        # The last tile of rows in place may reach back, and then its totals would not follow those of the one before.
        in_line = blocks.even_rows or at_home or not halved
        self.steps_of_rows = self._steps_of_rows(code.e.target) if blocks.narrow and in_line else None
        # A pitch of lines that is not a power of two spreads them over the sets of the cache.
        self.pitch = blocks.depth + 64 // self.item if self.lines else blocks.depth
        # Rows of x whose neighbours lie across them are packed like columns, and then turned cell by cell.
        self.cells_are_turned = (
            form.how is How.TILES and left.along(FREE) > left.along(DEPTH) and tile.rows % tile_registers.ROWS == 0
        )
        totals = tile.rows * tile.columns if blocks.one_block or at_home else blocks.height * blocks.columns
        if halved and blocks.one_block and not at_home:  # those of a panel are turned together
            totals = blocks.rows * tile.columns
        widest = max(tile.rows, tile.columns) * blocks.depth
        loose = widest if form.group > 1 else 0
        # Panels begin at different sets of the cache, too.
        self.panel_pitch = tile.columns * blocks.depth + 64 // self.item
        panels = blocks.columns // tile.columns if blocks.keeps else blocks.together
        columns = panels * self.panel_pitch
        unturned = tile.rows * blocks.depth if self.cells_are_turned else 0
        opposite = Mirror.size(tile) if halved else 0
        rows = 0 if self.steps_of_rows else blocks.rows * self.pitch
        gaps = gaps and form.how is How.EACH and dt.is_float(form.sums)
        offsets = [0]
        for cells, size in (
            (rows, self.item),
            (columns, self.item),
            (totals, form.sums.itemsize),
            (loose, self.item),
            (unturned, self.item),
            (blocks.rows // tile.rows if gaps else 0, SPAN),
            (opposite, form.sums.itemsize),
        ):
            offsets.append(offsets[-1] + -(-cells * size // 64) * 64)
        self.packed_a, self.packed_b, self.totals, self.loose, self.unturned = (
            code.at("%scratch", at, 1) for at in offsets[:5]
        )
        self.spans = code.at("%scratch", offsets[5], 1) if gaps else ""
        self.mirror = Mirror(code, form.sums, tile, code.at("%scratch", offsets[6], 1)) if halved else None
        self.scratch = offsets[-1]
        self.steps = steps = self.steps_of_rows or ((self.pitch, 1) if self.lines else (1, tile.rows))
        forms = {"": form} if form.how is not How.RUNS else {"": form, ".unflushed": form.unflushed}
        target, fastmath = code.e.target, code.e.fastmath
        self.find_span = emit_span(module, f"{symbol}.span", target, tile, form.cell, steps) if gaps else None
        if form.how is How.TILES:
            kernel = tile_registers.emit_tile_kernel(
                module, symbol, target, fastmath, form, tile, steps[0], blocks.one_block
            )
            self.micro_kernels = [kernel]
            return
        multiple = 1 if gaps else blocks.multiple  # what is left out may be any number of cells
        self.micro_kernels = [
            emit_micro_kernel(module, symbol + suffix, target, fastmath, one, tile, *steps, blocks.one_block, multiple)
            for suffix, one in forms.items()
        ]

    def run(
        self,
        x: Reading,
        y: Reading,
        row: Ref,
        height: Ref,
        col: Ref,
        length: Ref,
        k: Ref,
        end: Ref,
        finish: Finish,
        home: Home | None = None,
        alone: bool = False,
        beside: Beside | None = None,
        is_seen: IsSeen | None = None,
    ) -> None:
        """One k-block, from ``k`` of ``end``, for ``height`` rows from ``row`` and ``length`` columns from ``col``.
        After the last k-block, or if it stands ``alone``, each tile is handed to ``finish``; but totals grow in their
        ``home``, if they have one."""
        c, tile, blocks = self.c, self.blocks.tile, self.blocks
        depth = c.min(self.form.least_block if alone else self.form.block, c.sub(end, k))
        alone |= blocks.one_block
        first = True if alone else c.compare("eq", k, 0)
        last = True if alone else c.compare("sge", c.add(k, self.form.block), end)
        turn = _Turn(k, depth, self.form.cells(c, depth), first, last, finish, home, beside, is_seen)
        most = 1 if self.right.operand.collides(DEPTH) else FEW_TILES
        few = c.compare("sle", height, most * tile.rows) if blocks.tiles is None else blocks.tiles <= most
        step = _even(c, 0, height, blocks.rows, tile.rows) if blocks.keeps else height
        if self.mirror is not None:
            length = self.mirror.columns(col, length, c.add(row, height))
        with c.loop(0, height if blocks.keeps else 1, step if blocks.keeps else 1) as part:
            high, top = c.min(step, c.sub(height, part.index)), c.add(row, part.index)
            if self.steps_of_rows is None:
                self._pack_rows(x, top, high, k, depth)
            self._find_spans(x, top, high, k, depth)
            least = self._least_of_rows(high, depth)
            with c.loop(0, length, blocks.together * tile.columns) as group:
                wide, left = c.min(blocks.together * tile.columns, c.sub(length, group.index)), c.add(col, group.index)
                panels = self._packed_panel(self.packed_b, group.index if blocks.keeps else 0)
                with c.when(c.compare("eq", part.index, 0)):
                    self._pack_columns(y, panels, few, k, left, depth, wide)
                with c.loop(0, wide, tile.columns) as panel:
                    width = tile.columns if blocks.even_columns else c.min(tile.columns, c.sub(wide, panel.index))
                    source, pitch = self._panel(
                        y, self._packed_panel(panels, panel.index), few, k, c.add(left, panel.index), width
                    )
                    routine = self._micro_kernel(least, source, depth)
                    finite = self._has_gaps and is_finite(c, tile, self.form.cell, source, pitch, depth)
                    column, totals = c.add(left, panel.index), self.totals
                    if not alone and home is None:
                        line = c.mul(c.add(group.index, panel.index), blocks.height)
                        line = c.add(line, c.mul(part.index, tile.columns))
                        totals = c.at(totals, line, self.form.sums.itemsize)
                    kept = home is None and not (alone and self.mirror is None)
                    start = 0 if self.mirror is None else self.mirror.first_row(top, column)
                    with c.loop(start, high, tile.rows) as down:
                        place = _Place(
                            c.add(top, down.index),
                            tile.rows if blocks.even_rows else c.min(tile.rows, c.sub(high, down.index)),
                            column,
                            width,
                        )
                        line = c.mul(down.index, tile.columns) if kept else 0
                        own = c.at(totals, line, self.form.sums.itemsize)
                        a, above = self._tile_of_rows(x, place.row, down.index, k)
                        cells, skipped = self._cells(turn, place, down.index, finite)
                        a = c.at(a, c.mul(skipped, self.steps[1]), self.item)
                        b = c.at(source, c.mul(skipped, pitch), self.item)
                        self._tile(turn, place, routine, a, above, b, pitch, own, cells)
                    if self.mirror is not None:
                        with c.when(turn.last):
                            self._reflect(self.mirror, turn, top, high, column, totals)

    @property
    def _has_gaps(self) -> bool:
        return self.find_span is not None

    def _find_spans(self, x: Reading, top: Ref, height: Ref, k: Ref, depth: Ref) -> None:
        """Note where the rows of each tile are zero."""
        c, rows = self.c, self.blocks.tile.rows
        if self.find_span is None:
            return
        with c.loop(0, height, rows) as down:
            a, _ = self._tile_of_rows(x, c.add(top, down.index), down.index, k)
            span = c.at(self.spans, c.div(down.index, rows), SPAN)
            self._call(f"@{self.find_span}", f"ptr {a}, i64 {depth}, ptr {span}")

    def _cells(self, turn: _Turn, place: _Place, down: Ref, finite: str | bool) -> tuple[Ref, Ref]:
        """How many cells of the depth a tile is summed over, and how many are left out before these."""
        c, cells = self.c, turn.cells
        skipped: Ref = 0
        if self._has_gaps:
            first, end = load_span(c, self.spans, c.div(down, self.blocks.tile.rows))
            skipped = c.choose(finite, first, 0)
            cells = c.sub(c.choose(finite, end, cells), skipped)
        if turn.is_seen is not None:
            cells = c.choose(turn.is_seen(place), cells, 0)
        return cells, skipped

    def _tile(
        self,
        turn: _Turn,
        place: _Place,
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
        c, columns, home = self.c, self.blocks.tile.columns, turn.home
        if turn.beside is not None:
            with c.when(c.both(turn.last, turn.beside.far)):
                self._ask_for(turn.beside, place)
        begin = c.at(totals, c.mul(above, columns), self.form.sums.itemsize)
        if self.form.how is How.TILES:
            starts = str(turn.first).lower()
            self._call(routine, f"ptr {a}, ptr {source}, i64 {pitch}, ptr {totals}, i64 {cells}, i1 {starts}")
        elif home is None:
            before = self._before(turn.first, totals, columns)
            self._call(routine, f"ptr {a}, ptr {source}, i64 {pitch}, i64 {cells}, {before}ptr {totals}, i64 {columns}")
        else:
            there = c.at(home.address, c.add(c.mul(place.row, home.pitch), place.col), self.form.sums.itemsize)
            whole = c.both(c.compare("eq", place.width, columns), c.compare("eq", place.height, self.blocks.tile.rows))
            into, apart = c.choose_pointer(whole, there, totals), c.choose(whole, home.pitch, columns)
            before = self._before(c.either(turn.first, c.negation(whole)), into, apart)
            self._call(routine, f"ptr {a}, ptr {source}, i64 {pitch}, i64 {cells}, {before}ptr {into}, i64 {apart}")
            with c.when(c.negation(whole)):
                self._add_part(turn.first, begin, there, home.pitch, place)
            return
        with c.when(turn.last):
            turn.finish(begin, place.row, place.height, place.col, place.width)

    def _reflect(self, mirror: Mirror, turn: _Turn, top: Ref, height: Ref, col: Ref, totals: str) -> None:
        """Finish what lies opposite of ``height`` rows of a panel, whose totals are finished."""
        c, home, pitch = self.c, turn.home, self.blocks.tile.columns
        if home is None:
            mirror.reflect(totals, pitch, top, height, col, turn.finish)
        else:
            there = c.at(home.address, c.add(c.mul(top, home.pitch), col), self.form.sums.itemsize)
            mirror.reflect(there, home.pitch, top, height, col, turn.finish)

    def _add_part(self, first: str | bool, sums: str, home: str, pitch: Ref, place: _Place) -> None:
        """Add a tile of sums that is not whole to the totals in their home."""
        c, e, columns, dtype = self.c, self.e, self.blocks.tile.columns, self.form.sums
        zeros = self._zeros()
        with c.loop(0, place.height) as r:
            line, there = c.mul(r.index, columns), c.mul(r.index, pitch)
            source, to = c.at(sums, line, dtype.itemsize), c.at(home, there, dtype.itemsize)
            before = c.choose_pointer(first, zeros, to)

            def add(j: Ref, mask: Val | None) -> None:
                of, own = (e.load(c.at(at, j, dtype.itemsize), dtype, mask) for at in (before, source))
                e.store(e.add(of, own), c.at(to, j, dtype.itemsize), mask)

            c.vector_loop(0, place.width, self.blocks.tile.width, add)

    def _ask_for(self, beside: Beside, place: _Place) -> None:
        """Ask for what lies beside a tile, while its sums are made."""
        c, columns = self.c, self.blocks.tile.columns
        with c.loop(0, place.height) as r:
            at = c.add(c.mul(c.add(place.row, r.index), beside.pitch), place.col)
            for pointer, size in beside.arrays:
                for line in range(0, columns, LINE // size):
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
        own = self._least(panel, 1, 0, self.c.mul(depth, self.blocks.tile.columns))
        return self.c.choose_pointer(never_denormal(self.e, least, own), names[1], names[0])

    def _least_of_rows(self, height: Ref, depth: Ref) -> Val | None:
        """The least magnitude among packed rows, where sums are flushed."""
        if self.form.how is not How.RUNS:
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
            found = []
            for (begin, end, lanes), before in zip(((0, whole, width), (whole, length, 1)), line.carried):
                with c.width(lanes), c.loop(begin, end, lanes, [before]) as at:
                    values = e.load(c.at(start, at.index, self.item), self.form.packed)
                    at.next = [e.minimum(at.carried[0], magnitudes(e, values))]
                found.append(at.carried[0])
            line.next = found
        vector, one = line.carried
        for lane in range(width):
            one = e.minimum(one, e.extract(vector, lane))
        return one

    # ---- packing

    def _steps_of_rows(self, target: Target) -> tuple[int, int] | None:
        """How far apart rows of x, and elements along its depth, lie in memory, where the micro-kernel may read them
        there; None where they have to be packed."""
        operand, found, rows = self.left.operand, self.left.operand.in_memory, self.blocks.tile.rows
        single = all(len(operand.loops[part]) == 1 for part in (FREE, DEPTH))
        if found is None or not single or not found[1].is_affine or self.form.how not in (How.EACH, How.TILES):
            return None
        extent, strides = self.left.free.extent, found[1].strides
        row, along = (strides.get(var, 0) for var in (self.left.free, self.left.depth))
        if not (isinstance(extent, int) and isinstance(row, int) and isinstance(along, int)):
            return None
        if extent < rows or operand.dtype != self.form.packed or 1 not in (row, along) or min(row, along) < 1:
            return None
        if self.form.how is How.TILES:
            return self._steps_of_tiles(row, along)
        far = max(row, along) * self.item  # bytes between what neighbours touch
        if along == 1:  # lines that are far apart by a power of two would take each other's place in the cache
            return (row, along) if far % (4 * FAR) else None
        return (row, along) if far <= FAR else None

    def _steps_of_tiles(self, row: int, along: int) -> tuple[int, int] | None:
        """The same in cells, for tile registers: they read whole ones, so that no row may end within one."""
        depth, group = self.left.depth.extent, self.form.group
        whole = isinstance(depth, int) and depth % (tile_registers.CELLS * group) == 0
        return (row // group, along) if along == 1 and row % group == 0 and whole else None

    def _tile_of_rows(self, x: Reading, row: Ref, down: Ref, k: Ref) -> tuple[str, Ref]:
        """The address of the rows from ``row``, ``down`` from the first of the block, and how many rows above them it
        begins: in place there is nothing behind the last row, so the last tile reaches back."""
        c, found, extent = self.c, self.left.operand.in_memory, self.left.free.extent
        if self.steps_of_rows is None:
            return c.at(self.packed_a, c.mul(down, self.pitch), self.item), 0
        assert found is not None and isinstance(extent, int)
        first = c.min(row, extent - self.blocks.tile.rows)
        return x.address(*found, {self.left.free: first, self.left.depth: k}), c.sub(row, first)

    def _pack_rows(self, x: Reading, row: Ref, height: Ref, k: Ref, depth: Ref) -> None:
        c, rows, group = self.c, self.blocks.tile.rows, self.form.group
        if self.cells_are_turned:
            self._turn_rows(x, row, height, k, depth)
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
                self.left.interleaved(plain, rows, to, rows, depth)

    def _turn_rows(self, x: Reading, row: Ref, height: Ref, k: Ref, depth: Ref) -> None:
        c, rows = self.c, self.blocks.tile.rows
        cells = self.form.cells(c, depth)
        with c.loop(0, height, rows) as panel:
            high = c.min(rows, c.sub(height, panel.index))
            first = c.add(row, panel.index)
            source, pitch = self._plain_panel(self.left, x, self.loose, k, first, depth, high, rows)
            self.left.interleaved(source, pitch, self.unturned, rows, depth)
            self._fill_tiles(self.unturned, cells, rows)
            to = c.at(self.packed_a, c.mul(panel.index, self.pitch), self.item)
            self.left.turned_cells(self.unturned, rows, to, self.pitch, tile_registers.whole(c, cells))

    def _packed_panel(self, base: str, column: Ref) -> str:
        """Where the packed panel from a column on is, a multiple of a tile's."""
        return self.c.at(base, self.c.mul(self.c.div(column, self.blocks.tile.columns), self.panel_pitch), self.item)

    def _pack_columns(self, y: Reading, to: str, few: str | bool, k: Ref, col: Ref, depth: Ref, length: Ref) -> None:
        """Pack panels of y that the micro-kernel will not read where they lie."""
        c, columns = self.c, self.blocks.tile.columns
        if not self.turned and self.form.group == 1:
            done: Ref = 0
            if self._lies_in_panels(self.right):
                done = c.choose(few, c.mul(c.div(length, columns), columns), 0)
            first, count = c.add(col, done), c.sub(length, done)
            self.right.panels(y, self._packed_panel(to, done), self.panel_pitch, columns, first, count, k, depth)
            return
        with c.loop(0, length, columns) as panel:
            width = columns if self.blocks.even_columns else c.min(columns, c.sub(length, panel.index))
            self._pack_panel(y, self._packed_panel(to, panel.index), k, c.add(col, panel.index), depth, width)

    def _pack_panel(self, y: Reading, to: str, k: Ref, col: Ref, depth: Ref, width: Ref) -> None:
        """Pack a panel whose columns have to be turned, or whose elements go in groups."""
        columns, group = self.blocks.tile.columns, self.form.group
        source = to if group == 1 else self.loose
        pitch: Ref = columns
        if self.turned:
            self.right.turned(y, source, columns, col, width, k, depth)
        else:
            source, pitch = self._plain_panel(self.right, y, source, k, col, depth, width, columns)
        if group > 1:
            self.right.interleaved(source, pitch, to, columns, depth)
        if self.form.how is How.TILES:
            self._fill_tiles(to, self.form.cells(self.c, depth), columns)

    def _panel(self, y: Reading, packed: str, few: str | bool, k: Ref, col: Ref, width: Ref) -> tuple[str, Ref]:
        """The address of a full panel of y and the distance of its lines in cells."""
        columns = self.blocks.tile.columns
        if self.turned or self.form.group > 1 or not self._lies_in_panels(self.right):
            return packed, columns
        direct = self.c.both(few, self.c.compare("eq", width, columns))
        return self._direct_or_packed(self.right, y, packed, direct, k, col, columns)

    def _fill_tiles(self, panel: str, cells: Ref, extent: int) -> None:
        """Zeros behind the last line of a panel of so many columns, or rows, to the end of a tile."""
        c, width = self.c, self.blocks.tile.width
        end = c.mul(tile_registers.whole(c, cells), extent)
        with c.loop(c.mul(cells, extent), end, width) as at:
            self.e.store(self.e.zero(dt.int32, width), c.at(panel, at.index, self.item))

    def _plain_panel(
        self, packing: Packing, at: Reading, to: str, k: Ref, first: Ref, depth: Ref, count: Ref, extent: int
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
        self, packing: Packing, at: Reading, to: str, direct: str | bool, k: Ref, first: Ref, extent: int
    ) -> tuple[str, Ref]:
        c = self.c
        if direct is False or packing.lies is None:
            return to, extent
        pointer, position = packing.lies
        source = at.address(pointer, position, {packing.free: first, packing.depth: k})
        pitch = stride(c, position, packing.depth)
        return c.choose_pointer(direct, source, to), c.choose(direct, pitch, extent)


def _steps(extent: Extent, step: int) -> Extent:
    """How many steps reach to ``extent``."""
    return (extent + (step - 1)) // step


def _even(c: Code, begin: Ref, end: Ref, most: int, grain: int) -> Ref:
    """The step of the least number of equal steps of whole grains, ``most`` at the most, from begin to end."""
    length = c.max(c.sub(end, begin), 1)
    steps = c.div(c.add(length, most - 1), most)
    each = c.div(c.add(length, c.sub(steps, 1)), steps)
    return c.mul(c.div(c.add(each, grain - 1), grain), grain)


def _up_to(wanted: int, grain: int, extent: Extent) -> int:
    """At least ``wanted``, in whole grains, one or more; no more grains than ``extent`` has."""
    grains = -(-wanted // grain)
    if isinstance(extent, int):
        grains = min(grains, -(-extent // grain))
    return max(1, grains) * grain
