"""Gradients of look-ups outside of compiled functions: rows, added to zeros when somebody looks at the whole.

To users such a gradient is a tensor like any other.  An optimizer that has need of the rows alone takes these, and the
whole, which may be a thousand times as large, is never made.
"""

from __future__ import annotations

from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops.added_rows import AddedRows, Terms, is_few, mapped, whole
from hybridflow.core.context import suspended
from hybridflow.core.late import late
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import builder


def tensor_of(rows: AddedRows) -> Tensor:
    """The sum of rows of tensors, as a tensor."""
    return late_sum(rows.type, rows.terms) if is_few(rows) else rows()


def late_sum(type: TensorType, terms: Terms) -> Tensor:
    """A tensor that adds the rows up when it is needed."""
    kept = mapped(_stand_in, terms)  # whatever is assigned to items of the tensors meanwhile

    def array() -> object:
        with suspended():
            return whole(builder, type, kept)._array

    return late(type, kept, array)


def _stand_in(x: Tensor) -> Tensor:
    return x._stand_in()
