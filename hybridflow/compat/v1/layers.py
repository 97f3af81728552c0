"""``tf.layers`` of TensorFlow 1: they make their variables by ``tf.get_variable``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.control import cond
from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.initializers import ones_initializer, zeros_initializer
from hybridflow.compat.v1.nn import TABLE as nn
from hybridflow.compat.v1.nodes import Tensor
from hybridflow.compat.v1.recording import as_graph_tensor, constant_value, is_symbolic
from hybridflow.compat.v1.regularizers import penalty
from hybridflow.compat.v1.scopes import get_variable, variable_scope
from hybridflow.compat.v1.variables import REGULARIZATION

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike


UPDATE_OPS = "update_ops"


def _pair(value: Any) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def _activated(
    x: TensorLike, activation: Callable[..., Any] | None, regularizer: Callable[..., Any] | None = None
) -> Any:
    """The layer's output, whose penalty, if there is one, is noted as one of the graph's."""
    out = x if activation is None else activation(x)
    if regularizer is not None:
        default_graph().add_to_collection(REGULARIZATION, penalty(regularizer, out))
    return out


def static_extent(x: Tensor, axis: int, what: str) -> int:
    extent = None if x.shape.ndims is None else x.shape.as_list()[axis]
    if extent is None:
        raise ValueError(f"The last dimension of the inputs to `{what}` should be defined. Found {x.shape}.")
    return extent


def dense(
    inputs: ArrayLike,
    units: int,
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: Callable[..., Any] | None = None,
    bias_initializer: object = None,
    kernel_regularizer: Callable[..., Any] | None = None,
    bias_regularizer: Any = None,
    activity_regularizer: Callable[..., Any] | None = None,
    kernel_constraint: Callable[..., Any] | None = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """``activation(inputs @ kernel + bias)``, over the last axis."""
    x = convert_to_tensor(inputs)
    with variable_scope(name, "dense", reuse=reuse):
        size = static_extent(x, -1, "Dense")
        kernel = get_variable(
            "kernel", [size, units], x.dtype, kernel_initializer, kernel_regularizer, trainable,
            constraint=kernel_constraint,
        )  # fmt: skip
        flat = x if x.shape.ndims == 2 else tf["reshape"](x, [-1, size])
        out = tf["matmul"](flat, kernel)
        if x.shape.ndims != 2:
            front = tf["shape"](x)[:-1]
            out = tf["reshape"](out, tf["concat"]([front, [units]], 0))
        if use_bias:
            start = bias_initializer or zeros_initializer()
            bias = get_variable(
                "bias", [units], x.dtype, start, bias_regularizer, trainable, constraint=bias_constraint
            )
            out = nn["bias_add"](out, bias)
        return _activated(out, activation, activity_regularizer)


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: object,
    strides: object = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: object = (1, 1),
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: Callable[..., Any] | None = None,
    bias_initializer: object = None,
    kernel_regularizer: Callable[..., Any] | None = None,
    bias_regularizer: Any = None,
    activity_regularizer: Callable[..., Any] | None = None,
    kernel_constraint: Callable[..., Any] | None = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """Windows over images times a kernel."""
    x = convert_to_tensor(inputs)
    first = data_format == "channels_first"
    with variable_scope(name, "conv2d", reuse=reuse):
        channels = static_extent(x, 1 if first else -1, "Conv2D")
        shape = [*_pair(kernel_size), channels, filters]
        kernel = get_variable(
            "kernel", shape, x.dtype, kernel_initializer, kernel_regularizer, trainable, constraint=kernel_constraint
        )
        layout = "NCHW" if first else "NHWC"
        out = nn["conv2d"](
            x, kernel, _pair(strides), padding.upper(), data_format=layout, dilations=_pair(dilation_rate)
        )
        if use_bias:
            start = bias_initializer or zeros_initializer()
            bias = get_variable(
                "bias", [filters], x.dtype, start, bias_regularizer, trainable, constraint=bias_constraint
            )
            out = nn["bias_add"](out, bias, layout)
        return _activated(out, activation, activity_regularizer)


def conv2d_transpose(
    inputs: ArrayLike,
    filters: int,
    kernel_size: object,
    strides: object = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: Callable[..., Any] | None = None,
    bias_initializer: object = None,
    kernel_regularizer: Callable[..., Any] | None = None,
    bias_regularizer: Any = None,
    activity_regularizer: Callable[..., Any] | None = None,
    kernel_constraint: Callable[..., Any] | None = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """The transpose of a convolution: images grow by the strides."""
    if data_format != "channels_last":
        raise NotImplementedError("tf.layers.conv2d_transpose has its channels last in hybridflow: transpose before.")
    x = convert_to_tensor(inputs)
    (kh, kw), (sh, sw) = _pair(kernel_size), _pair(strides)
    with variable_scope(name, "conv2d_transpose", reuse=reuse):
        kernel = get_variable(
            "kernel",
            [kh, kw, filters, static_extent(x, -1, "Conv2DTranspose")],
            x.dtype,
            kernel_initializer,
            kernel_regularizer,
            trainable,
            constraint=kernel_constraint,
        )
        sizes = tf["shape"](x)
        grown = [sizes[1] * sh, sizes[2] * sw]
        if padding.lower() == "valid":
            grown = [grown[0] + max(kh - sh, 0), grown[1] + max(kw - sw, 0)]
        out = nn["conv2d_transpose"](x, kernel, tf["stack"]([sizes[0], *grown, filters]), [sh, sw], padding.upper())
        if use_bias:
            start = bias_initializer or zeros_initializer()
            bias = get_variable(
                "bias", [filters], x.dtype, start, bias_regularizer, trainable, constraint=bias_constraint
            )
            out = nn["bias_add"](out, bias)
        return _activated(out, activation, activity_regularizer)


def max_pooling2d(
    inputs: TensorLike,
    pool_size: object,
    strides: object,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Any:
    layout = "NCHW" if data_format == "channels_first" else "NHWC"
    return nn["max_pool"](
        inputs, _pair(pool_size), _pair(strides), padding.upper(), layout, name=name or "max_pooling2d"
    )


def average_pooling2d(
    inputs: TensorLike,
    pool_size: object,
    strides: object,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Any:
    layout = "NCHW" if data_format == "channels_first" else "NHWC"
    return nn["avg_pool"](
        inputs, _pair(pool_size), _pair(strides), padding.upper(), layout, name=name or "average_pooling2d"
    )


def flatten(inputs: ArrayLike, name: str | None = None, data_format: str = "channels_last") -> Any:
    """The axes behind the first as one."""
    x = convert_to_tensor(inputs)
    inner = x.shape[1:].num_elements()
    if inner is None:
        return tf["reshape"](x, tf["stack"]([tf["shape"](x)[0], -1]), name=name or "flatten")
    return tf["reshape"](x, [-1, inner], name=name or "flatten")


def chosen(training: TensorLike, yes: Callable[..., Any], no: Callable[..., Any]) -> Any:
    """The result of one function or the other, by a bool or a tensor."""
    known = constant_value(training) if is_symbolic(training) else np.asarray(training)
    if known is not None and not (
        is_symbolic(training) and as_graph_tensor(training).op.type.startswith("Placeholder")
    ):
        return yes() if bool(known) else no()
    return cond(training, yes, no)


def dropout(
    inputs: ArrayLike,
    rate: object = 0.5,
    noise_shape: object = None,
    seed: int | None = None,
    training: TensorLike = False,
    name: str | None = None,
) -> Any:
    """While training, elements set to 0 with probability ``rate``."""
    x = convert_to_tensor(inputs)
    return chosen(
        training,
        lambda: nn["dropout"](x, rate=rate, noise_shape=noise_shape, seed=seed, name=name),
        lambda: tf["identity"](x),
    )


def batch_normalization(
    inputs: ArrayLike,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Callable[..., Any] | None = None,
    gamma_initializer: Callable[..., Any] | None = None,
    moving_mean_initializer: Callable[..., Any] | None = None,
    moving_variance_initializer: Callable[..., Any] | None = None,
    beta_regularizer: Callable[..., Any] | None = None,
    gamma_regularizer: Callable[..., Any] | None = None,
    beta_constraint: Callable[..., Any] | None = None,
    gamma_constraint: Callable[..., Any] | None = None,
    training: TensorLike = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: object = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: object = None,
) -> Any:
    """Each channel with mean 0 and variance 1: of the batch while training, else of the averages, which the
    operations in the collection ``tf.GraphKeys.UPDATE_OPS`` move.

    ``fused`` says how TensorFlow computes, and changes nothing here.
    """
    if renorm or virtual_batch_size is not None or adjustment is not None:
        raise NotImplementedError(
            "tf.layers.batch_normalization has no renorm, virtual_batch_size and adjustment in hybridflow: leave them "
            "out, or write the correction with tf.nn.moments and tf.nn.batch_normalization."
        )
    x = convert_to_tensor(inputs)
    rank = x.shape.ndims or 0
    place = axis % rank
    with variable_scope(name, "batch_normalization", reuse=reuse):
        size = [static_extent(x, place, "BatchNormalization")]
        gamma = (
            get_variable(
                "gamma",
                size,
                x.dtype,
                gamma_initializer or ones_initializer(),
                gamma_regularizer,
                trainable,
                constraint=gamma_constraint,
            )
            if scale
            else None
        )
        beta = (
            get_variable(
                "beta",
                size,
                x.dtype,
                beta_initializer or zeros_initializer(),
                beta_regularizer,
                trainable,
                constraint=beta_constraint,
            )
            if center
            else None
        )
        mean = get_variable(
            "moving_mean", size, x.dtype, moving_mean_initializer or zeros_initializer(), trainable=False
        )
        variance = get_variable(
            "moving_variance", size, x.dtype, moving_variance_initializer or ones_initializer(), trainable=False
        )
        axes = [k for k in range(rank) if k != place]
        of_batch = nn["moments"](x, axes)
        statistics = chosen(training, lambda: of_batch, lambda: (tf["identity"](mean), tf["identity"](variance)))
        share = chosen(training, lambda: tf["constant"](1.0 - momentum), lambda: tf["constant"](0.0))
        if not (isinstance(training, bool) and not training):
            for average, value in zip((mean, variance), of_batch):
                default_graph().add_to_collection(UPDATE_OPS, average.assign_sub((average - value) * share).op)
        outer = [1] * rank
        outer[place] = size[0]
        parameters = [
            v if v is None or place == rank - 1 else tf["reshape"](v, outer) for v in (*statistics, beta, gamma)
        ]
        return nn["batch_normalization"](x, *parameters, epsilon)


NAMES: dict[str, Any] = {
    "dense": dense,
    "conv2d": conv2d,
    "conv2d_transpose": conv2d_transpose,
    "max_pooling2d": max_pooling2d,
    "average_pooling2d": average_pooling2d,
    "flatten": flatten,
    "dropout": dropout,
    "batch_normalization": batch_normalization,
}
