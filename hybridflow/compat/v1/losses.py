"""``tf.losses`` of TensorFlow 1: each is noted in a collection of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.layers import static_extent
from hybridflow.compat.v1.nn import TABLE as nn
from hybridflow.compat.v1.nodes import Tensor
from hybridflow.compat.v1.variables import REGULARIZATION

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike


LOSSES = "losses"


def _weighted(
    losses: ArrayLike, weights: TensorLike, scope: str | None, collection: object, reduction: str, default_name: str
) -> Any:
    """The mean of losses over the elements whose weight is not 0, noted as one of the graph's losses."""
    with default_graph().name_scope(scope or default_name):
        x = convert_to_tensor(losses)
        weighted = x if isinstance(weights, (int, float)) and weights == 1.0 else x * _outer(weights, x)
        if reduction == "none":
            result = weighted
        else:
            total = tf["reduce_sum"](weighted)
            if reduction == "weighted_sum":
                result = total
            elif reduction == "weighted_mean":
                result = tf["div_no_nan"](total, tf["reduce_sum"](tf["ones_like"](x) * _outer(weights, x)))
            elif reduction == "weighted_sum_over_batch_size":
                result = tf["div_no_nan"](total, tf["cast"](tf["size"](x), x.dtype))
            else:
                present = tf["cast"](tf["not_equal"](tf["zeros_like"](x) + _outer(weights, x), 0.0), x.dtype)
                result = tf["div_no_nan"](total, tf["reduce_sum"](present))
        if collection:
            default_graph().add_to_collection(collection, result)
        return result


def _outer(weights: TensorLike, x: Tensor) -> Any:
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


def _elementwise(name: str, function: Callable[..., Any]) -> Any:
    def loss(
        labels: ArrayLike,
        predictions: ArrayLike,
        weights: TensorLike = 1.0,
        scope: str | None = None,
        loss_collection: str | Sequence[str] | None = LOSSES,
        reduction: str = _BY_COUNT,
        **options: object,
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
    labels: ArrayLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: object = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    signs = 2 * tf["cast"](convert_to_tensor(labels), np.dtype("float32")) - 1
    return _weighted(nn["relu"](1 - signs * logits), weights, scope, loss_collection, reduction, "hinge_loss")


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: object = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    logits = convert_to_tensor(logits)
    labels = tf["cast"](convert_to_tensor(onehot_labels), logits.dtype)
    if label_smoothing:
        classes = static_extent(logits, -1, "softmax_cross_entropy")
        labels = labels * (1 - label_smoothing) + label_smoothing / classes
    entropy = nn["softmax_cross_entropy_with_logits"](labels=labels, logits=logits)
    return _weighted(entropy, weights, scope, loss_collection, reduction, "softmax_cross_entropy_loss")


def sparse_softmax_cross_entropy(
    labels: TensorLike,
    logits: TensorLike,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | Sequence[str] | None = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    entropy = nn["sparse_softmax_cross_entropy_with_logits"](labels=labels, logits=logits)
    if not isinstance(weights, (int, float)):
        weights = convert_to_tensor(weights)
        if entropy.shape.ndims is not None and weights.shape.ndims == entropy.shape.ndims + 1:
            weights = tf["squeeze"](weights, [-1])
    return _weighted(entropy, weights, scope, loss_collection, reduction, "sparse_softmax_cross_entropy_loss")


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: object = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    logits = convert_to_tensor(logits)
    labels = tf["cast"](convert_to_tensor(multi_class_labels), logits.dtype)
    labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing if label_smoothing else labels
    entropy = nn["sigmoid_cross_entropy_with_logits"](labels=labels, logits=logits)
    return _weighted(entropy, weights, scope, loss_collection, reduction, "sigmoid_cross_entropy_loss")


def cosine_distance(
    labels: ArrayLike,
    predictions: ArrayLike,
    axis: int | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: object = LOSSES,
    reduction: str = _BY_COUNT,
    dim: int | None = None,
) -> Any:
    """``1 - sum(labels * predictions)`` along an axis, of vectors of length 1."""
    place = dim if axis is None else axis
    if place is None:
        raise ValueError("You must specify 'axis'.")
    p = convert_to_tensor(predictions)
    products = tf["multiply"](p, tf["cast"](convert_to_tensor(labels), p.dtype))
    distance = 1 - tf["reduce_sum"](products, axis=place, keepdims=True)
    return _weighted(distance, weights, scope, loss_collection, reduction, "cosine_distance_loss")


def mean_pairwise_squared_error(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: object = LOSSES,
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
    error = 2.0 * squares / (count - 1) - 2.0 * tf["square"](total) / (count * (count - 1))
    return _weighted(error, weights, scope, loss_collection, Reduction.SUM, "mean_pairwise_squared_error")


def compute_weighted_loss(
    losses: ArrayLike,
    weights: ArrayLike = 1.0,
    scope: str | None = None,
    loss_collection: Any = LOSSES,
    reduction: str = _BY_COUNT,
) -> Any:
    """Losses put together with their weights."""
    return _weighted(losses, weights, scope, loss_collection, reduction, "weighted_loss")


def add_loss(loss: TensorLike, loss_collection: str | Sequence[str] | None = LOSSES) -> None:
    default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: object = LOSSES) -> list[Any]:
    return default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    return default_graph().get_collection(REGULARIZATION, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Any:
    terms = get_regularization_losses(scope)
    return tf["add_n"](terms, name=name) if terms else tf["constant"](0.0)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None) -> Any:
    """The sum of the graph's losses, and of what regularizers add."""
    terms = get_losses(scope) + (get_regularization_losses(scope) if add_regularization_losses else [])
    return tf["add_n"](terms, name=name)


NAMES: dict[str, Any] = {
    "Reduction": Reduction,
    "mean_squared_error": mean_squared_error,
    "absolute_difference": absolute_difference,
    "log_loss": log_loss,
    "huber_loss": huber_loss,
    "hinge_loss": hinge_loss,
    "softmax_cross_entropy": softmax_cross_entropy,
    "sparse_softmax_cross_entropy": sparse_softmax_cross_entropy,
    "sigmoid_cross_entropy": sigmoid_cross_entropy,
    "add_loss": add_loss,
    "get_losses": get_losses,
    "get_regularization_losses": get_regularization_losses,
    "get_regularization_loss": get_regularization_loss,
    "get_total_loss": get_total_loss,
    "cosine_distance": cosine_distance,
    "mean_pairwise_squared_error": mean_pairwise_squared_error,
    "compute_weighted_loss": compute_weighted_loss,
}
