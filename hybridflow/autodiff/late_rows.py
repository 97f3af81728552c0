"""Gradients of look-ups outside of compiled functions: rows, added to zeros when somebody looks at the whole.

To users such a gradient is a tensor like any other.  An optimizer that has need of the rows alone takes these, and the
whole, which may be a thousand times as large, is never made.  Whoever wants to see them finds them in the attributes
that TensorFlow's ``IndexedSlices`` have: ``values``, ``indices`` and ``dense_shape``, until the whole has been made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops.added_rows import AddedRows, Terms, is_few, lookups, mapped, whole
from hybridflow.core.context import suspended
from hybridflow.core.late import LateTensor, late, parts_of
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import reshape_to

if TYPE_CHECKING:
    from hybridflow.array.indexed_slices import IndexedSlices


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


def slices_of(gradient: Tensor) -> IndexedSlices | None:
    """The rows that a gradient adds up, those of all look-ups one after another; None where somebody has looked at the
    whole, or where it was none."""
    terms = parts_of(gradient)
    if terms is None:
        return None
    from hybridflow.array.indexed_slices import IndexedSlices  # which few programs need

    inner = gradient.shape[1:]
    with suspended():
        places = [reshape_to(found.indices, (found.indices.size,)) for found in lookups(terms)]
        rows = [reshape_to(found.rows, (found.indices.size, *inner)) for found in lookups(terms)]
        values, indices = (x[0] if len(x) == 1 else builder.concat(*x, axis=0) for x in (rows, places))
    return IndexedSlices(values, indices, gradient.shape)


def _part(name: str) -> Any:
    def part(self: Tensor) -> Any:
        found = slices_of(self)
        if found is None:
            raise AttributeError(f"somebody has looked at the whole gradient meanwhile, so it has no {name}")
        return getattr(found, name)

    return property(part, doc="What ``IndexedSlices`` of the rows have under this name.")


for _name in ("values", "indices", "dense_shape"):
    setattr(LateTensor, _name, _part(_name))
