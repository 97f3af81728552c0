"""Native steps of factorisations of large matrices: what is done to one block of columns or rows.

``eager/blocked_linalg.py`` says in which order.  Matrices are row-major with a pitch in elements; each function takes
the address of its words (see ``WORDS``).  Those that are tasks share out units, columns all of them, so that an element
has the same sums however many threads there are.

``update``   c -= a @ b over columns, in blocks of DEPTH of the inner extent: in each the sum begins at zero, goes up in
             order by fused multiply-adds, and is then added.  ``pack`` lays out -a for it.  Of an ``upper`` update only
             the part on and above the diagonal is wanted.
``solve``    substitution forwards, for a lower triangle of up to BLOCK rows that lie without gaps.
``solve_dots`` of one vector, in steps of ``sign`` as the elements of a row: an element less the product of its row with
             those before, whose sum goes in _CHAINS vectors of _LANES by turns.
``solve_axpys`` likewise as the elements of a column: each one is taken out of those behind at once.
``cholesky`` the upper factor of one block: the number of the row where it ends, -1 where it does not.
``lu``       up to BLOCK columns with at least as many rows, with partial pivoting; rows change places within them.
``swap``     the same exchanges in other columns.
``qr``       up to BLOCK columns with at least as many rows, by reflections I - tau v v^T (Householder): v, whose first
             element is one, lies below the diagonal.
``transpose`` of a square matrix: of its ``lower`` triangle alone, or of its ``upper`` one with zeros in place of the
             other.
"""

from __future__ import annotations

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref, lanes_for
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.tile_transpose import transpose_in_registers
from hybridflow.compiler.codegen.products.cache_blocking import choose_tile
from hybridflow.compiler.codegen.products.micro_kernel import Tile, emit_micro_kernel
from hybridflow.compiler.codegen.products.packed_formats import packed_format_of
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.types import Dim
from hybridflow.compiler.loops.tuning import TRANSPOSE_SQUARE
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.compiler.target import Target

BLOCK = 64  # rows of what is substituted, or factored, at once
_PANEL = 16  # columns whose pivots are found one by one, before the others of a block follow
DEPTH = K_BLOCK
_LANES, _CHAINS = 16, 4  # of a product of vectors: so wide on any machine, for the same bits
_ROWS = 4  # that are substituted side by side

WORDS = {
    "pack": ("ptr a", "row", "column", "ptr packed", "m", "k"),
    "update": ("ptr c_", "pitch", "ptr packed", "ptr b", "b_pitch", "m", "n", "k", "upper"),
    "solve": ("ptr a", "ptr x", "pitch", "n", "columns"),
    "solve_dots": ("ptr a", "pitch", "sign", "ptr x", "n", "unit"),
    "solve_axpys": ("ptr a", "pitch", "sign", "ptr x", "n", "unit"),
    "cholesky": ("ptr a", "pitch", "n", "result"),
    "lu": ("ptr a", "pitch", "m", "n", "ptr pivots"),
    "qr": ("ptr a", "pitch", "m", "n", "ptr tau"),
    "swap": ("ptr a", "pitch", "ptr pivots", "count", "n"),
    "transpose": ("ptr a", "pitch", "ptr out", "out_pitch", "n", "lower", "upper"),
}
TASKS = ("pack", "update", "solve", "transpose")


def tile_for(target: Target, dtype: np.dtype) -> Tile:
    """The tile of updates."""
    return choose_tile(target, packed_format_of(target, dtype, dtype), Dim("m"), Dim("n"))


def solve_columns(target: Target, dtype: np.dtype) -> int:
    """Columns of a unit of ``solve``."""
    return _solve_vectors(target) * lanes_for(target, dtype, Dim("n"))


def square_for(target: Target, dtype: np.dtype) -> int:
    """Rows of a unit of ``transpose``."""
    return min(lanes_for(target, dtype, Dim("n")), TRANSPOSE_SQUARE)


def _solve_vectors(target: Target) -> int:
    return 4 if target.registers >= 32 else 2


def text(dtype: np.dtype, target: Target) -> str:
    """A module with all of them."""
    module = LLVMModule(target)
    for name in WORDS:
        step = _Step(module, name, dtype)
        getattr(step, f"emit_{name}")()
        step.finish()
    return module.render()


class _Step:
    """One function being emitted."""

    def __init__(self, module: LLVMModule, name: str, dtype: np.dtype) -> None:
        self.module, self.name, self.dtype, self.item = module, name, dtype, dtype.itemsize
        target = module.target
        self.width = lanes_for(target, dtype, Dim("n"))
        self.e = Emitter(target, self.width)
        self.c = KernelBuilder(self.e)
        self.tile = tile_for(target, dtype)
        for k, word in enumerate(WORDS[name]):
            kind, _, label = word.rpartition(" ")
            setattr(self, label, self._word(k, kind or "i64"))

    def __getattr__(self, name: str) -> str:  # words, which a checker does not see
        raise AttributeError(name)

    def finish(self) -> None:
        self.e.line("ret void")
        parameters = "ptr %words" + (", i64 %begin, i64 %end, i64 %worker" if self.name in TASKS else "")
        self.module.function(self.e, self.name, parameters)

    def _word(self, number: int, kind: str) -> str:
        name = self.e.fresh("w")
        self.e.line(f"{name} = load {kind}, ptr {self.c.at('%words', number, 8)}, align 8")
        return name

    def _room(self, elements: int) -> str:
        name = self.e.fresh("room")
        self.e.line(f"{name} = alloca [{elements * self.item} x i8], align 64")
        return name

    def _at(self, base: str, row: Ref, pitch: Ref, column: Ref = 0) -> str:
        return self.c.at(base, self.c.add(self.c.mul(row, pitch), column), self.item)

    def _scalar(self, address: str) -> Val:
        with self.c.width(1):
            return self.e.load(address, self.dtype)

    def _keep(self, value: Val, address: str) -> None:
        with self.c.width(1):
            self.e.store(value, address)

    # ---- products

    def emit_pack(self) -> None:
        """-a in tiles of rows: the elements of a column side by side, blocks of the depth one after the other."""
        c, e, rows = self.c, self.e, self.tile.rows
        tiles = c.div(c.add(self.m, rows - 1), rows)
        with c.loop(0, self.k, DEPTH) as block:
            depth = c.min(DEPTH, c.sub(self.k, block.index))
            base = c.at(self.packed, c.mul(block.index, c.mul(tiles, rows)), self.item)
            with c.loop("%begin", "%end") as tile:
                to = c.at(base, c.mul(tile.index, c.mul(depth, rows)), self.item)
                first = c.mul(tile.index, rows)
                last = c.sub(self.m, 1)
                lines = [self._at(self.a, c.min(c.add(first, r), last), self.row) for r in range(rows)]
                with c.loop(0, depth) as k, c.width(1):
                    position = c.mul(c.add(block.index, k.index), self.column)
                    for r, line in enumerate(lines):
                        value = e.neg(e.load(c.at(line, position, self.item), self.dtype))
                        e.store(value, c.at(to, c.add(c.mul(k.index, rows), r), self.item))

    def emit_update(self) -> None:
        c, e, tile = self.c, self.e, self.tile
        rows, columns, width = tile.rows, tile.columns, tile.width
        form = packed_format_of(e.target, self.dtype, self.dtype)
        kernel = emit_micro_kernel(
            self.module, "micro", e.target, False, form, tile, 1, rows, one_block=False, multiple=1
        )
        panel, edge = self._room(DEPTH * columns), self._room(rows * columns)
        tiles = c.div(c.add(self.m, rows - 1), rows)

        def multiply(a: str, depth: Ref, place: str, pitch: Ref) -> None:
            e.line(
                f"call void @{kernel}(ptr {a}, ptr {panel}, i64 {columns}, i64 {depth}, ptr {place}, i64 {pitch}, "
                f"ptr {place}, i64 {pitch})"
            )

        with c.loop("%begin", "%end") as unit:
            column = c.mul(unit.index, columns)
            length = c.min(columns, c.sub(self.n, column))
            seen = c.choose(c.compare("eq", self.upper, 0), self.m, c.min(self.m, c.add(column, length)))
            wanted = c.div(c.add(seen, rows - 1), rows)
            masks = self._masks(length, tile)
            with c.loop(0, self.k, DEPTH) as block:
                depth = c.min(DEPTH, c.sub(self.k, block.index))
                with c.loop(0, depth) as k, c.width(width):
                    line = self._at(self.b, c.add(block.index, k.index), self.b_pitch, column)
                    for v, mask in enumerate(masks):
                        value = e.load(c.at(line, v * width, self.item), self.dtype, mask)
                        e.store(value, c.at(panel, c.add(c.mul(k.index, columns), v * width), self.item))
                packed = c.at(self.packed, c.mul(block.index, c.mul(tiles, rows)), self.item)
                with c.loop(0, wanted) as t:
                    a = c.at(packed, c.mul(t.index, c.mul(depth, rows)), self.item)
                    row = c.mul(t.index, rows)
                    height = c.min(rows, c.sub(self.m, row))
                    place = self._at(self.c_, row, self.pitch, column)
                    whole = c.both(c.compare("eq", height, rows), c.compare("eq", length, columns))
                    with c.when(whole):
                        multiply(a, depth, place, self.pitch)
                    with c.when(c.negation(whole)):
                        self._copy(place, self.pitch, edge, columns, height, masks, width)
                        multiply(a, depth, edge, columns)
                        self._copy(edge, columns, place, self.pitch, height, masks, width)

    def _masks(self, length: Ref, tile: Tile) -> list[Val]:
        with self.c.width(tile.width):
            return [self.c.lanes_below(self.c.max(self.c.sub(length, v * tile.width), 0)) for v in range(tile.vectors)]

    def _copy(self, source: str, pitch: Ref, to: str, to_pitch: Ref, rows: Ref, masks: list[Val], width: int) -> None:
        """Lines of as many vectors as there are masks."""
        c, e = self.c, self.e
        with c.loop(0, rows) as r, c.width(width):
            for v, mask in enumerate(masks):
                value = e.load(self._at(source, r.index, pitch, v * width), self.dtype, mask)
                e.store(value, self._at(to, r.index, to_pitch, v * width), mask)

    # ---- one block

    def emit_solve(self) -> None:
        c, e, width = self.c, self.e, self.width
        vectors = _solve_vectors(e.target)
        columns = vectors * width
        room = self._room(BLOCK * columns)
        tile = Tile(1, vectors, width)

        def row(i: Ref) -> list[str]:
            return [self._at(room, i, columns, v * width) for v in range(vectors)]

        def substitute(first: Ref, count: int) -> None:
            """Rows from ``first`` on."""
            start = [e.load(address, self.dtype) for r in range(count) for address in row(c.add(first, r))]
            with c.loop(0, first, carry=start) as j:
                x = [e.neg(e.load(address, self.dtype)) for address in row(j.index)]
                following = []
                for r in range(count):
                    factor = e.load_splat(self._at(self.a, c.add(first, r), self.n, j.index), self.dtype)
                    following += [e.fma(factor, x[v], j.carried[r * vectors + v]) for v in range(vectors)]
                j.next = following
            lines = [j.carried[r * vectors : (r + 1) * vectors] for r in range(count)]
            for r in range(count):
                for s in range(r):
                    factor = e.neg(e.load_splat(self._at(self.a, c.add(first, r), self.n, c.add(first, s)), self.dtype))
                    lines[r] = [e.fma(factor, x, y) for x, y in zip(lines[s], lines[r])]
                divisor = e.load_splat(self._at(self.a, c.add(first, r), self.n, c.add(first, r)), self.dtype)
                lines[r] = [e.div(y, divisor) for y in lines[r]]
                for value, address in zip(lines[r], row(c.add(first, r))):
                    e.store(value, address)

        with c.loop("%begin", "%end") as unit:
            column = c.mul(unit.index, columns)
            masks = self._masks(c.min(columns, c.sub(self.columns, column)), tile)
            place = c.at(self.x, column, self.item)
            self._copy_in(place, room, columns, masks)
            whole = c.mul(c.div(self.n, _ROWS), _ROWS)
            with c.loop(0, whole, _ROWS) as at, c.width(width):
                substitute(at.index, _ROWS)
            with c.loop(whole, self.n) as at, c.width(width):
                substitute(at.index, 1)
            self._copy(room, columns, place, self.pitch, self.n, masks, width)

    def _copy_in(self, place: str, room: str, columns: int, masks: list[Val]) -> None:
        """All rows, with zeros where there are no columns."""
        c, e, width = self.c, self.e, self.width
        with c.loop(0, self.n) as r, c.width(width):
            for v, mask in enumerate(masks):
                value = e.load(self._at(place, r.index, self.pitch, v * width), self.dtype, mask)
                e.store(value, self._at(room, r.index, columns, v * width))

    def _divided(self, value: Val, diagonal: str) -> Val:
        """By an element of the diagonal, which is one where that is said."""
        e = self.e
        divisor = e.load(diagonal, self.dtype)
        is_unit = Val(str(self.c.compare("ne", self.unit, 0)), dt.bool_, 1)
        return e.div(value, e.select(is_unit, e.const(1, self.dtype, 1), divisor))

    def _low(self, position: Ref, other: Ref) -> Ref:
        """Where memory from one position begins, if it goes upwards, else from the ``other``."""
        c = self.c
        return c.choose(c.compare("sgt", self.sign, 0), position, c.mul(other, -1))

    def emit_solve_dots(self) -> None:
        c, e = self.c, self.e
        room = self._room(_LANES)
        with c.loop(0, self.n) as i:
            low = self._low(0, c.sub(i.index, 1))
            line = self._at(self.a, i.index, self.pitch)
            left, right = c.at(line, low, self.item), c.at(self.x, low, self.item)
            together = _LANES * _CHAINS
            whole = c.mul(c.div(i.index, together), together)
            with c.width(_LANES):
                zero = e.zero(self.dtype)

                def added(
                    position: Ref, total: Val, mask: Val | None = None, left: str = left, right: str = right
                ) -> Val:
                    x = e.load(c.at(left, position, self.item), self.dtype, mask)
                    return e.fma(x, e.load(c.at(right, position, self.item), self.dtype, mask), total)

                with c.loop(0, whole, together, carry=[zero] * _CHAINS) as k:
                    k.next = [added(c.add(k.index, _LANES * q), total) for q, total in enumerate(k.carried)]
                first, *others = k.carried
                with c.loop(whole, i.index, _LANES, carry=[first]) as k:
                    mask = c.lanes_below(c.sub(i.index, k.index))
                    k.next = [added(k.index, k.carried[0], mask)]
                total = e.add(e.add(k.carried[0], others[0]), e.add(others[1], others[2]))
                e.store(total, room)
            with c.width(1):
                parts = [e.load(c.at(room, lane, self.item), self.dtype) for lane in range(_LANES)]
                while len(parts) > 1:
                    half = len(parts) // 2
                    parts = [e.add(parts[q], parts[q + half]) for q in range(half)]
                step = c.mul(i.index, self.sign)
                place = c.at(self.x, step, self.item)
                e.store(self._divided(e.sub(e.load(place, self.dtype), parts[0]), c.at(line, step, self.item)), place)

    def emit_solve_axpys(self) -> None:
        c, e = self.c, self.e
        with c.loop(0, self.n) as k:
            line, step = self._at(self.a, k.index, self.pitch), c.mul(k.index, self.sign)
            place = c.at(self.x, step, self.item)
            with c.width(1):
                value = self._divided(e.load(place, self.dtype), c.at(line, step, self.item))
                e.store(value, place)
            minus = e.splat(e.neg(value))
            low = self._low(c.add(k.index, 1), c.sub(self.n, 1))
            source, to = c.at(line, low, self.item), c.at(self.x, low, self.item)

            def subtract(j: Ref, mask: Val | None, minus: Val = minus, source: str = source, to: str = to) -> None:
                place = c.at(to, j, self.item)
                value = e.fma(
                    minus, e.load(c.at(source, j, self.item), self.dtype, mask), e.load(place, self.dtype, mask)
                )
                e.store(value, place, mask)

            c.vector_loop(0, c.sub(c.sub(self.n, 1), k.index), self.width, subtract, masks=True)

    def emit_cholesky(self) -> None:
        c, e, width = self.c, self.e, self.width
        pitch = BLOCK + width
        room = self._room(BLOCK * pitch)
        n = self.n

        def lines(inwards: bool) -> None:
            with c.loop(0, n) as i:

                def move(j: Ref, mask: Val | None) -> None:
                    inside, outside = self._at(room, i.index, pitch, j), self._at(self.a, i.index, self.pitch, j)
                    source, to = (outside, inside) if inwards else (inside, outside)
                    e.store(e.load(source, self.dtype, mask), to, mask)

                c.vector_loop(0, n, width, move)

        lines(True)
        with c.loop(0, n, carry=[e.const(-1, dt.int64, 1)]) as k:
            line = self._at(room, k.index, pitch)
            square = self._scalar(c.at(line, k.index, self.item))
            with c.width(1):
                root = e.sqrt(square)
                good = e.or_(e.gt(square, e.const(0, self.dtype, 1)), e.ge(k.carried[0], e.const(0, dt.int64, 1)))
                k.next = [e.select(good, k.carried[0], c.value(k.index))]
            divisor = e.splat(root)

            def divide(j: Ref, mask: Val | None, line: str = line, divisor: Val = divisor) -> None:
                e.store(
                    e.div(e.load(c.at(line, j, self.item), self.dtype, mask), divisor), c.at(line, j, self.item), mask
                )

            c.vector_loop(c.mul(c.div(k.index, width), width), n, width, divide, masks=True)
            self._keep(root, c.at(line, k.index, self.item))
            with c.loop(c.add(k.index, 1), n) as i:
                factor = e.neg(e.load_splat(c.at(line, i.index, self.item), self.dtype))
                to = self._at(room, i.index, pitch)

                def subtract(j: Ref, mask: Val | None, line: str = line, factor: Val = factor, to: str = to) -> None:
                    at, source = c.at(to, j, self.item), c.at(line, j, self.item)
                    e.store(e.fma(factor, e.load(source, self.dtype, mask), e.load(at, self.dtype, mask)), at, mask)

                c.vector_loop(c.mul(c.div(i.index, width), width), n, width, subtract, masks=True)
        e.line(f"store i64 {k.carried[0].ref}, ptr {c.at('%words', 3, 8)}, align 8")
        lines(False)

    def emit_lu(self) -> None:
        c = self.c
        with c.loop(0, self.n, _PANEL) as panel:
            first = panel.index
            end = c.min(c.add(first, _PANEL), self.n)
            with c.loop(first, end) as k:
                self._pivot(k.index, end)

            def follow(j: Ref, mask: Val | None, first: Ref = first, end: Ref = end) -> None:
                self._follow(first, end, j, mask)

            c.vector_loop(end, self.n, self.width, follow, masks=True)

    def _pivot(self, k: Ref, end: Ref) -> None:
        """One column of a panel, and what becomes of those behind it, up to ``end``."""
        c, e = self.c, self.e
        line, below = self._at(self.a, k, self.pitch), c.add(k, 1)
        with c.width(1):
            start = [e.abs(e.load(c.at(line, k, self.item), self.dtype)), c.value(k)]
            with c.loop(below, self.m, carry=start) as i:
                size = e.abs(e.load(self._at(self.a, i.index, self.pitch, k), self.dtype))
                larger = e.gt(size, i.carried[0])
                i.next = [e.select(larger, size, i.carried[0]), e.select(larger, c.value(i.index), i.carried[1])]
        pivot = i.carried[1].ref
        e.line(f"store i64 {pivot}, ptr {c.at(self.pivots, k, 8)}, align 8")
        self._exchange(line, self._at(self.a, pivot, self.pitch), self.n)
        with c.width(1):
            value = e.load(c.at(line, k, self.item), self.dtype)
            divisor = e.select(e.eq(value, e.const(0, self.dtype, 1)), e.const(1, self.dtype, 1), value)
        with c.loop(below, self.m) as i:
            to = self._at(self.a, i.index, self.pitch)
            with c.width(1):
                factor = e.div(e.load(c.at(to, k, self.item), self.dtype), divisor)
                e.store(factor, c.at(to, k, self.item))
            minus = e.splat(e.neg(factor))

            def subtract(j: Ref, mask: Val | None, minus: Val = minus, to: str = to) -> None:
                at, source = c.at(to, j, self.item), c.at(line, j, self.item)
                e.store(e.fma(minus, e.load(source, self.dtype, mask), e.load(at, self.dtype, mask)), at, mask)

            c.vector_loop(below, end, self.width, subtract, masks=True)

    def _follow(self, first: Ref, end: Ref, j: Ref, mask: Val | None) -> None:
        """A vector of columns after all pivots of a panel."""
        c, e = self.c, self.e

        def less(row: Ref, lines: list[Val]) -> Val:
            """What is left of a row without those of the panel above it."""
            value = e.load(self._at(self.a, row, self.pitch, j), self.dtype, mask)
            for k, line in enumerate(lines):
                factor = e.load_splat(self._at(self.a, row, self.pitch, c.add(first, k)), self.dtype)
                value = e.fma(factor, line, value)
            e.store(value, self._at(self.a, row, self.pitch, j), mask)
            return value

        lines: list[Val] = []
        for k in range(_PANEL):
            lines.append(e.neg(less(c.add(first, k), lines)))
        with c.loop(end, self.m) as i:
            less(i.index, lines)

    def _exchange(self, line: str, other: str, n: Ref) -> None:
        c, e = self.c, self.e
        with c.when(c.pointers_differ(line, other)):

            def swap(j: Ref, mask: Val | None) -> None:
                one, two = c.at(line, j, self.item), c.at(other, j, self.item)
                x, y = e.load(one, self.dtype, mask), e.load(two, self.dtype, mask)
                e.store(y, one, mask)
                e.store(x, two, mask)

            c.vector_loop(0, n, self.width, swap)

    def emit_swap(self) -> None:
        c, e = self.c, self.e
        with c.loop(0, self.count) as k:
            pivot = e.fresh("p")
            e.line(f"{pivot} = load i64, ptr {c.at(self.pivots, k.index, 8)}, align 8")
            self._exchange(self._at(self.a, k.index, self.pitch), self._at(self.a, pivot, self.pitch), self.n)

    def emit_qr(self) -> None:
        c, e = self.c, self.e
        with c.loop(0, self.n) as k:
            below = c.add(k.index, 1)

            def at(i: Ref, k: Ref = k.index) -> str:
                return self._at(self.a, i, self.pitch, k)

            with c.width(1):
                zero, one = e.const(0, self.dtype, 1), e.const(1, self.dtype, 1)
                alpha = e.load(at(k.index), self.dtype)
                with c.loop(below, self.m, carry=[e.abs(alpha)]) as i:
                    size = e.abs(e.load(at(i.index), self.dtype))
                    i.next = [e.select(e.gt(size, i.carried[0]), size, i.carried[0])]
                scale = e.select(e.eq(i.carried[0], zero), one, i.carried[0])
                with c.loop(below, self.m, carry=[zero]) as i:
                    part = e.div(e.load(at(i.index), self.dtype), scale)
                    i.next = [e.fma(part, part, i.carried[0])]
                is_zero = e.eq(i.carried[0], zero)
                first = e.div(alpha, scale)
                length = e.mul(e.sqrt(e.fma(first, first, i.carried[0])), scale)
                beta = e.select(e.lt(alpha, zero), length, e.neg(length))
                tau = e.select(is_zero, zero, e.div(e.sub(beta, alpha), beta))
                divisor = e.select(is_zero, one, e.sub(alpha, beta))
                e.store(e.select(is_zero, alpha, beta), at(k.index))
                e.store(tau, c.at(self.tau, k.index, self.item))
                with c.loop(below, self.m) as i:
                    e.store(e.div(e.load(at(i.index), self.dtype), divisor), at(i.index))
            factor = e.splat(tau)
            vectors = Tile(1, _solve_vectors(e.target), self.width)
            with c.loop(below, self.n, vectors.columns) as j:
                masks = self._masks(c.sub(self.n, j.index), vectors)

                def row(i: Ref, j: Ref = j.index) -> list[str]:
                    return [self._at(self.a, i, self.pitch, c.add(j, v * self.width)) for v in range(vectors.vectors)]

                tops = [e.load(place, self.dtype, mask) for place, mask in zip(row(k.index), masks)]
                with c.loop(below, self.m, carry=tops) as i:
                    v = e.load_splat(at(i.index), self.dtype)
                    values = [e.load(place, self.dtype, mask) for place, mask in zip(row(i.index), masks)]
                    i.next = [e.fma(v, value, total) for value, total in zip(values, i.carried)]
                totals = [e.neg(e.mul(total, factor)) for total in i.carried]
                for place, top, total, mask in zip(row(k.index), tops, totals, masks):
                    e.store(e.add(top, total), place, mask)
                with c.loop(below, self.m) as i:
                    v = e.load_splat(at(i.index), self.dtype)
                    for place, total, mask in zip(row(i.index), totals, masks):
                        e.store(e.fma(v, total, e.load(place, self.dtype, mask)), place, mask)

    def emit_transpose(self) -> None:
        """Units: squares down the rows of what is read."""
        c, e = self.c, self.e
        square = square_for(e.target, self.dtype)
        only_lower, only_upper = c.compare("ne", self.lower, 0), c.compare("ne", self.upper, 0)
        with c.loop("%begin", "%end") as unit:
            top = c.mul(unit.index, square)
            height = c.min(square, c.sub(self.n, top))
            end = c.choose(only_lower, c.add(top, height), self.n)
            aside = c.choose(only_upper, top, 0)  # columns that are left out
            zero = e.zero(self.dtype, 1)
            with c.loop(0, aside) as across, c.loop(0, height) as down:
                self._keep(zero, self._at(self.out, across.index, self.out_pitch, c.add(top, down.index)))
            length = c.mul(c.div(c.sub(end, aside), square), square)
            whole = c.add(aside, c.choose(c.compare("eq", height, square), length, 0))
            with c.loop(aside, whole, square) as across, c.width(square):
                rows = [
                    e.load(self._at(self.a, c.add(top, r), self.pitch, across.index), self.dtype) for r in range(square)
                ]
                for r, value in enumerate(transpose_in_registers(e, rows)):
                    e.store(value, self._at(self.out, c.add(across.index, r), self.out_pitch, top))
            with c.loop(whole, end) as across, c.loop(0, height) as down:
                value = self._scalar(self._at(self.a, c.add(top, down.index), self.pitch, across.index))
                self._keep(value, self._at(self.out, across.index, self.out_pitch, c.add(top, down.index)))
            with c.when(only_upper), c.loop(0, height) as across, c.loop(c.add(across.index, 1), height) as down:
                place = self._at(self.out, c.add(top, across.index), self.out_pitch, c.add(top, down.index))
                self._keep(zero, place)
