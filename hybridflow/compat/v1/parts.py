"""``tf.layers``, ``tf.losses`` and ``tf.metrics`` of TensorFlow 1: they make variables by ``tf.get_variable``."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.control import cond
from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.graph import Tensor, default_graph
from hybridflow.compat.v1.initializers import ones_initializer, zeros_initializer
from hybridflow.compat.v1.neural import TABLE as nn
from hybridflow.compat.v1.recording import as_graph_tensor, constant_value, is_symbolic
from hybridflow.compat.v1.scopes import get_variable, variable_scope
from hybridflow.compat.v1.variables import LOCAL, REGULARIZATION, Variable

UPDATE_OPS, LOSSES = "update_ops", "losses"


def _pair(value: Any) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def _activated(x: Any, activation: Any, regularizer: Any = None) -> Any:
    """The layer's output, whose penalty, if there is one, is noted as one of the graph's."""
    out = x if activation is None else activation(x)
    if regularizer is not None:
        default_graph().add_to_collection(REGULARIZATION, regularizer(out))
    return out


def _static_extent(x: Tensor, axis: int, what: str) -> int:
    extent = None if x.shape.ndims is None else x.shape.as_list()[axis]
    if extent is None:
        raise ValueError(f"The last dimension of the inputs to `{what}` should be defined. Found {x.shape}.")
    return extent


def dense(
    inputs: Any,
    units: int,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """``activation(inputs @ kernel + bias)``, over the last axis."""
    x = convert_to_tensor(inputs)
    with variable_scope(name, "dense", reuse=reuse):
        size = _static_extent(x, -1, "Dense")
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
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """Windows over images times a kernel."""
    x = convert_to_tensor(inputs)
    first = data_format == "channels_first"
    with variable_scope(name, "conv2d", reuse=reuse):
        channels = _static_extent(x, 1 if first else -1, "Conv2D")
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
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
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
            [kh, kw, filters, _static_extent(x, -1, "Conv2DTranspose")],
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
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Any:
    layout = "NCHW" if data_format == "channels_first" else "NHWC"
    return nn["max_pool"](
        inputs, _pair(pool_size), _pair(strides), padding.upper(), layout, name=name or "max_pooling2d"
    )


def average_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Any:
    layout = "NCHW" if data_format == "channels_first" else "NHWC"
    return nn["avg_pool"](
        inputs, _pair(pool_size), _pair(strides), padding.upper(), layout, name=name or "average_pooling2d"
    )


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Any:
    """The axes behind the first as one."""
    x = convert_to_tensor(inputs)
    inner = x.shape[1:].num_elements()
    if inner is None:
        return tf["reshape"](x, tf["stack"]([tf["shape"](x)[0], -1]), name=name or "flatten")
    return tf["reshape"](x, [-1, inner], name=name or "flatten")


def chosen(training: Any, yes: Any, no: Any) -> Any:
    """The result of one function or the other, by a bool or a tensor."""
    known = constant_value(training) if is_symbolic(training) else np.asarray(training)
    if known is not None and not (
        is_symbolic(training) and as_graph_tensor(training).op.type.startswith("Placeholder")
    ):
        return yes() if bool(known) else no()
    return cond(training, yes, no)


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
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
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    **_: Any,
) -> Any:
    """Each channel with mean 0 and variance 1: of the batch while training, else of the averages, which the
    operations in the collection ``tf.GraphKeys.UPDATE_OPS`` move."""
    x = convert_to_tensor(inputs)
    rank = x.shape.ndims or 0
    place = axis % rank
    with variable_scope(name, "batch_normalization", reuse=reuse):
        size = [_static_extent(x, place, "BatchNormalization")]
        gamma = (
            get_variable("gamma", size, x.dtype, gamma_initializer or ones_initializer(), gamma_regularizer, trainable)
            if scale
            else None
        )
        beta = (
            get_variable("beta", size, x.dtype, beta_initializer or zeros_initializer(), beta_regularizer, trainable)
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
        own = chosen(training, lambda: of_batch, lambda: (tf["identity"](mean), tf["identity"](variance)))
        share = chosen(training, lambda: tf["constant"](1.0 - momentum), lambda: tf["constant"](0.0))
        if not (isinstance(training, bool) and not training):
            for average, value in zip((mean, variance), of_batch):
                default_graph().add_to_collection(UPDATE_OPS, average.assign_sub((average - value) * share).op)
        outer = [1] * rank
        outer[place] = size[0]
        given = [v if v is None or place == rank - 1 else tf["reshape"](v, outer) for v in (*own, beta, gamma)]
        return nn["batch_normalization"](x, *given, epsilon)


# ---- losses


def _weighted(losses: Any, weights: Any, scope: str | None, collection: Any, reduction: str, own: str) -> Any:
    """The mean of losses over the elements whose weight is not 0, noted as one of the graph's losses."""
    with default_graph().name_scope(scope or own):
        x = convert_to_tensor(losses)
        weighted = x if isinstance(weights, (int, float)) and weights == 1.0 else x * _outer(weights, x)
        if reduction == "none":
            found = weighted
        else:
            total = tf["reduce_sum"](weighted)
            if reduction == "weighted_sum":
                found = total
            elif reduction == "weighted_mean":
                found = total / tf["reduce_sum"](tf["ones_like"](x) * _outer(weights, x))
            elif reduction == "weighted_sum_over_batch_size":
                found = tf["reduce_mean"](weighted)
            else:
                present = tf["cast"](tf["not_equal"](tf["zeros_like"](x) + _outer(weights, x), 0.0), x.dtype)
                found = tf["div_no_nan"](total, tf["reduce_sum"](present))
        if collection:
            default_graph().add_to_collection(collection, found)
        return found


def _outer(weights: Any, x: Tensor) -> Any:
    """Weights as a number or a tensor that fits what they weight.  Raises ValueError for one that does not."""
    if isinstance(weights, (int, float)):
        return weights
    w = tf["cast"](convert_to_tensor(weights), x.dtype)
    if x.shape.ndims is None or not w.shape.ndims:  # not known, or a number
        return w
    pairs = zip(w.shape.as_list(), x.shape.as_list())
    if w.shape.ndims != x.shape.ndims or any(None not in (a, b) and a not in (1, b) for a, b in pairs):
        raise ValueError(f"weights can not be broadcast to values: they have shapes {w.shape} and {x.shape}.")
    return w


_BY_COUNT = "weighted_sum_by_nonzero_weights"


class Reduction:
    """How losses are put together."""

    NONE, SUM, MEAN = "none", "weighted_sum", "weighted_mean"
    SUM_OVER_BATCH_SIZE, SUM_BY_NONZERO_WEIGHTS = "weighted_sum_over_batch_size", _BY_COUNT


def _elementwise(name: str, function: Any) -> Any:
    def loss(
        labels: Any,
        predictions: Any,
        weights: Any = 1.0,
        scope: str | None = None,
        loss_collection: Any = LOSSES,
        reduction: str = _BY_COUNT,
        **options: Any,
    ) -> Any:
        p = convert_to_tensor(predictions)
        y = tf["cast"](convert_to_tensor(labels), p.dtype)
        if not p.shape.is_compatible_with(y.shape):
            raise ValueError(f"Shapes {p.shape} and {y.shape} are incompatible")
        return _weighted(function(y, p, **options), weights, scope, loss_collection, reduction, name)

    loss.__name__ = name
    return loss


mean_squared_error = _elementwise("mean_squared_error", lambda y, p: tf["squared_difference"](p, y))
absolute_difference = _elementwise("absolute_difference", lambda y, p: tf["abs"](p - y))
log_loss = _elementwise(
    "log_loss", lambda y, p, epsilon=1e-7: -y * tf["log"](p + epsilon) - (1 - y) * tf["log"](1 - p + epsilon)
)


def _huber(y: Any, p: Any, delta: float = 1.0) -> Any:
    error = tf["abs"](p - y)
    inner = tf["minimum"](error, delta)
    return 0.5 * inner * inner + delta * (error - inner)


huber_loss = _elementwise("huber_loss", _huber)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    signs = 2 * tf["cast"](convert_to_tensor(labels), np.dtype("float32")) - 1
    return _weighted(nn["relu"](1 - signs * logits), weights, scope, loss_collection, reduction, "hinge_loss")


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    labels = tf["cast"](convert_to_tensor(onehot_labels), as_graph_tensor(logits).dtype)
    if label_smoothing:
        classes = _static_extent(as_graph_tensor(logits), -1, "softmax_cross_entropy")
        labels = labels * (1 - label_smoothing) + label_smoothing / classes
    found = nn["softmax_cross_entropy_with_logits"](labels=labels, logits=logits)
    return _weighted(found, weights, scope, loss_collection, reduction, "softmax_cross_entropy_loss")


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    found = nn["sparse_softmax_cross_entropy_with_logits"](labels=labels, logits=logits)
    if not isinstance(weights, (int, float)):
        weights = convert_to_tensor(weights)
        if found.shape.ndims is not None and weights.shape.ndims == found.shape.ndims + 1:
            weights = tf["squeeze"](weights, [-1])
    return _weighted(found, weights, scope, loss_collection, reduction, "sparse_softmax_cross_entropy_loss")


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    labels = tf["cast"](convert_to_tensor(multi_class_labels), as_graph_tensor(logits).dtype)
    labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing if label_smoothing else labels
    found = nn["sigmoid_cross_entropy_with_logits"](labels=labels, logits=logits)
    return _weighted(found, weights, scope, loss_collection, reduction, "sigmoid_cross_entropy_loss")


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = LOSSES,
    reduction: str = _BY_COUNT,
    dim: int | None = None,
) -> Any:
    """``1 - sum(labels * predictions)`` along an axis, of vectors of length 1."""
    place = dim if axis is None else axis
    if place is None:
        raise ValueError("You must specify 'axis'.")
    p = convert_to_tensor(predictions)
    products = tf["multiply"](p, tf["cast"](convert_to_tensor(labels), p.dtype))
    found = 1 - tf["reduce_sum"](products, axis=place, keepdims=True)
    return _weighted(found, weights, scope, loss_collection, reduction, "cosine_distance_loss")


def mean_pairwise_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None, loss_collection: Any = LOSSES
) -> Any:
    """How much differences of pairs of elements of a row differ, squared: means over pairs, summed over rows."""
    p = convert_to_tensor(predictions)
    d = p - tf["cast"](convert_to_tensor(labels), p.dtype)
    axes = list(range(1, d.shape.ndims or 1))
    count = float(d.shape[1:].num_elements() or 0)
    if count < 2:
        raise ValueError(f"pairs of elements are needed in each row: the shape is {d.shape}.")
    squares = tf["reduce_sum"](tf["square"](d), axis=axes, keepdims=True)
    total = tf["reduce_sum"](d, axis=axes, keepdims=True)
    found = 2.0 * squares / (count - 1) - 2.0 * tf["square"](total) / (count * (count - 1))
    return _weighted(found, weights, scope, loss_collection, Reduction.SUM, "mean_pairwise_squared_error")


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    """Losses put together with their weights."""
    return _weighted(losses, weights, scope, loss_collection, reduction, "weighted_loss")


def add_loss(loss: Any, loss_collection: Any = LOSSES) -> None:
    default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: Any = LOSSES) -> list[Any]:
    return default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    return default_graph().get_collection(REGULARIZATION, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Any:
    found = get_regularization_losses(scope)
    return tf["add_n"](found, name=name) if found else tf["constant"](0.0)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None) -> Any:
    """The sum of the graph's losses, and of what regularizers add."""
    found = get_losses(scope) + (get_regularization_losses(scope) if add_regularization_losses else [])
    return tf["add_n"](found, name=name)


def l2_regularizer(scale: float, scope: str | None = None) -> Any:
    """``scale * sum(w**2) / 2``."""
    return lambda weights: tf["multiply"](float(scale), nn["l2_loss"](weights), name="l2_regularizer")


def l1_regularizer(scale: float, scope: str | None = None) -> Any:
    return lambda weights: tf["multiply"](float(scale), tf["reduce_sum"](tf["abs"](weights)), name="l1_regularizer")


# ---- metrics: a value over all that was seen, and the operation that sees more


def _local(name: str, shape: Any = ()) -> Variable:
    start = zeros_initializer()
    return Variable(lambda: start(shape, np.dtype("float32")), False, [LOCAL, "metric_variables"], name=name)


def _averaged(values: Any, weights: Any, name: str | None, own: str, collections: Any, updates: Any) -> tuple[Any, Any]:
    with variable_scope(name, own):
        x = tf["cast"](convert_to_tensor(values), np.dtype("float32"))
        w = (
            tf["ones_like"](x)
            if weights is None
            else tf["zeros_like"](x) + tf["cast"](convert_to_tensor(weights), np.dtype("float32"))
        )
        with default_graph().name_scope(None):
            scope = _scope_name()
            total, count = _local(f"{scope}/total"), _local(f"{scope}/count")
        value = tf["div_no_nan"](total.value(), count.value(), name="value")
        more_total, more_count = total.assign_add(tf["reduce_sum"](x * w)), count.assign_add(tf["reduce_sum"](w))
        update = tf["div_no_nan"](more_total, more_count, name="update_op")
        for group_names, found in ((collections, value), (updates, update)):
            if group_names:
                default_graph().add_to_collections(group_names, found)
        return value, update


def _scope_name() -> str:
    from hybridflow.compat.v1.scopes import get_variable_scope

    return get_variable_scope().name


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean of all values that were seen, as a pair of it and the operation that sees more."""
    return _averaged(values, weights, name, "mean", metrics_collections, updates_collections)


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """How often predictions equal labels."""
    y, p = convert_to_tensor(labels), convert_to_tensor(predictions)
    hits = tf["equal"](tf["cast"](p, y.dtype), y)
    return _averaged(hits, weights, name, "accuracy", metrics_collections, updates_collections)


def mean_squared_error_metric(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    errors = tf["squared_difference"](predictions, tf["cast"](convert_to_tensor(labels), np.dtype("float32")))
    return _averaged(errors, weights, name, "mean_squared_error", metrics_collections, updates_collections)


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    errors = tf["abs"](predictions - tf["cast"](convert_to_tensor(labels), np.dtype("float32")))
    return _averaged(errors, weights, name, "mean_absolute_error", metrics_collections, updates_collections)


def _share(name: str, of: str) -> Any:
    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        kind = np.dtype("float32")
        y = tf["cast"](tf["cast"](convert_to_tensor(labels), np.dtype(bool)), kind)
        p = tf["cast"](tf["cast"](convert_to_tensor(predictions), np.dtype(bool)), kind)
        among = p if of == "predictions" else y
        hits, own = (y, among) if of == "predictions" else (p, among)
        return _averaged(
            hits,
            own if weights is None else own * weights,
            name,
            metric.__name__,
            metrics_collections,
            updates_collections,
        )

    metric.__name__ = name
    return metric


precision, recall = _share("precision", "predictions"), _share("recall", "labels")


def _counting(name: str, of_labels: bool, of_predictions: bool) -> Any:
    """How many elements had a label and a prediction like these."""

    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        y, p = (tf["cast"](convert_to_tensor(x), np.dtype(bool)) for x in (labels, predictions))
        hits = tf["logical_and"](tf["equal"](y, of_labels), tf["equal"](p, of_predictions))
        counted = tf["cast"](hits, _FLOAT)
        if weights is not None:
            counted = counted * tf["cast"](convert_to_tensor(weights), _FLOAT)
        with variable_scope(name, metric.__name__):
            with default_graph().name_scope(None):
                count = _local(f"{_scope_name()}/count")
            value = tf["identity"](count.value(), name="value")
            update = count.assign_add(tf["reduce_sum"](counted), name="update_op")
        return _noted(value, update, metrics_collections, updates_collections)

    metric.__name__ = name
    return metric


_FLOAT = np.dtype("float32")
true_positives, false_positives = _counting("true_positives", True, True), _counting("false_positives", False, True)
true_negatives, false_negatives = _counting("true_negatives", False, False), _counting("false_negatives", True, False)


def _noted(value: Any, update: Any, collections: Any, updates: Any) -> tuple[Any, Any]:
    for names, found in ((collections, value), (updates, update)):
        if names:
            default_graph().add_to_collections(names, found)
    return value, update


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The root of the mean of squares."""
    found = mean_squared_error_metric(labels, predictions, weights, name=name or "root_mean_squared_error")
    return _noted(tf["sqrt"](found[0]), tf["sqrt"](found[1]), metrics_collections, updates_collections)


def _by_class(name: str, compute: Any) -> Any:
    """A metric of the matrix that counts which labels were taken for which classes."""

    def metric(
        labels: Any,
        predictions: Any,
        num_classes: int,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        y, p = (tf["reshape"](convert_to_tensor(x), [-1]) for x in (labels, predictions))
        rows = tf["one_hot"](y, num_classes)
        if weights is not None:
            rows = rows * tf["expand_dims"](tf["reshape"](tf["cast"](convert_to_tensor(weights), _FLOAT), [-1]), 1)
        more = tf["matmul"](rows, tf["one_hot"](p, num_classes), transpose_a=True)
        with variable_scope(name, metric.__name__):
            with default_graph().name_scope(None):
                counts = _local(f"{_scope_name()}/total_confusion_matrix", (num_classes, num_classes))
            update = counts.assign_add(more, name="update_op")
            value = compute(counts.value())
        return _noted(value, update, metrics_collections, updates_collections)

    metric.__name__ = name
    return metric


def _of_present(shares: Any, sizes: Any, name: str) -> Any:
    """The mean over the classes that there were."""
    count = tf["reduce_sum"](tf["cast"](sizes > 0, _FLOAT))
    return tf["div_no_nan"](tf["reduce_sum"](tf["div_no_nan"](shares, sizes)), count, name=name)


def _mean_iou(counts: Any) -> Any:
    hits = tf["reduce_sum"](counts * tf["eye"](counts.shape.as_list()[0]), axis=0)
    union = tf["reduce_sum"](counts, axis=0) + tf["reduce_sum"](counts, axis=1) - hits
    return _of_present(hits, union, "mean_iou")


def _mean_of_classes(counts: Any) -> Any:
    size = counts.shape.as_list()[0]
    hits = tf["reduce_sum"](counts * tf["eye"](size), axis=0)
    shares = tf["div_no_nan"](hits, tf["reduce_sum"](counts, axis=1))
    return tf["reduce_mean"](shares, name="mean_accuracy")


mean_iou = _by_class("mean_iou", _mean_iou)
mean_per_class_accuracy = _by_class("mean_per_class_accuracy", _mean_of_classes)


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Any = None,
) -> tuple[Any, Any]:
    """The area under the curve of true over false positives, by so many thresholds."""
    if curve != "ROC" or summation_method != "trapezoidal":
        raise NotImplementedError("tf.metrics.auc has the curve ROC by trapezoids alone in hybridflow.")
    inner = [(k + 1) / (num_thresholds - 1) for k in range(num_thresholds - 2)] if thresholds is None else thresholds
    limits = tf["constant"](np.array([-1e-7, *sorted(inner), 1 + 1e-7], np.float32)[:, None])
    y = tf["reshape"](tf["cast"](tf["cast"](convert_to_tensor(labels), np.dtype(bool)), _FLOAT), [1, -1])
    p = tf["reshape"](tf["cast"](convert_to_tensor(predictions), _FLOAT), [1, -1])
    w: Any = 1.0 if weights is None else tf["reshape"](tf["cast"](convert_to_tensor(weights), _FLOAT), [1, -1])
    taken = tf["cast"](p > limits, _FLOAT)
    cases = {
        "true_positives": y * taken, "false_positives": (1 - y) * taken,
        "true_negatives": (1 - y) * (1 - taken), "false_negatives": y * (1 - taken),
    }  # fmt: skip
    size = (len(inner) + 2,)
    with variable_scope(name, "auc"):
        with default_graph().name_scope(None):
            held = {case: _local(f"{_scope_name()}/{case}", size) for case in cases}
        moved = {case: held[case].assign_add(tf["reduce_sum"](cases[case] * w, axis=1)) for case in cases}
        value = _area({case: v.value() for case, v in held.items()}, "value")
        update = _area(moved, "update_op")
    return _noted(value, update, metrics_collections, updates_collections)


def _area(counts: dict[str, Any], name: str) -> Any:
    small = 1.0e-6
    hits = counts["true_positives"]
    high = (hits + small) / (hits + counts["false_negatives"] + small)
    wrong = counts["false_positives"]
    wide = wrong / (wrong + counts["true_negatives"] + small)
    return tf["reduce_sum"]((wide[:-1] - wide[1:]) * ((high[:-1] + high[1:]) / 2.0), name=name)
