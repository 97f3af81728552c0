"""TensorFlow's ``tf.keras.backend``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import hybridflow as hf
from hybridflow.compat.adapters import arrays, control, draws, models, values
from hybridflow.compat.export import Operand, TensorLike, tf_export
from hybridflow.compat.tf import math as maths, nn as network
from hybridflow.compiler.ir import dtypes
from hybridflow.core.type_aliases import PerAxis

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike


@tf_export("keras.backend.arange", "keras.ops.arange")
def arange(
    start: Any,
    stop: Any = None,
    step: ArrayLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Any:
    """``tf.range``: int32 for Python's ints. In a traced function bounds may be tensors, for a ``for`` statement."""
    return arrays.range(start=start, limit=stop, delta=step, dtype=dtype)


@tf_export("keras.backend.argmin")
def argmin(x: Operand, axis: Any = -1, name: str | None = None) -> Any:
    """The position of the first smallest element along ``axis`` (of the flattened tensor for None), as int64."""
    return hf.argmin(x, axis=axis)


@tf_export("keras.backend.bias_add")
def bias_add(x: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None) -> Any:
    """``tf.nn.bias_add``."""
    return network.bias_add(value=x, bias=bias, data_format=data_format)


@tf_export("keras.backend.categorical_crossentropy")
def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: Any = -1, name: str | None = None
) -> Any:
    """``tf.keras.losses.categorical_crossentropy``: the loss of each sample."""
    return models.categorical_crossentropy(y_true=target, y_pred=output, from_logits=from_logits, axis=axis)


@tf_export("keras.backend.sparse_categorical_crossentropy", "keras.ops.sparse_categorical_crossentropy")
def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, name: str | None = None
) -> Any:
    """``tf.keras.losses.sparse_categorical_crossentropy``: the loss of each sample."""
    return models.sparse_categorical_crossentropy(y_true=target, y_pred=output, from_logits=from_logits)


@tf_export("keras.backend.cumprod")
def cumprod(x: ArrayLike, axis: Any = 0, name: str | None = None) -> Any:
    """``tf.math.cumprod``."""
    return maths.cumprod(x=x, axis=axis)


@tf_export("keras.backend.cumsum")
def cumsum(x: ArrayLike, axis: Any = 0, name: str | None = None) -> Any:
    """``tf.cumsum``."""
    return maths.cumsum(x=x, axis=axis)


@tf_export("keras.backend.dropout")
def dropout(x: ArrayLike, level: float, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> Any:
    """``tf.nn.dropout``: drops whenever it is called."""
    return network.dropout(x=x, rate=level, noise_shape=noise_shape, seed=seed)


@tf_export("keras.backend.eye")
def eye(size: int, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Any:
    """``tf.eye``."""
    return arrays.eye(num_rows=size, dtype=dtype)


@tf_export("keras.backend.foldl")
def foldl(fn: Callable[[Any, Any], Any], elems: object, initializer: object = None, name: str | None = None) -> Any:
    """``tf.foldl``."""
    return control.foldl(fn=fn, elems=elems, initializer=initializer)


@tf_export("keras.backend.foldr")
def foldr(fn: Callable[[Any, Any], Any], elems: object, initializer: object = None, name: str | None = None) -> Any:
    """``tf.foldr``."""
    return control.foldr(fn=fn, elems=elems, initializer=initializer)


@tf_export("keras.backend.gather")
def gather(reference: ArrayLike, indices: TensorLike, name: str | None = None) -> Any:
    """``tf.gather``: along ``batch_dims`` unless an axis is given."""
    return arrays.gather(params=reference, indices=indices)


@tf_export("keras.backend.in_top_k")
def in_top_k(predictions: TensorLike, targets: TensorLike, k: int, name: str | None = None) -> Any:
    """``tf.math.in_top_k``: whether fewer than ``k`` predictions are above the target's."""
    return maths.in_top_k(predictions=predictions, targets=targets, k=k)


@tf_export("keras.backend.l2_normalize")
def l2_normalize(x: TensorLike, axis: object = None, name: str | None = None) -> Any:
    """``tf.math.l2_normalize``: over all axes unless some are given."""
    return maths.l2_normalize(x=x, axis=axis)


@tf_export("keras.backend.map_fn")
def map_fn(fn: Callable[[Any], Any], elems: object, name: str | None = None) -> Any:
    """``tf.map_fn``; the dtype of what the function returns is checked where one is given."""
    return control.map_fn(fn=fn, elems=elems)


@tf_export("keras.backend.permute_dimensions")
def permute_dimensions(x: TensorLike, pattern: object = None, name: str | None = None) -> Any:
    """``tf.transpose``."""
    return arrays.transpose(a=x, perm=pattern)


@tf_export("keras.backend.prod", "keras.ops.prod")
def prod(x: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_prod``: in the operand's dtype."""
    return maths.reduce_prod(input_tensor=x, axis=axis, keepdims=keepdims)


@tf_export("keras.backend.random_normal")
def random_normal(
    shape: object,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: object = None,
    name: str | None = None,
) -> Any:
    """``tf.random.normal``."""
    return draws.normal(shape=shape, mean=mean, stddev=stddev, dtype=dtype, seed=seed)


@tf_export("keras.backend.random_uniform")
def random_uniform(
    shape: Any,
    minval: TensorLike = 0.0,
    maxval: TensorLike = 1.0,
    dtype: Any = dtypes.float32,
    seed: Any = None,
    name: str | None = None,
) -> Any:
    """``tf.random.uniform``: floats below 1, or ints below ``maxval``."""
    return draws.uniform(shape=shape, minval=minval, maxval=maxval, dtype=dtype, seed=seed)


@tf_export("keras.backend.truncated_normal")
def truncated_normal(
    shape: object,
    mean: ArrayLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: object = None,
    name: str | None = None,
) -> Any:
    """``tf.random.truncated_normal``."""
    return draws.truncated_normal(shape=shape, mean=mean, stddev=stddev, dtype=dtype, seed=seed)


@tf_export("keras.backend.tile")
def tile(x: TensorLike, n: object, name: str | None = None) -> Any:
    """``tf.tile``."""
    return arrays.tile(input=x, multiples=n)


@tf_export("keras.backend.conv2d")
def conv2d(
    x: TensorLike,
    kernel: object,
    strides: object = 1,
    padding: object = "VALID",
    data_format: object = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.conv2d``."""
    return network.conv2d(input=x, filters=kernel, strides=strides, padding=padding, data_format=data_format)


@tf_export("keras.backend.conv1d")
def conv1d(
    x: TensorLike,
    kernel: TensorLike,
    strides: PerAxis = 1,
    padding: str | Sequence[Sequence[SupportsIndex]] = "VALID",
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """``tf.nn.conv1d``."""
    return network.conv1d(input=x, filters=kernel, stride=strides, padding=padding, data_format=data_format)


@tf_export("keras.backend.binary_crossentropy", "keras.ops.binary_crossentropy")
def binary_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, name: str | None = None
) -> Any:
    """``tf.keras.losses.binary_crossentropy``: the loss of each sample."""
    return models.binary_crossentropy(y_true=target, y_pred=output, from_logits=from_logits)


@tf_export("keras.backend.concatenate")
def concatenate(tensors: Any, axis: Any = -1, name: str | None = None) -> Any:
    """``tf.concat``."""
    return arrays.concat(values=tensors, axis=axis)


@tf_export("keras.backend.constant")
def constant(value: ArrayLike, dtype: object = None, shape: TensorLike | None = None, name: str | None = None) -> Any:
    """A constant of the float dtype that Keras computes in, where no other is given."""
    return values.constant(value=value, dtype=models.floatx() if dtype is None else dtype, shape=shape)


@tf_export("keras.backend.dot")
def dot(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Matrix product over the last axis of ``x1`` and the second to last of ``x2``; leading axes broadcast."""
    return hf.matmul(x, y)


@tf_export("keras.backend.expand_dims")
def expand_dims(x: Operand, axis: AxisLike = -1, name: str | None = None) -> Any:
    """Insert axes: ``x`` with axes of extent 1 inserted, so that they stand at ``axis`` (an int or several) of the
    result."""
    return hf.expand_dims(x, axis=axis)


@tf_export("keras.backend.max", "keras.ops.amax", "keras.ops.max")
def max(x: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_max``: of no elements it is the least value of the dtype."""
    return maths.reduce_max(input_tensor=x, axis=axis, keepdims=keepdims)


@tf_export("keras.backend.min", "keras.ops.amin", "keras.ops.min")
def min(x: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_min``: of no elements it is the greatest value of the dtype."""
    return maths.reduce_min(input_tensor=x, axis=axis, keepdims=keepdims)


@tf_export("keras.backend.one_hot")
def one_hot(indices: TensorLike, num_classes: SupportsIndex, name: str | None = None) -> Any:
    """``tf.one_hot``."""
    return arrays.one_hot(indices=indices, depth=num_classes)


@tf_export("keras.backend.pow")
def pow(x: Operand, a: Operand, name: str | None = None) -> Any:
    """Elementwise power: ``x1 ** x2``."""
    return hf.pow(x, a)


@tf_export("keras.backend.reshape")
def reshape(x: ArrayLike, shape: object, name: str | None = None) -> Any:
    """``tf.reshape``."""
    return arrays.reshape(tensor=x, shape=shape)


@tf_export("keras.backend.shape")
def shape(x: TensorLike, name: str | None = None) -> Any:
    """``tf.shape``: an int32 tensor; in a traced function the extents themselves."""
    return values.shape(input=x)


@tf_export("keras.backend.squeeze")
def squeeze(x: Operand, axis: Any, name: str | None = None) -> Any:
    """Squeeze: ``x`` without the axes ``axis`` of extent 1; None removes all that are known to be 1."""
    return hf.squeeze(x, axis)


@tf_export("keras.backend.stack", "keras.ops.stack")
def stack(x: Any, axis: Any = 0, name: str | None = None) -> Any:
    """``tf.stack``."""
    return arrays.stack(values=x, axis=axis)


@tf_export("keras.backend.std", "keras.ops.std")
def std(x: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.math.reduce_std``."""
    return maths.reduce_std(input_tensor=x, axis=axis, keepdims=keepdims)


@tf_export("keras.backend.stop_gradient")
def stop_gradient(variables: Operand, name: str | None = None) -> Any:
    """Stop the gradient: ``x``, through which no gradient flows."""
    return hf.stop_gradient(variables)


@tf_export("keras.backend.sum", "keras.ops.sum")
def sum(x: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.reduce_sum``: in the operand's dtype."""
    return maths.reduce_sum(input_tensor=x, axis=axis, keepdims=keepdims)


@tf_export("keras.backend.transpose")
def transpose(x: TensorLike, name: str | None = None) -> Any:
    """``tf.transpose``."""
    return arrays.transpose(a=x)


@tf_export("keras.backend.var", "keras.ops.var")
def var(x: TensorLike, axis: object = None, keepdims: bool = False, name: str | None = None) -> Any:
    """``tf.math.reduce_variance``."""
    return maths.reduce_variance(input_tensor=x, axis=axis, keepdims=keepdims)


@tf_export("keras.backend.variable")
def variable(value: TensorLike, dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """Mutable state that functions read and assign. Its shape and dtype never change."""
    return hf.Variable(value, dtype=dtype)
