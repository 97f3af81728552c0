"""Products by teams of GPU threads as phases of a kernel: who has which tile, and what becomes of the sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybridflow.compiler.codegen.factors import Form, How
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.phases import KernelCode, Phase, kernel_parameters
from hybridflow.compiler.codegen.structured import Code, Ref
from hybridflow.compiler.codegen.team_fragments import FragmentTiles, RoundedTiles
from hybridflow.compiler.codegen.team_product import Store, TeamTiles, Tiles
from hybridflow.compiler.codegen.team_sides import Sides
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops import team_products
from hybridflow.compiler.loops.team_products import FragmentTile, TeamProduct
from hybridflow.compiler.ops.order import K_BLOCK


@dataclass(frozen=True)
class Product:
    """What teams multiply: the extents, the dtype of sums and how elements go into them, and how the tiles are cut."""

    how: TeamProduct
    form: Form
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

    def write(self, c: Code, sides: Sides, store: Store) -> None:
        """The body of the phase of tiles."""
        tile, blocks, sums = self.how.tile, self.how.blocks, self.form.sums
        m, n, k = (c.extent(extent) for extent in (self.m, self.n, self.k))
        down, across = (c.extent(extent) for extent in self._tiles)
        tiles: Tiles
        if isinstance(tile, FragmentTile):
            kind = RoundedTiles if tile.itemsize == 4 else FragmentTiles
            tiles = kind(c, tile, self.form, sides, (m, n), self.how.lent)
        else:
            tiles = TeamTiles(c, tile, self.form, sides, (m, n), self.how.lent, self.how.in_blocks)

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
        module: ModuleText,
        new_code: Callable[[], Code],
        symbol: str,
        buffers: int,
        sides: Sides,
        store: Callable[[Code], Store],
    ) -> KernelCode:
        """Add the kernel, of one phase or two, over ``buffers`` buffers."""

        def added(name: str, units: tuple[Extent, ...], write: Callable[[Code], None], team: int) -> Phase:
            c = new_code()
            write(c)
            c.e.line("ret void")
            found = module.function(c.e, name, kernel_parameters(buffers), linkage="internal")
            return Phase(found, units, team=team)

        team = self.how.tile.threads
        phases = [added(symbol, self.units, lambda c: self.write(c, sides, store(c)), team)]
        if self.how.blocks > 1:
            elements = (*self.batch, self.m, self.n)
            phases.append(added(f"{symbol}_totals", elements, lambda c: self.write_totals(c, store(c)), 1))
        return KernelCode(tuple(phases), 0, self.shared)

    def write_totals(self, c: Code, store: Store) -> None:
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
    form: Form,
    batch: tuple[Extent, ...],
    m: Extent,
    n: Extent,
    k: Extent,
    fastmath: bool,
    factors: np.dtype,
    may_round: bool = False,
    block: int = 0,
) -> Product | None:
    """A product of m x n elements of depth k by teams; None where threads do better alone.  By tensor cores, where
    ``fastmath`` allows that bits are not those of a CPU, and they have instructions for such factors and sums; those of
    float32 where elements ``may_round``.  A ``block`` of so many threads does all of it, if any."""
    halves = fastmath and factors in (dt.float16, dt.bfloat16)
    if form.sums == dt.float32 and (halves or (may_round and factors == dt.float32)):
        how = team_products.choose_fragments(batch, m, n, k, factors.itemsize, block)
        if how is not None:
            return Product(how, Form(How.EACH, factors, form.sums), batch, m, n, k)
    ordered = dt.is_float(form.sums)
    how = team_products.choose(batch, m, n, k, form.sums.itemsize, ordered, form.by_runs, block)
    return None if how is None else Product(how, form, batch, m, n, k)
