"""Where elements of a mask are true: what indexing and selection look up."""

from __future__ import annotations

from hybridflow.array.creation import iota
from hybridflow.array.elementwise import floor_divide, minimum, remainder, subtract
from hybridflow.array.reductions import cumulative_sum
from hybridflow.array.shapes import reshape, slice_axis
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.types import Shape
from hybridflow.compiler.ops import TABLE
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import cast, filled


def first_positions(chosen: Tensor, size: Extent) -> Tensor:
    """The positions of the first ``size`` that are true; where there are fewer, any others behind them.

    Each position is written where the next one that is true belongs, so that those stay which are true themselves;
    what belongs behind the last place is written there, and cut off.
    """
    count = chosen.shape[0]
    flags = cast(chosen, default_int)
    before = minimum(subtract(cumulative_sum(flags), flags), size)
    empty = filled(0, default_int, (size + 1,), "nonzero")
    places = apply(TABLE["scatter_set"], empty, before, iota((count,), 0, default_int), axis=0, known=True)
    return slice_axis(places, 0, 0, size)


def positions_of_true(chosen: Tensor, count: Extent) -> tuple[Tensor, ...]:
    """The positions of all that are true, which are so many, one tensor for each axis."""
    places = first_positions(reshape(chosen, (-1,)), count)
    return (places,) if chosen.ndim == 1 else unraveled(places, chosen.shape)


def unraveled(places: Tensor, shape: Shape) -> tuple[Tensor, ...]:
    """The positions along each axis of places in row-major order."""
    positions = []
    for extent in reversed(shape):
        positions.append(remainder(places, extent) if extent != 0 else places)
        places = floor_divide(places, extent) if extent != 0 else places
    return tuple(reversed(positions))
