"""Operators that fold axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.array import elementwise as ew, reductions, shapes
from hybridflow.array.creation import full
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.onnx.meanings.shapes import axis_of
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call, ChannelsLast

Fold = Callable[[Tensor, Any, bool], Tensor]


def _is_empty(x: Tensor, axes: tuple[int, ...]) -> bool:
    return any(type(x.shape[a]) is int and x.shape[a] == 0 for a in axes)


def _sum(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    return reductions.sum(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _extreme(function: Callable[..., Tensor], sign: int) -> Fold:
    """The largest of nothing is the smallest that there is."""

    def fold(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        if dtypes.is_bool(x.dtype) and not _is_empty(x, axes):
            return (reductions.any if sign > 0 else reductions.all)(x, axis=axes, keepdims=keep)
        if not _is_empty(x, axes):
            return function(x, axis=axes, keepdims=keep)
        if dtypes.is_float(x.dtype):
            least: object = -np.inf * sign
        elif dtypes.is_bool(x.dtype):
            least = sign < 0
        else:
            least = np.iinfo(x.dtype).min if sign > 0 else np.iinfo(x.dtype).max
        kept = [1 if k in axes else n for k, n in enumerate(x.shape) if keep or k not in axes]
        return full(tuple(kept), least, x.dtype)

    return fold


def _l2(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    return ew.sqrt(_sum(x * x, axes, keep))


def _log_sum_exp(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    if _is_empty(x, axes):
        return ew.log(_sum(x, axes, keep))
    return reductions.logsumexp(x, axis=axes, keepdims=keep)


_FOLDS: dict[str, Fold] = {
    "ReduceSum": _sum,
    "ReduceMean": lambda x, axes, keep: _mean(x, axes, keep),
    "ReduceMax": _extreme(reductions.max, 1),
    "ReduceMin": _extreme(reductions.min, -1),
    "ReduceProd": lambda x, axes, keep: reductions.prod(x, axis=axes, keepdims=keep, dtype=x.dtype),
    "ReduceL1": lambda x, axes, keep: _sum(ew.abs(x), axes, keep),
    "ReduceL2": _l2,
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: ew.log(_sum(x, axes, keep)),
    "ReduceLogSumExp": _log_sum_exp,
}


def _mean(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    if dtypes.is_float(x.dtype):
        return reductions.mean(x, axis=axes, keepdims=keep)
    return ew.astype(reductions.mean(ew.astype(x, dtypes.float64), axis=axes, keepdims=keep), x.dtype)


def folded(call: Call, fold: Fold, x: Tensor | ChannelsLast, axes: list[int] | None, keepdims: int, noop: int) -> Any:
    if (not axes and noop and axes is not None) or (axes is None and noop):
        return (
            fold(call.tensor(x), (), True)
            if call.node.op not in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
            else call.tensor(x)
        )
    places = tuple(range(x.ndim)) if not axes else tuple(axis_of(call, a, x.ndim) for a in axes)
    if isinstance(x, ChannelsLast):
        if not keepdims:
            order = [k for k in (0, *range(2, x.ndim), 1) if k not in places]
            inner = tuple((0, x.ndim - 1, *range(1, x.ndim - 1))[k] for k in places)
            result = fold(x.tensor, inner, False)
            wanted = sorted(order)
            return shapes.permute_dims(result, tuple(order.index(k) for k in wanted)) if order != wanted else result
        inner = tuple((0, x.ndim - 1, *range(1, x.ndim - 1))[k] for k in places)
        return ChannelsLast(fold(x.tensor, inner, True))
    return fold(x, places, bool(keepdims))


def _enter(name: str, fold: Fold, since: int) -> None:
    """Axes were attributes before they were operands."""

    def by_operand(
        call: Call, x: Tensor | ChannelsLast, axes: object = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Tensor:
        return folded(call, fold, x, None if axes is None else call.extents(axes), keepdims, noop_with_empty_axes)

    def by_attribute(call: Call, x: Tensor, *, axes: list[int] | None = None, keepdims: int = 1) -> Tensor:
        return folded(call, fold, x, axes, keepdims, 0)

    operator(name, since=since, raw=(1,), keeps_layout=True)(by_operand)
    operator(name, until=since - 1, keeps_layout=True)(by_attribute)


for _name, _fold in _FOLDS.items():
    _enter(_name, _fold, 13 if _name == "ReduceSum" else 18)


def _place(call: Call, which: Callable[..., Any], x: Tensor, axis: int, keepdims: int, last: int) -> Tensor:
    axis = axis_of(call, axis, x.ndim)
    if last:
        position = x.shape[axis] - 1 - which(shapes.flip(x, axis=axis), axis=axis, keepdims=bool(keepdims))
    else:
        position = which(x, axis=axis, keepdims=bool(keepdims))
    return ew.astype(position, dtypes.int64)


@operator("ArgMax")
def arg_max(call: Call, x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _place(call, reductions.argmax, x, axis, keepdims, select_last_index)


@operator("ArgMin")
def arg_min(call: Call, x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _place(call, reductions.argmin, x, axis, keepdims, select_last_index)


def _cumulative(
    call: Call, how: Callable[..., Any], x: Tensor, axis: object, exclusive: int, reverse: int, start: float
) -> Tensor:
    place = axis_of(call, int(call.extents(axis)[0]), x.ndim)
    if reverse:
        x = shapes.flip(x, axis=place)
    if exclusive:
        ahead = full(tuple(1 if k == place else n for k, n in enumerate(x.shape)), start, x.dtype)
        x = shapes.concat([ahead, shapes.slice_axis(x, place, 0, x.shape[place] - 1)], axis=place)
    totals = how(x, axis=place, dtype=x.dtype)
    return shapes.flip(totals, axis=place) if reverse else totals


@operator("CumSum", since=11, raw=(1,))
def cumulative_sum(call: Call, x: Tensor, axis: object, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulative(call, reductions.cumulative_sum, x, axis, exclusive, reverse, 0)


@operator("CumProd", since=26, raw=(1,))
def cumulative_product(call: Call, x: Tensor, axis: object, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulative(call, reductions.cumulative_prod, x, axis, exclusive, reverse, 1)
