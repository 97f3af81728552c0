"""What an op with a kernel of its own is made of: the building blocks that the code generator has for such ops.

An op of ``Kind.SCAN``, ``SORT``, ``SCATTER``, ``CONVOLVE`` or ``CONTROL`` says by ``OpDef.lower`` which of these makes
its result, and a contraction by ``OpDef.contraction`` which axes it sums (``contraction_dims.py``).  Code generation
goes by these descriptions alone.
"""

from __future__ import annotations

from typing import Any, Union

from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.types import Extent, Shape
from hybridflow.compiler.program import Check, HostFunction
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class PrefixScan:
    """A running fold along ``axis``, by the op's own ``init``, ``lift``, ``combine`` and ``finish``; where it is
    ``exclusive``, of what lies before each element."""

    axis: int
    exclusive: bool = False


@dataclass(frozen=True)
class Sort:
    """The positions that sort the input along ``axis``; equal elements keep their order, NaN comes last.  Where
    ``values`` are wanted, the elements in that order; where there is a ``count``, the first so many positions."""

    axis: int
    descending: bool
    values: bool = False
    count: int | None = None


@dataclass(frozen=True)
class FourierTransform:
    """Transforms of pairs along ``axis``, with the constants in the second input; see ``fourier_plan``."""

    axis: int
    inverse: bool
    scale: float


@dataclass(frozen=True)
class ScatterAdd:
    """The third input added, in row-major order, to a copy of the first at the indices in the second, along ``axis``.

    An index counts whole slices; where it is ``paired``, there is one for each element that is added.  ``check``
    fails at an index out of range; without one there is none.  With ``replaces`` updates take the place of what is
    there, so that the last stays.
    """

    axis: int
    paired: bool
    check: Check | None
    replaces: bool = False


@dataclass(frozen=True)
class Convolution:
    """Products of what windows see of the first input with the second one, summed over the elements of a window and its
    channels, or ``over_places``; see convolution.py.  There is a number for each axis of a window."""

    size: tuple[int, ...]
    step: tuple[int, ...]
    low: tuple[Extent, ...]
    interior: tuple[int, ...]
    dilation: tuple[int, ...]
    over_places: bool


@dataclass(frozen=True)
class Switch:
    """What runs one of ``branches``.  The first operand says which: with a bool the first of two where it is True, else
    the one of that number, or the last; where it is ``fixed``, there is no such operand and one branch."""

    branches: tuple[Graph, ...]
    fixed: bool = False


@dataclass(frozen=True)
class While:
    """A loop while ``cond`` holds; see ``control``."""

    cond: Graph
    body: Graph


@dataclass(frozen=True)
class Scan:
    """A loop over ``length`` slices; see ``control``."""

    body: Graph
    carries: int
    stacked: int
    length: Extent
    reverse: bool


@dataclass(frozen=True)
class DynamicExtent:
    """A graph in which ``symbol`` is two more than the first operand; see ``control``."""

    body: Graph
    symbol: str


@dataclass(frozen=True)
class HostCall:
    """A call of a function in Python: of the program's function of that number, or of one that has a name.  Where it is
    to happen in order, the first operand and the first result are tokens.  Where matrices are ``small``, it is called
    only for irregular ones; see ``elimination``.  With the record of an ``exchange`` the
    call is native."""

    function: int | HostFunction
    small: bool = False
    exchange: tuple[int, ...] = ()


@dataclass(frozen=True)
class Assert:
    """An end of the program, unless the first operand is True: with what its function of that number raises, which is
    given the other ones, or else with ``message``."""

    number: int
    message: str


@dataclass(frozen=True)
class RowBlocks:
    """``body`` for ``block`` rows after another, and the graph in ``tail`` for what is left; see ``row_blocks``."""

    body: Graph
    tail: tuple[Graph, ...]
    batch: Shape
    rows: int
    block: int
    starts: tuple[Extent, ...]
    steps: tuple[tuple[Extent, ...], ...]
    sums: int

    @property
    def num_blocks(self) -> int:
        """Of each batch entry."""
        return -(-self.rows // self.block)

    @property
    def accumulates(self) -> bool:
        """Whether sums go on from panel to panel."""
        return self.sums > 0 and self.num_blocks > 1

    @property
    def graphs(self) -> list[tuple[Graph, int]]:
        """The graphs, each with the rows that it is for."""
        return [(self.body, self.block), *((graph, self.rows % self.block) for graph in self.tail)]

    def offsets(self, entry: tuple[int, ...], row: int) -> list[Any]:
        """The first element of each operand for a panel, where extents are known."""
        position = (*entry, row)
        return [start + sum(a * b for a, b in zip(position, steps)) for start, steps in zip(self.starts, self.steps)]


Lowering = Union[
    PrefixScan,
    Sort,
    FourierTransform,
    ScatterAdd,
    Convolution,
    Switch,
    While,
    Scan,
    DynamicExtent,
    HostCall,
    Assert,
    RowBlocks,
]
