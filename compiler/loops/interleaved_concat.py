"""Joins of short parts: coordinates or colours side by side, a column of ones beside a matrix, a vector's neighbour.

Laid into the output part by part, each would be written with gaps, and the output's memory gone over once for every
part.  Where a row has few elements those of all parts are made at once instead, in vectors along the rows, which are
woven together by shuffles before they are written.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybridflow.compiler.index.index_expr import IndexExpr, LoopVar, is_contiguous_along, variable
from hybridflow.compiler.ir.types import is_static, product, static_size
from hybridflow.compiler.loops.kernel import IsLeaf, Kernel, accesses
from hybridflow.compiler.loops.reduction_stages import CostModel, work_of
from hybridflow.compiler.loops.tuning import MAX_OUTER_VECTORIZED_WORK, MAX_STRIDED_STORE, SHORT_LOOP
from hybridflow.compiler.ops import Kind
from hybridflow.quick_dataclasses import dataclass


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
class InterleavedRows:
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
    def row(self) -> IndexExpr:
        """The number of the current row."""
        result = variable(self.loops[0])
        for loop in self.loops[1:]:
            result = result * loop.extent + variable(loop)
        return result

    def position(self, part: Part) -> IndexExpr:
        """Of the current element of a part in the current row, in the input."""
        return self.row * part.count + variable(part.along)


def interleaved_rows_of(kernel: Kernel, is_leaf: IsLeaf, cost: CostModel, lanes: int) -> InterleavedRows | None:
    """The rows of the kernel of a join, where they are short; None where making parts one by one is as good."""
    anchor = kernel.cluster.anchor
    if any(node.op.kind is Kind.SEGMENT for node in kernel.nodes if node is not anchor):
        return None  # what is read partly is read element by element
    work = 1 + work_of(anchor.inputs, set(kernel.inputs), cost)
    for weave in _interleaves(kernel):
        if all(part.count % lanes == 0 for part in weave.parts) or not _long(weave.rows, lanes):
            return None
        if static_size((weave.along.extent,)) * work > MAX_OUTER_VECTORIZED_WORK:
            return None
        if _reads_evenly(weave, kernel, is_leaf):
            return weave
    return None


def _reads_evenly(weave: InterleavedRows, kernel: Kernel, is_leaf: IsLeaf) -> bool:
    """Whether all that is read for lanes along the rows is read as vectors, and nothing one by one."""
    anchor, rows = kernel.cluster.anchor, weave.rows
    starts = [(anchor.inputs[part.number], weave.position(part)) for part in weave.parts]
    inner = {part.along for part in weave.parts}
    for ix in accesses(kernel, kernel.cluster.space, is_leaf, starts).positions:
        apart = ix.coefficient(rows)
        even = ix.is_affine and isinstance(apart, int) and abs(apart) <= MAX_STRIDED_STORE
        if not even and not any(is_contiguous_along(ix, along, rows) for along in inner):
            return False
    return True


def _long(rows: LoopVar, lanes: int) -> bool:
    return not isinstance(rows.extent, int) or rows.extent >= lanes


def _interleaves(kernel: Kernel) -> Iterator[InterleavedRows]:
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
    if not is_static(row) or not 2 <= static_size(row) <= SHORT_LOOP:
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
        yield InterleavedRows(outer, LoopVar("rows", product(tuple(before[around:]))), along, tuple(parts))
