"""How GPU threads compute convolutions of groups of few columns: data for ``codegen.gpu.grouped_convolution``.

A thread has a *bundle*: all columns of some neighbouring groups, whose elements lie side by side, at some neighbouring
places, which see much of an image together; of derivatives by the filter those of some neighbouring elements of the
window.  Where that would leave too few threads it has less.  None of the numbers has been measured.
"""

from __future__ import annotations

from hybridflow.compiler.ir.types import Extent
from hybridflow.compiler.loops.tuning import ENOUGH_ON_GPU, MAX_ELEMENTS_PER_THREAD, VECTOR_BYTES
from hybridflow.compiler.ops.evaluation_order import K_BLOCK
from hybridflow.quick_dataclasses import dataclass

SUMS = 32  # of a thread: as many registers of 4 bytes
PRODUCTS = 256  # of a turn, which are written one by one
PLACES = 4  # of a bundle, or of a turn of a derivative by the filter
TAPS = 8  # elements of a window, along its last axis, of a turn
UNKNOWN = 1024  # what a symbolic number of units is taken for


@dataclass(frozen=True)
class RegisterTile:
    """``groups`` neighbouring groups at ``places`` neighbouring places.  ``taps`` neighbouring elements of a window, a
    whole number of times along its last axis, come in one turn; of a derivative by the filter they are the bundle's."""

    groups: int
    places: int
    taps: int

    def __str__(self) -> str:
        return f"bundles of {self.groups} x {self.places}, {self.taps} elements of the window a turn"


def choose(groups: Extent, channels: int, columns: int, itemsize: int, lines: Extent, line: Extent, depth: int,
           taps: int) -> RegisterTile | None:  # fmt: skip
    """The bundles of a convolution at ``lines`` lines of ``line`` places, for sums of ``depth`` products whose windows
    have ``taps`` elements along their last axis, of elements of ``itemsize`` bytes; None where a thread should have a
    single element."""
    whole = depth <= K_BLOCK and taps <= TAPS
    run = taps if whole else 1
    if not 0 < run * channels * columns <= PRODUCTS or (depth > K_BLOCK and K_BLOCK % channels):
        return None
    best = RegisterTile(_groups(groups, channels, columns, itemsize), PLACES, run)
    for result in _smaller(best):
        sums = result.groups * result.places * columns
        if sums <= SUMS and sums * run * channels <= PRODUCTS and (
            _known(groups) // result.groups * _known(lines) * -(-_known(line) // result.places) >= ENOUGH_ON_GPU
        ):  # fmt: skip
            return result
    return RegisterTile(1, 1, run)


def choose_by_filter(groups: Extent, channels: int, columns: int, itemsize: int, lines: int, taps: int,
                     blocks: Extent) -> RegisterTile | None:  # fmt: skip
    """The bundles of a derivative by the filter: of windows of ``lines`` lines of ``taps`` elements, for sums over so
    many blocks of places, each of which may be another thread's; None as for ``choose``."""
    if not 0 < channels * columns <= SUMS:
        return None
    group = _groups(groups, channels, columns, itemsize)
    runs = [run for run in range(min(taps, TAPS), 0, -1) if taps % run == 0]
    for run in runs:
        for tile in _smaller(RegisterTile(group, 1, run)):
            sums = tile.groups * channels * columns * run
            threads = _known(groups) // tile.groups * lines * (taps // run) * _known(blocks)
            if sums <= SUMS and threads >= ENOUGH_ON_GPU:
                return RegisterTile(tile.groups, PLACES, run)
    return RegisterTile(1, PLACES, 1)


def _groups(groups: Extent, channels: int, columns: int, itemsize: int) -> int:
    """Neighbouring groups that are read at once: as many as all come in whole bundles of."""
    result = 1
    while (
        isinstance(groups, int)
        and groups % (2 * result) == 0
        and 2 * result * max(channels, columns) <= MAX_ELEMENTS_PER_THREAD
        and 2 * result * min(channels, columns) * itemsize <= VECTOR_BYTES
    ):
        result *= 2
    return result


def _smaller(most: RegisterTile) -> list[RegisterTile]:
    """Bundles of no more than that, the largest first: places are given up before groups, which are vectors."""
    halves = [(most.groups >> a, most.places >> b) for a in range(8) for b in range(8)]
    return [RegisterTile(groups, places, most.taps) for groups, places in halves if groups and places]


def _known(extent: Extent) -> int:
    return extent if isinstance(extent, int) else UNKNOWN
