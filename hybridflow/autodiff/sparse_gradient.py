"""Sparse gradients as tensors: lazy outside of compiled functions, recognised in the trace inside of them.

To users such a gradient is a tensor like any other, which is densified on first read.  An optimizer that needs only
the rows takes these; the dense tensor, which may be a thousand times as large, is then never made.  Until the dense
tensor is read, the gradient has the attributes of TensorFlow's ``IndexedSlices``: ``values``, ``indices`` and
``dense_shape``.  In compiled functions gradients have these attributes, too.

The gradient of a look-up in a small table is dense from the start.  With TensorFlow's names in use it keeps its rows
beside it, for programs that read them.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import TensorType, product
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.sparse_grad import (
    GatheredRows,
    SparseGrad,
    SumOfSlices,
    Terms,
    densify,
    is_few,
    is_small,
    lookups,
    mapped,
)
from hybridflow.core.context import now, suspended
from hybridflow.core.lazy_tensor import LazyTensor, lazy_tensor, parts_of
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import reshape_to
from hybridflow.runtime import uninterruptible
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

if TYPE_CHECKING:
    from hybridflow.array.indexed_slices import IndexedSlices


def tensor_of(rows: SparseGrad) -> Tensor:
    """A sparse gradient as a tensor."""
    return lazy_sum(rows.type, rows.terms) if is_few(rows) or shows_beside(rows) else rows()


def show_all() -> None:
    """From now on, keep the rows of gradients for small tables, too: TensorFlow's names may read them."""
    _shown.add(True)


def shows_beside(rows: SparseGrad) -> bool:
    """Whether a dense gradient keeps its rows, for code that reads ``values`` and ``indices``."""
    return bool(_shown) and is_small(rows)


_shown: set[bool] = set()


def lazy_sum(type: TensorType, terms: Terms, dense: Tensor | None = None) -> Tensor:
    """A tensor that is densified on first read; ``dense`` is the dense tensor, if there is one already."""
    stand_ins = mapped(_stand_in, terms)  # whatever is assigned to items of the tensors meanwhile

    def array() -> object:
        if dense is not None:
            return dense._array
        with suspended():
            return densify(builder, type, stand_ins)._array

    return lazy_tensor(type, stand_ins, array)


def _stand_in(x: Tensor) -> Tensor:
    return x._stand_in()


def few_rows(gradient: Any) -> Terms | None:
    """The rows of a sparse gradient, where updating rows pays."""
    terms: Terms | None = parts_of(gradient)
    return terms if terms is not None and is_few(SparseGrad(builder, gradient.type, terms)) else None


def traced_rows(gradient: object) -> SparseGrad | None:
    """A gradient as a sparse one, where the current trace shows that it is a sum of rows."""
    if not isinstance(gradient, SymbolicTensor) or gradient._trace is not now().trace or not gradient.shape:
        return None
    terms = _traced_terms(gradient._node)
    if terms is None:
        return None
    trace = gradient._trace
    return SparseGrad(builder, gradient.type, mapped(lambda node: SymbolicTensor(node, trace), terms))


def _traced_terms(node: Node) -> Terms | None:
    """The rows whose sum a node is; None where it is anything else."""
    if node.op is TABLE["add"]:
        first, second = map(_traced_terms, node.inputs)
        return None if first is None or second is None else SumOfSlices(first, second)
    is_lookup = node.op is TABLE["scatter_add"] and node.attrs["axis"] == 0 and _is_zero(node.inputs[0])
    return GatheredRows(*node.inputs[1:]) if is_lookup else None


def _is_zero(node: Node) -> bool:
    if node.op is TABLE["broadcast"]:
        return _is_zero(node.inputs[0])
    return node.op is TABLE["constant"] and not any(node.attrs["value"].data)


@uninterruptible.loaded
def _indexed_slices() -> Any:
    from hybridflow.array import indexed_slices  # which few programs need

    return indexed_slices


def slices_of(gradient: Tensor) -> IndexedSlices | None:
    """The rows of a gradient, those of all look-ups concatenated; None where it is dense, or was read."""
    traced = traced_rows(gradient)
    terms = parts_of(gradient) if traced is None else traced.terms
    if terms is None:
        return None
    inner = gradient.shape[1:]
    with suspended() if traced is None else nullcontext():
        places = [reshape_to(lookup.indices, (product(lookup.indices.shape),)) for lookup in lookups(terms)]
        rows = [reshape_to(lookup.rows, (product(lookup.indices.shape), *inner)) for lookup in lookups(terms)]
        values, indices = (x[0] if len(x) == 1 else builder.concat(*x, axis=0) for x in (rows, places))
    result: IndexedSlices = _indexed_slices().IndexedSlices(values, indices, gradient.shape)
    return result


def _part(name: str, fault: str) -> Any:
    def part(self: Tensor) -> Any:
        slices = slices_of(self)
        if slices is None:
            raise AttributeError(f"{fault}, so it has no {name}")
        return getattr(slices, name)

    return property(part, doc="What ``IndexedSlices`` of the rows have under this name.")


for _name in ("values", "indices", "dense_shape"):
    setattr(LazyTensor, _name, _part(_name, "somebody has looked at the whole gradient meanwhile"))
    setattr(SymbolicTensor, _name, _part(_name, "the tensor is no gradient of look-ups, or is that of others, too"))
