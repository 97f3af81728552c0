"""How teams of GPU threads compute products: the choice of tiles, as data that ``codegen.gpu.group_matmul`` obeys.

A team computes a tile of the product, a block of its threads one after the other a small tile each, whose sums stay in
registers; so many elements of the depth of both factors lie in memory of the block at a time.  None of the numbers
here has been measured: they are what the manuals say of multiprocessors.
"""

from __future__ import annotations

from dataclasses import replace

from hybridflow.compiler.ir.types import Extent, is_static, static_size
from hybridflow.compiler.loops.tuning import ENOUGH_GROUPS, VECTOR_BYTES, WARP
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.quick_dataclasses import dataclass

DEPTH = 8  # elements along the depth that are in memory of the block at a time
SYMBOLIC = 1024  # what a symbolic extent is taken for: small enough for tiles of which several fit a multiprocessor
MIN_GROUP, MAX_GROUP = 2 * WARP, 256  # threads: a block has memory of its own, which warps that share one have not
MULTIPROCESSORS = 128
SUMS_A_CYCLE = 128  # that a multiprocessor adds up
CYCLES_OF_A_READ = 2  # of a multiprocessor, for vectors from memory of the block for a warp
CYCLES_OF_PACKING = 6 / 128  # an element
LATENCY = 40  # cycles for each element of the depth, however small the tile is
REGISTERS_FOR_SUMS = 128  # of a thread: its sums, and the totals that they are added to


@dataclass(frozen=True)
class GroupTile:
    """The tile of a team: ``rows`` by ``columns``, of which a thread has ``high`` by ``wide``, in groups of ``vector``
    neighbours each way."""

    rows: int
    columns: int
    high: int
    wide: int
    vector: int

    @property
    def threads(self) -> int:
        return self.threads_down * self.threads_across

    @property
    def threads_down(self) -> int:
        return self.rows // self.high

    @property
    def threads_across(self) -> int:
        return self.columns // self.wide

    @property
    def warp(self) -> tuple[int, int]:
        """Threads of a warp, down and across: as square as they may be, so that they read little."""
        across = min(self.threads_across, max(8, WARP // self.threads_down))
        return WARP // across, across

    @property
    def pitches(self) -> tuple[int, int]:
        """Elements from one to the next along the depth in memory of the block, of either factor."""
        return self.rows + self.vector, self.columns + self.vector

    depth = DEPTH

    def nbytes(self, itemsize: int) -> int:
        """Memory of the block for both factors, twice: one part is filled while the other one is read.  Behind them
        threads hand over finished sums there, so many rows at a time as there are threads down."""
        return max(2 * DEPTH * sum(self.pitches), self.threads_down * self.columns) * itemsize

    def times(self, m: int, n: int) -> int:
        """Tiles of a product of so many rows and columns."""
        return -(-m // self.rows) * -(-n // self.columns)

    def cycles(self) -> float:
        """Of a multiprocessor, for each element of the depth."""
        warps = self.threads / WARP
        vectors = (self.high + self.wide) / self.vector
        sums = self.rows * self.columns / SUMS_A_CYCLE + warps * vectors / 4
        return max(sums, warps * vectors * CYCLES_OF_A_READ) + (self.rows + self.columns) * CYCLES_OF_PACKING

    def __str__(self) -> str:
        return f"tiles of {self.rows} x {self.columns}, {self.high} x {self.wide} a thread"


@dataclass(frozen=True)
class TensorCoreTile:
    """The tile of a team whose warps have tensor cores multiply fragments, of 16 rows by 8 columns by 32 bytes of the
    depth: ``rows`` by ``columns``, of which a warp has ``high`` by ``wide``.  Elements of factors have ``itemsize``
    bytes there."""

    rows: int
    columns: int
    high: int
    wide: int
    itemsize: int = 2

    @property
    def depth(self) -> int:
        """Elements along the depth that are in memory of the block at a time."""
        return FRAGMENT_BYTES // self.itemsize

    @property
    def pitch(self) -> int:
        """Elements from line to line along the depth: those of neighbours lie in different banks."""
        return self.depth + VECTOR_BYTES // self.itemsize

    @property
    def warps_across(self) -> int:
        return self.columns // self.wide

    @property
    def threads(self) -> int:
        return self.rows // self.high * self.warps_across * WARP

    @property
    def side_bytes(self) -> tuple[int, int]:
        """Memory for a part of either factor, in lines of its rows or columns or in lines along these."""
        return self.rows * self.pitch * self.itemsize, self.columns * self.pitch * self.itemsize

    def nbytes(self, itemsize: int) -> int:
        """Memory of the block: both factors twice; sums of 16 rows of each warp."""
        return max(2 * sum(self.side_bytes), self.rows // self.high * 16 * self.columns * itemsize)

    def times(self, m: int, n: int) -> int:
        """Tiles of a product of so many rows and columns."""
        return -(-m // self.rows) * -(-n // self.columns)

    def __str__(self) -> str:
        kind = "TF32 fragments" if self.itemsize == 4 else "fragments"
        return f"{kind} in tiles of {self.rows} x {self.columns}, {self.high} x {self.wide} a warp"


FRAGMENT_BYTES = 64  # of a line along the depth that are in memory of the block at a time
FRAGMENT_TILES = (TensorCoreTile(128, 128, 64, 32), TensorCoreTile(64, 64, 32, 32), TensorCoreTile(32, 32, 16, 16))
LEAST_FRAGMENT = 16  # rows, columns and depth of a product


@dataclass(frozen=True)
class GroupMatmul:
    """``blocks`` of the depth go to different teams, whose sums a second step adds up; 1 where each goes through all of
    it.  ``in_blocks``: a team has totals beside the sums of a block.  ``lent``: its memory of the block is not its
    own."""

    tile: GroupTile | TensorCoreTile
    blocks: int
    in_blocks: bool
    dynamic_shared_bytes: bool = False

    def __str__(self) -> str:
        pieces = f"; {self.blocks} blocks of the depth" if self.blocks > 1 else ""
        return f"{self.tile}; teams of {self.tile.threads}{pieces}"


def choose(
    batch: tuple[Extent, ...],
    m: Extent,
    n: Extent,
    k: Extent,
    itemsize: int,
    ordered: bool,
    dear: bool,
    block: int = 0,
) -> GroupMatmul | None:
    """How teams compute products of m x n elements of depth k, whose sums have ``itemsize`` bytes; None where threads
    do better alone.  ``ordered`` sums are added up by blocks; a step of ``dear`` ones takes several instructions.  A
    ``block`` of so many threads does all of it, if any."""
    rows, columns, depth = (extent if isinstance(extent, int) else SYMBOLIC for extent in (m, n, k))
    entries = static_size(batch) if is_static(batch) else SYMBOLIC
    few = rows * columns < MIN_GROUP and (depth <= K_BLOCK or entries >= ENOUGH_GROUPS)
    if few or 0 in (entries, depth):
        return None
    in_blocks = ordered and not (isinstance(k, int) and k <= K_BLOCK)
    if block:
        tiles = [tile for tile in _tiles(itemsize, in_blocks, dear, (2, 4, 8)) if tile.threads == block]
        tile = min(tiles, key=lambda tile: (tile.times(rows, columns) * max(tile.cycles(), LATENCY), -tile.rows))
        return GroupMatmul(tile, 1, in_blocks, dynamic_shared_bytes=True)
    tile = _choose_tile(entries, rows, columns, itemsize, in_blocks, dear)
    blocks = _blocks(batch, m, n, k, tile) if in_blocks else 1
    if blocks == 1:
        return GroupMatmul(tile, 1, in_blocks)
    return GroupMatmul(_choose_tile(entries * blocks, rows, columns, itemsize, False, dear), blocks, False)


def choose_fragments(
    batch: tuple[Extent, ...], m: Extent, n: Extent, k: Extent, itemsize: int, block: int = 0
) -> GroupMatmul | None:
    """How teams, or a ``block`` of so many threads, compute products of factors of so many bytes an element by tensor
    cores; None where these would have too little to do."""
    rows, columns, depth = (extent if isinstance(extent, int) else SYMBOLIC for extent in (m, n, k))
    entries = static_size(batch) if is_static(batch) else SYMBOLIC
    if min(rows, columns, depth) < LEAST_FRAGMENT or not entries:
        return None
    if block:
        tile = min(
            (tile for tile in FRAGMENT_TILES if tile.threads == block),
            key=lambda tile: tile.times(rows, columns) * tile.rows * tile.columns,
        )
        return GroupMatmul(replace(tile, itemsize=itemsize), 1, False, dynamic_shared_bytes=True)
    enough = (tile for tile in FRAGMENT_TILES if entries * tile.times(rows, columns) >= MULTIPROCESSORS)
    tile = next(enough, FRAGMENT_TILES[-1])
    tile = replace(tile, itemsize=itemsize)
    return GroupMatmul(tile, _blocks(batch, m, n, k, tile), False)


def _blocks(batch: tuple[Extent, ...], m: Extent, n: Extent, k: Extent, tile: GroupTile | TensorCoreTile) -> int:
    """Into how many pieces the depth is cut: not at all, where there are enough tiles, or where the sums of all blocks
    would be more than the factors."""
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int) and is_static(batch)):
        return 1
    blocks = -(-k // K_BLOCK)
    few = static_size(batch) * tile.times(m, n) < ENOUGH_GROUPS
    return blocks if few and 2 * m * n * blocks <= (m + n) * k else 1


def _choose_tile(entries: int, rows: int, columns: int, itemsize: int, in_blocks: bool, dear: bool) -> GroupTile:
    def time(tile: GroupTile) -> tuple[float, float, int]:
        iterations = -(-entries * tile.times(rows, columns) // MULTIPROCESSORS)
        return max(iterations * tile.cycles(), LATENCY), iterations * tile.cycles(), -tile.rows

    return min(_tiles(itemsize, in_blocks, dear), key=time)


def _tiles(itemsize: int, in_blocks: bool, dear: bool, sides: tuple[int, ...] = (4, 8)) -> list[GroupTile]:
    """Tiles whose sums stay in registers, and which all threads help to read.  A thread has one of the ``sides`` of
    sums each way, 4 at the most where they are dear."""
    vector = min(VECTOR_BYTES // itemsize, 4)
    words = max(1, itemsize // 4) * (2 if in_blocks else 1)
    sizes, sides = (8, 16, 32, 64, 128), tuple(side for side in sides if side <= 4 or not dear)
    return [
        tile
        for tile in (
            GroupTile(r, c, h, w, min(vector, h, w)) for r in sizes for c in sizes for h in sides for w in sides
        )
        if MIN_GROUP <= tile.threads <= MAX_GROUP
        and tile.threads <= DEPTH * min(tile.rows, tile.columns)
        and tile.high * tile.wide * words <= REGISTERS_FOR_SUMS
    ]
