"""Joins of short parts: coordinates or colours side by side, a column of ones beside a matrix, a vector's neighbour.

Laid into the output part by part, each would be written with gaps, and the output's memory gone over once for every
part.  Where a row has few elements those of all parts are made at once instead, in vectors along the rows, which are
woven together by shuffles before they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybridflow.compiler.ir.types import is_static, product, static_size
from hybridflow.compiler.loops.index import Ix, LoopVar, lies_side_by_side, variable
from hybridflow.compiler.loops.kernel import IsLeaf, Kernel, accesses
from hybridflow.compiler.loops.limits import MOST_ACROSS, MOST_APART, SHORT
from hybridflow.compiler.loops.stages import Cost, work_of
from hybridflow.compiler.ops import Kind


@dataclass(frozen=True)
class Part:
    """Elements of an input that belong to a row: ``along`` is a loop over them, ``first`` where they lie in the row."""

    number: int
    along: LoopVar
    first: int

    @property
    def count(self) -> int:
        return static_size((self.along.extent,))


@dataclass(frozen=True)
class Weave:
    """Rows whose elements, those of the loop ``along``, are the parts' and what is filled between them.  Vectors run
    along the loop ``rows``; around it are the loops ``outer``, without which what parts read would not lie evenly."""

    outer: tuple[LoopVar, ...]
    rows: LoopVar
    along: LoopVar
    parts: tuple[Part, ...]

    @property
    def loops(self) -> tuple[LoopVar, ...]:
        """All loops over rows, the outermost first."""
        return *self.outer, self.rows

    @property
    def row(self) -> Ix:
        """The number of the current row."""
        found = variable(self.loops[0])
        for loop in self.loops[1:]:
            found = found * loop.extent + variable(loop)
        return found

    def position(self, part: Part) -> Ix:
        """Of the current element of a part in the current row, in the input."""
        return self.row * part.count + variable(part.along)


def weave_of(kernel: Kernel, is_leaf: IsLeaf, cost: Cost, lanes: int) -> Weave | None:
    """The rows of the kernel of a join, where they are short; None where making parts one by one is as good."""
    anchor = kernel.cluster.anchor
    if any(node.op.kind is Kind.SEGMENT for node in kernel.nodes if node is not anchor):
        return None  # what is read partly is read element by element
    work = 1 + work_of(anchor.inputs, set(kernel.inputs), cost)
    for weave in _weaves(kernel):
        if all(part.count % lanes == 0 for part in weave.parts) or not _long(weave.rows, lanes):
            return None
        if static_size((weave.along.extent,)) * work > MOST_ACROSS:
            return None
        if _reads_evenly(weave, kernel, is_leaf):
            return weave
    return None


def _reads_evenly(weave: Weave, kernel: Kernel, is_leaf: IsLeaf) -> bool:
    """Whether all that is read for lanes along the rows is read as vectors, and nothing one by one."""
    anchor, rows = kernel.cluster.anchor, weave.rows
    starts = [(anchor.inputs[part.number], weave.position(part)) for part in weave.parts]
    inner = {part.along for part in weave.parts}
    for ix in accesses(kernel, kernel.cluster.space, is_leaf, starts).positions:
        apart = ix.coefficient(rows)
        even = ix.is_affine and isinstance(apart, int) and abs(apart) <= MOST_APART
        if not even and not any(lies_side_by_side(ix, along, rows) for along in inner):
            return False
    return True


def _long(rows: LoopVar, lanes: int) -> bool:
    return not isinstance(rows.extent, int) or rows.extent >= lanes


def _weaves(kernel: Kernel) -> Iterator[Weave]:
    """The rows of a join if they are short: all as one loop, then with more and more loops around the innermost one."""
    anchor = kernel.cluster.anchor
    out = anchor.type
    segments = anchor.op.segments(tuple([n.type for n in anchor.inputs]), out, **anchor.attrs)
    joined = [(k, shape, offsets, steps) for k, shape, offsets, steps in segments if k is not None]
    if 0 in out.shape or any(step != 1 for _, _, _, steps in joined for step in steps):
        return
    axes = {axis for _, shape, _, _ in joined for axis, size in enumerate(shape) if size != out.shape[axis]}
    if len(axes) != 1:
        return
    (axis,) = axes
    row = out.shape[axis:]
    if not is_static(row) or not 2 <= static_size(row) <= SHORT:
        return
    parts = []
    for k, shape, offsets, _ in joined:
        count, offset = product(shape[axis:]), offsets[axis]
        if not isinstance(count, int) or not isinstance(offset, int):
            return
        if count:
            parts.append(Part(k, LoopVar(f"part{k}", count), offset * static_size(row[1:])))
    before = [extent for extent in out.shape[:axis] if extent != 1]
    along = LoopVar("along", static_size(row))
    for around in range(max(len(before), 1)):
        outer = tuple(LoopVar(f"outer{k}", extent) for k, extent in enumerate(before[:around]))
        yield Weave(outer, LoopVar("rows", product(tuple(before[around:]))), along, tuple(parts))
