"""Products by teams of GPU threads as phases of a kernel: who has which tile, and what becomes of the sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.gpu.group_matmul import GroupTiles, Store, ThreadTiles
from hybridflow.compiler.codegen.gpu.shared_memory_operands import OperandPair
from hybridflow.compiler.codegen.gpu.tensor_cores import RoundedTensorCoreTiles, TensorCoreTiles
from hybridflow.compiler.codegen.products.packed_formats import MultiplyKind, PackedFormat
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops import gpu_matmul_tiles
from hybridflow.compiler.loops.gpu_matmul_tiles import GroupMatmul, TensorCoreTile
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class GroupProduct:
    """What teams multiply: the extents, the dtype of sums and how elements go into them, and how the tiles are cut."""

    how: GroupMatmul
    form: PackedFormat
    batch: tuple[Extent, ...]
    m: Extent
    n: Extent
    k: Extent

    @property
    def _tiles(self) -> tuple[Extent, Extent]:
        tile = self.how.tile
        return (self.m + (tile.rows - 1)) // tile.rows, (self.n + (tile.columns - 1)) // tile.columns

    @property
    def units(self) -> tuple[Extent, ...]:
        """Tiles, of the product or of the sums of each block of the depth."""
        return (*self.batch, self.how.blocks, *self._tiles)

    @property
    def shared(self) -> Extent:
        """Bytes for the sums of all blocks of the depth: [batch, block, row, column]."""
        count = self.how.blocks
        return product((*self.batch, count, self.m, self.n)) * self.form.sums.itemsize if count > 1 else 0

    def write(self, c: KernelBuilder, sides: OperandPair, store: Store) -> None:
        """The body of the phase of tiles."""
        tile, blocks, sums = self.how.tile, self.how.blocks, self.form.sums
        m, n, k = (c.extent(extent) for extent in (self.m, self.n, self.k))
        down, across = (c.extent(extent) for extent in self._tiles)
        tiles: GroupTiles
        if isinstance(tile, TensorCoreTile):
            kind = RoundedTensorCoreTiles if tile.itemsize == 4 else TensorCoreTiles
            tiles = kind(c, tile, self.form, sides, (m, n), self.how.dynamic_shared_bytes)
        else:
            tiles = ThreadTiles(c, tile, self.form, sides, (m, n), self.how.dynamic_shared_bytes, self.how.in_blocks)

        def keep(value: Val, at: Ref, row: Ref, col: Ref) -> None:
            place = c.add(c.mul(c.add(c.mul(at, m), row), n), col)
            c.e.store(value, c.at("%shared", place, sums.itemsize))

        with c.loop("%begin", "%end") as unit:
            above = c.div(unit.index, across)
            at, row, col = c.div(above, down), c.rem(above, down), c.rem(unit.index, across)
            begin = c.mul(c.rem(at, blocks), K_BLOCK)
            end = k if blocks == 1 else c.min(c.add(begin, K_BLOCK), k)
            corner = c.mul(row, tile.rows), c.mul(col, tile.columns)
            tiles.write(c.div(at, blocks), at, *corner, begin, end, store if blocks == 1 else keep)

    def emit(
        self,
        module: LLVMModule,
        new_code: Callable[[], KernelBuilder],
        symbol: str,
        buffers: int,
        sides: OperandPair,
        store: Callable[[KernelBuilder], Store],
    ) -> EmittedKernel:
        """Add the kernel, of one phase or two, over ``buffers`` buffers."""

        def added(name: str, units: tuple[Extent, ...], write: Callable[[KernelBuilder], None], group: int) -> Phase:
            c = new_code()
            write(c)
            c.e.line("ret void")
            function = module.function(c.e, name, kernel_parameters(buffers), linkage="internal")
            return Phase(function, units, group_size=group)

        group = self.how.tile.threads
        phases = [added(symbol, self.units, lambda c: self.write(c, sides, store(c)), group)]
        if self.how.blocks > 1:
            elements = (*self.batch, self.m, self.n)
            phases.append(added(f"{symbol}_totals", elements, lambda c: self.write_totals(c, store(c)), 1))
        return EmittedKernel(tuple(phases), 0, self.shared)

    def write_totals(self, c: KernelBuilder, store: Store) -> None:
        """The body of a second phase, whose units are elements: sums of all blocks of the depth, added up in order."""
        e, sums, count = c.e, self.form.sums, self.how.blocks
        n, size = c.extent(self.n), c.mul(c.extent(self.m), c.extent(self.n))
        with c.loop("%begin", "%end") as unit:
            entry, inside = c.div(unit.index, size), c.rem(unit.index, size)
            first = c.add(c.mul(c.mul(entry, count), size), inside)
            with c.loop(0, count, 1, [e.zero(sums)]) as block:
                place = c.at("%shared", c.add(first, c.mul(block.index, size)), sums.itemsize)
                block.next = [e.add(block.carried[0], e.load(place, sums))]
            store(block.carried[0], entry, c.div(inside, n), c.rem(inside, n))


def by_tiles(
    form: PackedFormat,
    batch: tuple[Extent, ...],
    m: Extent,
    n: Extent,
    k: Extent,
    fastmath: bool,
    factors: np.dtype,
    may_round: bool = False,
    block: int = 0,
) -> GroupProduct | None:
    """A product of m x n elements of depth k by teams; None where threads do better alone.  By tensor cores, where
    ``fastmath`` allows that bits are not those of a CPU, and they have instructions for such factors and sums; those of
    float32 where elements ``may_round``.  A ``block`` of so many threads does all of it, if any."""
    halves = fastmath and factors in (dt.float16, dt.bfloat16)
    if form.sums == dt.float32 and (halves or (may_round and factors == dt.float32)):
        how = gpu_matmul_tiles.choose_fragments(batch, m, n, k, factors.itemsize, block)
        if how is not None:
            return GroupProduct(how, PackedFormat(MultiplyKind.EACH, factors, form.sums), batch, m, n, k)
    ordered = dt.is_float(form.sums)
    how = gpu_matmul_tiles.choose(batch, m, n, k, form.sums.itemsize, ordered, form.interleaves_sums, block)
    return None if how is None else GroupProduct(how, form, batch, m, n, k)
