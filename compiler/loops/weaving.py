"""Joins of short parts: coordinates or colours side by side, a column of ones beside a matrix, a vector's neighbour.

Laid into the output part by part, each would be written with gaps, and the output's memory gone over once for every
part.  Where a row has few elements those of all parts are made at once instead, in vectors along the rows, which are
woven together by shuffles before they are written.
"""

from __future__ import annotations

from dataclasses import dataclass

from hybridflow.compiler.ir.types import Extent, is_static, product, static_size
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

    def position(self, rows: LoopVar) -> Ix:
        """Of the current element of the current row, in the input."""
        return variable(rows) * self.count + variable(self.along)


@dataclass(frozen=True)
class Weave:
    """Rows whose elements, those of the loop ``along``, are the parts' and what is filled between them."""

    rows: LoopVar
    along: LoopVar
    parts: tuple[Part, ...]


def weave_of(kernel: Kernel, is_leaf: IsLeaf, cost: Cost, lanes: int) -> Weave | None:
    """The rows of the kernel of a join, where they are short; None where making parts one by one is as good."""
    anchor = kernel.cluster.anchor
    if any(node.op.kind is Kind.SEGMENT for node in kernel.nodes if node is not anchor):
        return None  # what is read partly is read element by element
    found = _rows(kernel)
    if found is None or all(part.count % lanes == 0 for part in found.parts):
        return None
    starts = [(anchor.inputs[part.number], part.position(found.rows)) for part in found.parts]
    inner = {part.along for part in found.parts}
    for ix in accesses(kernel, kernel.cluster.space, is_leaf, starts).positions:
        if not _in_vectors(ix, found.rows) and not any(lies_side_by_side(ix, along, found.rows) for along in inner):
            return None
    work = 1 + work_of(anchor.inputs, set(kernel.inputs), cost)
    return found if static_size((found.along.extent,)) * work <= MOST_ACROSS and _long(found.rows, lanes) else None


def _in_vectors(ix: Ix, rows: LoopVar) -> bool:
    """Whether lanes along the rows are read as vectors, and not one by one."""
    apart = ix.coefficient(rows)
    return ix.is_affine and isinstance(apart, int) and abs(apart) <= MOST_APART


def _long(rows: LoopVar, lanes: int) -> bool:
    return not isinstance(rows.extent, int) or rows.extent >= lanes


def _rows(kernel: Kernel) -> Weave | None:
    anchor = kernel.cluster.anchor
    out = anchor.type
    segments = anchor.op.segments(tuple([n.type for n in anchor.inputs]), out, **anchor.attrs)
    joined = [(k, shape, offsets, steps) for k, shape, offsets, steps in segments if k is not None]
    if 0 in out.shape or any(step != 1 for _, _, _, steps in joined for step in steps):
        return None
    axes = {axis for _, shape, _, _ in joined for axis, size in enumerate(shape) if size != out.shape[axis]}
    if len(axes) != 1:
        return None
    (axis,) = axes
    row = out.shape[axis:]
    if not is_static(row) or not 2 <= static_size(row) <= SHORT:
        return None
    rows: Extent = product(out.shape[:axis])
    parts = []
    for k, shape, offsets, _ in joined:
        count, offset = product(shape[axis:]), offsets[axis]
        if not isinstance(count, int) or not isinstance(offset, int):
            return None
        if count:
            parts.append(Part(k, LoopVar(f"part{k}", count), offset * static_size(row[1:])))
    return Weave(LoopVar("rows", rows), LoopVar("along", static_size(row)), tuple(parts))
