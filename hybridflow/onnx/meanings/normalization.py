"""Normalisation, and softmax."""

from __future__ import annotations

from typing import Any

from hybridflow.array import elementwise as ew, reductions, shapes
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.nn import functional
from hybridflow.onnx.library import dtype_of
from hybridflow.onnx.meanings.shapes import axis_of
from hybridflow.onnx.meanings.windows import laid
from hybridflow.onnx.operators import operator
from hybridflow.onnx.running import Call, ChannelsLast


@operator("Softmax", since=13)
def softmax(call: Call, x: Tensor, *, axis: int = -1) -> Tensor:
    return functional.softmax(x, axis=axis)


@operator("LogSoftmax", since=13)
def log_softmax(call: Call, x: Tensor, *, axis: int = -1) -> Tensor:
    return functional.log_softmax(x, axis=axis)


def _flattened(call: Call, x: Tensor, axis: int) -> Tensor:
    """What the axes from one on were before they became one by themselves."""
    axis = axis_of(call, axis, x.ndim)
    rows: Any = 1
    for extent in x.shape[:axis]:
        rows = rows * extent
    columns: Any = 1
    for extent in x.shape[axis:]:
        columns = columns * extent
    return shapes.reshape(x, (rows, columns))


@operator("Softmax", until=11)
def softmax_of_rest(call: Call, x: Tensor, *, axis: int = 1) -> Tensor:
    return shapes.reshape(functional.softmax(_flattened(call, x, axis), axis=-1), x.shape)


@operator("LogSoftmax", until=11)
def log_softmax_of_rest(call: Call, x: Tensor, *, axis: int = 1) -> Tensor:
    return shapes.reshape(functional.log_softmax(_flattened(call, x, axis), axis=-1), x.shape)


def _hottest(x: Tensor, axis: int) -> Tensor:
    largest = reductions.argmax(x, axis=axis, keepdims=True)
    from hybridflow.array.creation import arange

    places = shapes.reshape(arange(x.shape[axis]), tuple(n if k == axis else 1 for k, n in enumerate(x.shape)))
    return ew.astype(ew.equal(places, largest), x.dtype)


@operator("Hardmax", since=13)
def hardmax(call: Call, x: Tensor, *, axis: int = -1) -> Tensor:
    return _hottest(x, axis_of(call, axis, x.ndim))


@operator("Hardmax", until=11)
def hardmax_of_rest(call: Call, x: Tensor, *, axis: int = 1) -> Tensor:
    return shapes.reshape(_hottest(_flattened(call, x, axis), 1), x.shape)


@operator("BatchNormalization", since=7, keeps_layout=True)
def batch_normalization(
    call: Call,
    x: Any,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
) -> Any:
    if not spatial:
        raise call.fault("spatial=0 is not supported.")
    x = laid(call, x) if x.ndim > 2 or isinstance(x, ChannelsLast) else x
    wrap = ChannelsLast if x.ndim > 2 else (lambda tensor: tensor)
    if training_mode:
        axes = tuple(range(x.ndim - 1))
        wide = ew.astype(x, dtypes.compute_dtype(x.dtype))
        now, spread = reductions.mean(wide, axis=axes), reductions.var(wide, axis=axes)
        running = (
            mean * momentum + ew.astype(now, mean.dtype) * (1 - momentum),
            variance * momentum + ew.astype(spread, variance.dtype) * (1 - momentum),
        )
        mean, variance = ew.astype(now, mean.dtype), ew.astype(spread, variance.dtype)
    wide = ew.astype(x, variance.dtype) if x.dtype != variance.dtype else x
    result = (wide - mean) * ew.divide(ew.astype(scale, variance.dtype), ew.sqrt(variance + epsilon)) + bias
    result = wrap(ew.astype(result, x.dtype) if result.dtype != x.dtype else result)
    return (result, *running) if training_mode else result


@operator("BatchNormalization", until=6, keeps_layout=True)
def batch_normalization_of_inference(
    call: Call,
    x: object,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    is_test: int = 0,
    spatial: int = 1,
    consumed_inputs: object = None,
) -> Any:
    if not is_test and call.wants(1):
        raise call.fault("is_test=0 is not supported.")
    return batch_normalization(call, x, scale, bias, mean, variance, epsilon=epsilon, spatial=spatial)


@operator("InstanceNormalization", since=6, keeps_layout=True)
def instance_normalization(
    call: Call, x: ChannelsLast | Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5
) -> ChannelsLast:
    x = laid(call, x)
    axes = tuple(range(1, x.ndim - 1))
    centred = x - reductions.mean(x, axis=axes, keepdims=True)
    spread = reductions.mean(centred * centred, axis=axes, keepdims=True)
    return ChannelsLast(scale * ew.divide(centred, ew.sqrt(spread + epsilon)) + bias)


@operator("LayerNormalization", since=17)
def layer_normalization(
    call: Call,
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    axes = tuple(range(axis_of(call, axis, x.ndim), x.ndim))
    wide = ew.astype(x, dtype_of(stash_type)) if x.dtype != dtype_of(stash_type) else x
    mean = reductions.mean(wide, axis=axes, keepdims=True)
    centred = wide - mean
    inverse = ew.reciprocal(ew.sqrt(reductions.mean(centred * centred, axis=axes, keepdims=True) + epsilon))
    result = centred * inverse
    result = (ew.astype(result, x.dtype) if result.dtype != x.dtype else result) * scale
    result = result if bias is None else result + bias
    return (result, mean, inverse) if call.wants(1) or call.wants(2) else result


@operator("LpNormalization")
def lp_normalization(call: Call, x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    if p == 1:
        norm = reductions.sum(ew.abs(x), axis=axis, keepdims=True)
    else:
        norm = ew.sqrt(reductions.sum(x * x, axis=axis, keepdims=True))
    return ew.where(ew.equal(norm, 0), ew.abs(x) * 0, ew.divide(x, ew.where(ew.equal(norm, 0), norm + 1, norm)))
