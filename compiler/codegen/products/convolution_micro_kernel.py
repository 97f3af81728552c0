"""The innermost loops of convolutions: a tile of sums in registers over runs of products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat, multiply_add
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.tuning import CYCLES_PER_WINDOW_TILE
from hybridflow.compiler.target import Target
from hybridflow.quick_dataclasses import dataclass

RUN = (
    24  # bytes of an entry in a table of runs: where its first factors begin, how many there are, and where the second
)


@dataclass(frozen=True)
class ConvolutionTile:
    """Sums in registers: a line of ``vectors`` of ``width`` lanes for each of some rows.  Row r finds its first factors
    ``rows[r]`` cells behind those of row 0, one after the other ``step`` cells apart: a number that goes with the whole
    line, or, ``across``, one for each of its elements."""

    rows: tuple[int, ...]
    step: int
    vectors: int
    width: int
    across: bool

    @property
    def columns(self) -> int:
        return self.vectors * self.width

    @property
    def cells(self) -> int:
        return len(self.rows) * self.columns


def emit_convolution_micro_kernel(
    module: LLVMModule,
    symbol: str,
    target: Target,
    fastmath: bool,
    form: PackedFormat,
    tile: ConvolutionTile,
    length: int | None = None,
    one_block: bool = False,
) -> str:
    """Add the function of one tile over one block of the depth: totals = (0 if %first else totals) + the block's sums.
    Its name.

    %runs has %count entries (see ``RUN``), whose positions count elements from %a and %b; first factors are those of
    row 0.  Second factors are lines of the tile's columns, one after the other.  All runs have ``length`` products
    where that is given; they are written out then.  With ``one_block`` %first is always true.
    """
    sums_dtype, item = form.sums, form.sums.itemsize
    e = Emitter(target, tile.width, fastmath)
    c = KernelBuilder(e)
    count = len(tile.rows) * tile.vectors
    carry = [e.zero(sums_dtype)] * count
    with c.loop(0, "%count", 1, carry, as_written=False) as run:
        entry = c.at("%runs", c.mul(run.index, RUN), 1)
        begin, many, second = (e.load(c.at(entry, at, 1), dt.int64, width=1).ref for at in (0, 8, 16))
        a_run, b_run = c.at("%a", begin, item), c.at("%b", second, item)
        if length is None:
            run.next = _product_by_product(c, form, tile, many, a_run, b_run, run.carried)
        else:
            run.next = _factor_by_factor(c, form, tile, length, a_run, b_run, run.carried)
    first = e.splat(Val("%first", dt.bool_, 1))
    for i, total in enumerate(run.carried):
        address = c.at("%totals", i * tile.width, item)
        before = e.zero(sums_dtype)
        if not one_block:
            before = e.select(first, before, e.load(address, sums_dtype))
        e.store(e.add(before, total), address)
    e.line("ret void")
    parameters = "ptr %a, ptr %b, ptr %totals, ptr %runs, i64 %count, i1 %first"
    return module.function(e, symbol, parameters, linkage="internal")


def _product_by_product(
    c: KernelBuilder,
    form: PackedFormat,
    tile: ConvolutionTile,
    length: Ref,
    a_run: str,
    b_run: str,
    before: Sequence[Val],
) -> Sequence[Val]:
    """The sums with those of a run: each of its products for all rows."""
    e, item = c.e, form.sums.itemsize
    with c.loop(0, length, 1, before, as_written=False) as iteration:
        sums = list(iteration.carried)
        a_k = c.at(a_run, c.mul(iteration.index, tile.step), item)
        b_k = c.at(b_run, c.mul(iteration.index, tile.columns), item)
        b = [e.load(c.at(b_k, v * tile.width, item), form.sums) for v in range(tile.vectors)]
        for r, offset in enumerate(tile.rows):
            a = None if tile.across else e.load_splat(c.at(a_k, offset, item), form.sums)
            for v in range(tile.vectors):
                left = e.load(c.at(a_k, offset + v * tile.width, item), form.sums) if a is None else a
                i = r * tile.vectors + v
                sums[i] = multiply_add(e, form, left, b[v], sums[i])
        iteration.next = sums
    return iteration.carried


def _factor_by_factor(
    c: KernelBuilder,
    form: PackedFormat,
    tile: ConvolutionTile,
    length: int,
    a_run: str,
    b_run: str,
    before: Sequence[Val],
) -> Sequence[Val]:
    """The same across: each of the first factors for all rows that have it, the second ones in registers.  Each row
    comes to its products in their order, since factors go by their positions."""
    e, item = c.e, form.sums.itemsize
    assert tile.across and tile.step > 0
    sums = list(before)
    users: dict[int, list[tuple[int, int]]] = {}
    for r, offset in enumerate(tile.rows):
        for k in range(length):
            users.setdefault(offset + k * tile.step, []).append((r, k))
    for v in range(tile.vectors):
        b = [e.load(c.at(b_run, k * tile.columns + v * tile.width, item), form.sums) for k in range(length)]
        for offset in sorted(users):
            a = e.load(c.at(a_run, offset + v * tile.width, item), form.sums)
            for r, k in users[offset]:
                i = r * tile.vectors + v
                sums[i] = multiply_add(e, form, a, b[k], sums[i])
    return sums


def call_convolution_micro_kernel(
    c: KernelBuilder, name: str, a: str, b: str, totals: str, runs: str, count: Ref, first: str | bool
) -> None:
    starts = str(first).lower()
    c.e.line(f"call void @{name}(ptr {a}, ptr {b}, ptr {totals}, ptr {runs}, i64 {count}, i1 {starts})")


def convolution_tiles(
    target: Target,
    dtype: np.dtype,
    lines: int,
    line: int,
    columns: int,
    width: int,
    across: bool,
    depth: int,
    held: int = 0,
    apart: int = 1,
) -> list[tuple[int, int, int]]:
    """(lines, places of a line, vectors) of tiles for ``lines`` lines of ``line`` places, each of so many columns, with
    sums of ``depth`` products: the one with the least estimated time first.  Several lines only where a tile has all of
    them.  Across, the second factors of ``held`` products may be in registers at once; neighbouring places then share
    what is not in the ``apart`` first ones of these.
    """
    registers = target.registers - 1 if (target.fma if dt.is_float(dtype) else dtype.itemsize == 4) else 8

    def time(tile: tuple[int, int, int]) -> tuple[float, int]:
        high, wide, vectors = tile
        rows = high * wide
        # Cycles of a product: two multiply-adds or two loads each, and four until a sum can be added to again.
        loads: float = (rows + 1) * vectors if across else rows + vectors
        if held:
            loads = (high * min((wide - 1) * apart + held, wide * held) / held + 1) * vectors
        cycles = max(rows * vectors / 2, loads / 2, 4)
        tiles = -(-lines // high) * -(-line // wide) * -(-columns // (vectors * width))
        return tiles * (cycles * depth + CYCLES_PER_WINDOW_TILE), vectors

    return sorted(_tiles(registers, lines, line, -(-columns // width), max(held, 1)), key=time)


def _tiles(registers: int, lines: int, line: int, most_vectors: int, held: int) -> Sequence[tuple[int, int, int]]:
    """Tiles whose sums are in registers, with a first factor and the second ones of ``held`` products."""
    result = []
    for vectors in range(1, min(8, max(most_vectors, 1)) + 1):
        seconds = vectors if held == 1 else held  # vectors take turns where products are held
        most = max(1, (registers - 1 - seconds) // vectors)
        result += [(1, wide, vectors) for wide in range(1, min(most, line) + 1)]
        if line <= most:
            result += [(high, line, vectors) for high in range(2, min(most // line, lines) + 1)]
    return result
