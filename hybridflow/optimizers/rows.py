"""Gradients of look-ups: a variable from which rows are taken has a gradient that is 0 but for these rows.

While a function is traced such a gradient is seen to be a sum of rows that are added to zeros.  An optimizer that
leaves alone what has a gradient of 0 computes and writes these rows only, with the bits that it would compute for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hybridflow.array.shapes import concat, reshape
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Extent, product
from hybridflow.compiler.ops import TABLE
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import cast, filled
from hybridflow.tracing.symbolic import SymbolicTensor

_FEW = 4  # times as many rows as are looked up must the variable have


class Rows(NamedTuple):
    """``indices``, int64[n], and what belongs to the row at each: for one that comes several times the gradient of the
    row is at its last place, and 0 at the others."""

    indices: Tensor
    gradient: Tensor

    def of(self, variable: Variable) -> Tensor:
        """The rows of a variable."""
        return apply(TABLE["take"], variable._read(), self.indices, axis=0)

    def set(self, variable: Variable, rows: Tensor) -> None:
        """Assign rows, of several for one place the last.  They come from ``of``, which has looked at the indices."""
        found = cast(rows, variable.dtype)
        variable.assign(apply(TABLE["scatter_set"], variable._read(), self.indices, found, axis=0, known=True))


def rows_of(gradient: Any) -> Rows | None:
    """A gradient as rows, where it is known to be 0 elsewhere, and there are few."""
    if not isinstance(gradient, SymbolicTensor) or gradient._trace is not now().trace or not gradient.shape:
        return None
    lookups = _lookups(gradient._node)
    if not lookups:
        return None
    counts = [product(node.inputs[1].shape) for node in lookups]
    total: Extent = 0
    for count in counts:
        total = total + count
    length = gradient.shape[0]
    if isinstance(length, int) and isinstance(total, int) and total * _FEW > length:
        return None

    def tensor(node: Node) -> Tensor:
        return SymbolicTensor(node, gradient._trace)

    given = [reshape(cast(tensor(n.inputs[1]), dtypes.int64), (c,)) for n, c in zip(lookups, counts)]
    indices = given[0] if len(given) == 1 else concat(given)
    # The last place at which each row comes, found through a table of all rows.
    numbers = apply(TABLE["iota"], shape=(total,), axis=0, dtype=dtypes.int32)
    table = apply(TABLE["scatter_set"], filled(0, dtypes.int32, (length,), "rows"), indices, numbers, axis=0)
    zero = filled(0, gradient.dtype, (total, *gradient.shape[1:]), "rows")

    def summed(node: Node) -> Tensor:
        if node.op is TABLE["add"]:
            return apply(node.op, *map(summed, node.inputs))
        k = lookups.index(node)
        place = apply(TABLE["take"], table, given[k], axis=0)
        values = reshape(tensor(node.inputs[2]), (counts[k], *gradient.shape[1:]))
        return apply(TABLE["scatter_add"], zero, place, values, axis=0)

    return Rows(indices, summed(gradient._node))


def _lookups(node: Node) -> list[Node]:
    """The nodes that add rows to zeros of which a node is the sum; none where it is anything else."""
    if node.op is TABLE["add"]:
        parts = [_lookups(x) for x in node.inputs]
        return [n for part in parts for n in part] if all(parts) else []
    is_lookup = node.op is TABLE["scatter_add"] and node.attrs["axis"] == 0 and _is_zero(node.inputs[0])
    return [node] if is_lookup else []


def _is_zero(node: Node) -> bool:
    if node.op is TABLE["broadcast"]:
        return _is_zero(node.inputs[0])
    return node.op is TABLE["constant"] and not any(node.attrs["value"].data)
