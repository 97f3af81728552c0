"""TensorFlow 1's reductions, and what runs along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import hybridflow as hf
from hybridflow.compat.tf import linalg as linear
from hybridflow.compat.v1.arguments import as_ints
from hybridflow.compat.v1.literals import literal
from hybridflow.compat.v1.recording import Recorded, Sizes, is_symbolic
from hybridflow.compat.v1.table import Table
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor as Value

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import DTypeLike


TABLE = Table()
op = TABLE.op


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(
        input_tensor: TensorLike,
        axis: Any = None,
        keepdims: bool | None = None,
        reduction_indices: TensorLike | None = None,
        keep_dims: bool | None = None,
    ) -> Any:
        x = input_tensor if isinstance(input_tensor, Value) else literal(input_tensor)
        axes = as_ints(reduction_indices if axis is None else axis)
        keeps = bool(keep_dims if keepdims is None else keepdims)
        reduced = function(x, axis=tuple(axes) if isinstance(axes, list) else axes, keepdims=keeps)
        kept = function in (hf.logsumexp, hf.all, hf.any) or reduced.dtype == x.dtype
        return reduced if kept else hf.astype(reduced, x.dtype)

    reduce.__doc__ = function.__doc__
    return reduce


def _attributes(arguments: dict[str, Any]) -> dict[str, Any]:
    """What TensorFlow's operations have, and the axes, which are an input there."""
    axis, keepdims = (arguments[new] if arguments[old] is None else arguments[old] for new, old in _NEW_NAMES.items())
    return {**({} if axis is None or is_symbolic(axis) else {"axis": axis}), "keep_dims": bool(keepdims)}


_NEW_NAMES = {"axis": "reduction_indices", "keepdims": "keep_dims"}


def _product_of_sizes(input_tensor: object, axis: object = None, **_: object) -> Any:
    return math.prod(input_tensor) if isinstance(input_tensor, Sizes) else NotImplemented


for _name, _type in {
    "reduce_sum:sum": "Sum", "reduce_mean:mean": "Mean", "reduce_max:max": "Max", "reduce_min:min": "Min",
    "reduce_prod:prod": "Prod", "reduce_all:all": "All", "reduce_any:any": "Any",
    "reduce_logsumexp:logsumexp": "ReduceLogSumExp", "reduce_std:std": "ReduceStd",
    "reduce_variance:var": "ReduceVariance",
}.items():  # fmt: skip
    _own, _, _ours = _name.partition(":")
    TABLE[_own] = Recorded(
        _reduction(getattr(hf, _ours)),
        _type,
        of_sizes=_product_of_sizes if _ours == "prod" else None,
        attributes=_attributes,
    )


def _arg(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(
        input: TensorLike,
        axis: TensorLike | None = None,
        dimension: TensorLike | None = None,
        output_type: DTypeLike = dtypes.int64,
    ) -> Any:
        place = as_ints(dimension if axis is None else axis)
        return hf.astype(function(input, axis=0 if place is None else place), output_type)

    return apply


TABLE["argmax"] = TABLE["arg_max"] = Recorded(_arg(hf.argmax), "ArgMax")
TABLE["argmin"] = TABLE["arg_min"] = Recorded(_arg(hf.argmin), "ArgMin")


@op("Norm", default="norm")
def norm(
    tensor: TensorLike,
    ord: object = "euclidean",
    axis: object = None,
    keepdims: object = None,
    keep_dims: object = None,
) -> Any:
    return linear.norm(tensor, ord, axis, bool(keep_dims if keepdims is None else keepdims))
