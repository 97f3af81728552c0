"""How many rows make a panel, for the threads of a CPU and for teams of a GPU's; see ``tile_and_fuse``."""

from __future__ import annotations

from hybridflow.compiler.ir.extents import Extent, compare
from hybridflow.quick_dataclasses import dataclass

FEW_UNITS = 8  # panels, or batch entries whose panels go one after another, that threads may share
MAX_ROWS = 256  # of a panel
GROUP_ROWS = (64, 32, 16)  # of a panel that a team of GPU threads makes: tiles of products have as many rows
TILE_BYTES = 16 * 1024  # of a block's memory for tiles of products, and what is not wide
FEW_GROUPS = 32  # panels that pay for a GPU
ENOUGH_GROUPS = 128  # ... that keep it busy


@dataclass(frozen=True)
class TileHeights:
    """How many rows make a panel, whose values should stay in ``near`` bytes of a cache."""

    near: int

    @property
    def few(self) -> int:
        """How many panels pay."""
        return FEW_UNITS

    @property
    def adds_up(self) -> bool:
        """Whether panels may go one after another, so that each adds to sums over rows."""
        return True

    def of(self, rows: int, batch: Extent, long: Extent, nbytes: int) -> int:
        """The height of panels of ``rows``, of ``long`` elements that take so many bytes, in each entry of a batch."""
        most = MAX_ROWS
        if isinstance(long, int):
            most = max(32, min(most, self.near // (8 * long) // 8 * 8))
        if rows <= most:
            return rows
        return next((n for n in range(most, most // 2, -1) if rows % n == 0), most)


class GroupTileHeights(TileHeights):
    """The same for teams of GPU threads: ``near`` are the bytes of memory that a block may have, half of which leaves
    room for a second one.  Panels have no order, as there are too few rows to go through them one after another."""

    @property
    def few(self) -> int:
        return FEW_GROUPS

    @property
    def adds_up(self) -> bool:
        return False

    def of(self, rows: int, batch: Extent, long: Extent, nbytes: int) -> int:
        for height in GROUP_ROWS[:-1]:
            fits = isinstance(long, int) and height * long * nbytes <= self.near // 2 - TILE_BYTES
            if fits and compare(ENOUGH_GROUPS - 1, batch * -(-rows // height)) is False:
                return min(rows, height)
        return min(rows, GROUP_ROWS[-1])
