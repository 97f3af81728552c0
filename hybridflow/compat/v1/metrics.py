"""``tf.metrics`` of TensorFlow 1: a value over all that was seen, and the operation that sees more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.functions import TABLE as tf
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.initializers import zeros_initializer
from hybridflow.compat.v1.scopes import get_variable_scope, variable_scope
from hybridflow.compat.v1.variables import LOCAL, Variable

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike


_FLOAT = np.dtype("float32")


def _local(name: str, shape: object = ()) -> Variable:
    start = zeros_initializer()
    return Variable(lambda: start(shape, _FLOAT), False, [LOCAL, "metric_variables"], name=name)


def _averaged(
    values: ArrayLike, weights: TensorLike, name: str | None, default_name: str, collections: object, updates: object
) -> tuple[Any, Any]:
    with variable_scope(name, default_name):
        x = tf["cast"](convert_to_tensor(values), _FLOAT)
        w = (
            tf["ones_like"](x)
            if weights is None
            else tf["zeros_like"](x) + tf["cast"](convert_to_tensor(weights), _FLOAT)
        )
        with default_graph().name_scope(None):
            scope = get_variable_scope().name
            total, count = _local(f"{scope}/total"), _local(f"{scope}/count")
        value = tf["div_no_nan"](total.value(), count.value(), name="value")
        more_total, more_count = total.assign_add(tf["reduce_sum"](x * w)), count.assign_add(tf["reduce_sum"](w))
        update = tf["div_no_nan"](more_total, more_count, name="update_op")
        return _add_to_collections(value, update, collections, updates)


def mean(
    values: ArrayLike,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean of all values that were seen, as a pair of it and the operation that sees more."""
    return _averaged(values, weights, name, "mean", metrics_collections, updates_collections)


def accuracy(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """How often predictions equal labels."""
    y, p = convert_to_tensor(labels), convert_to_tensor(predictions)
    hits = tf["equal"](tf["cast"](p, y.dtype), y)
    return _averaged(hits, weights, name, "accuracy", metrics_collections, updates_collections)


def mean_squared_error(
    labels: ArrayLike,
    predictions: object,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    errors = tf["squared_difference"](predictions, tf["cast"](convert_to_tensor(labels), _FLOAT))
    return _averaged(errors, weights, name, "mean_squared_error", metrics_collections, updates_collections)


def mean_absolute_error(
    labels: ArrayLike,
    predictions: object,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    errors = tf["abs"](predictions - tf["cast"](convert_to_tensor(labels), _FLOAT))
    return _averaged(errors, weights, name, "mean_absolute_error", metrics_collections, updates_collections)


def _share(name: str, of: str) -> Any:
    def metric(
        labels: ArrayLike,
        predictions: ArrayLike,
        weights: TensorLike | None = None,
        metrics_collections: object = None,
        updates_collections: object = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        y = tf["cast"](tf["cast"](convert_to_tensor(labels), np.dtype(bool)), _FLOAT)
        p = tf["cast"](tf["cast"](convert_to_tensor(predictions), np.dtype(bool)), _FLOAT)
        among = p if of == "predictions" else y
        hits, share = (y, among) if of == "predictions" else (p, among)
        return _averaged(
            hits,
            share if weights is None else share * weights,
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
        labels: TensorLike,
        predictions: TensorLike,
        weights: TensorLike | None = None,
        metrics_collections: object = None,
        updates_collections: object = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        y, p = (tf["cast"](convert_to_tensor(x), np.dtype(bool)) for x in (labels, predictions))
        hits = tf["logical_and"](tf["equal"](y, of_labels), tf["equal"](p, of_predictions))
        counted = tf["cast"](hits, _FLOAT)
        if weights is not None:
            counted = counted * tf["cast"](convert_to_tensor(weights), _FLOAT)
        with variable_scope(name, metric.__name__):
            with default_graph().name_scope(None):
                count = _local(f"{get_variable_scope().name}/count")
            value = tf["identity"](count.value(), name="value")
            update = count.assign_add(tf["reduce_sum"](counted), name="update_op")
        return _add_to_collections(value, update, metrics_collections, updates_collections)

    metric.__name__ = name
    return metric


true_positives, false_positives = _counting("true_positives", True, True), _counting("false_positives", False, True)
true_negatives, false_negatives = _counting("true_negatives", False, False), _counting("false_negatives", True, False)


def _add_to_collections(value: object, update: object, collections: object, updates: object) -> tuple[Any, Any]:
    for names, tensor in ((collections, value), (updates, update)):
        if names:
            default_graph().add_to_collections(names, tensor)
    return value, update


def root_mean_squared_error(
    labels: ArrayLike,
    predictions: object,
    weights: object = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The root of the mean of squares."""
    error = mean_squared_error(labels, predictions, weights, name=name or "root_mean_squared_error")
    return _add_to_collections(tf["sqrt"](error[0]), tf["sqrt"](error[1]), metrics_collections, updates_collections)


def _by_class(name: str, compute: Callable[..., Any]) -> Any:
    """A metric of the matrix that counts which labels were taken for which classes."""

    def metric(
        labels: TensorLike,
        predictions: TensorLike,
        num_classes: int,
        weights: TensorLike | None = None,
        metrics_collections: object = None,
        updates_collections: object = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        y, p = (tf["reshape"](convert_to_tensor(x), [-1]) for x in (labels, predictions))
        rows = tf["one_hot"](y, num_classes)
        if weights is not None:
            rows = rows * tf["expand_dims"](tf["reshape"](tf["cast"](convert_to_tensor(weights), _FLOAT), [-1]), 1)
        more = tf["matmul"](rows, tf["one_hot"](p, num_classes), transpose_a=True)
        with variable_scope(name, metric.__name__):
            with default_graph().name_scope(None):
                counts = _local(f"{get_variable_scope().name}/total_confusion_matrix", (num_classes, num_classes))
            update = counts.assign_add(more, name="update_op")
            value = compute(counts.value())
        return _add_to_collections(value, update, metrics_collections, updates_collections)

    metric.__name__ = name
    return metric


def _of_present(shares: object, sizes: Any, name: str) -> Any:
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
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: object = None,
    updates_collections: object = None,
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
    w: object = 1.0 if weights is None else tf["reshape"](tf["cast"](convert_to_tensor(weights), _FLOAT), [1, -1])
    taken = tf["cast"](p > limits, _FLOAT)
    cases = {
        "true_positives": y * taken, "false_positives": (1 - y) * taken,
        "true_negatives": (1 - y) * (1 - taken), "false_negatives": y * (1 - taken),
    }  # fmt: skip
    size = (len(inner) + 2,)
    with variable_scope(name, "auc"):
        with default_graph().name_scope(None):
            held = {case: _local(f"{get_variable_scope().name}/{case}", size) for case in cases}
        moved = {case: held[case].assign_add(tf["reduce_sum"](cases[case] * w, axis=1)) for case in cases}
        value = _area({case: v.value() for case, v in held.items()}, "value")
        update = _area(moved, "update_op")
    return _add_to_collections(value, update, metrics_collections, updates_collections)


def _area(counts: dict[str, Any], name: str) -> Any:
    small = 1.0e-6
    hits = counts["true_positives"]
    high = (hits + small) / (hits + counts["false_negatives"] + small)
    wrong = counts["false_positives"]
    wide = wrong / (wrong + counts["true_negatives"] + small)
    return tf["reduce_sum"]((wide[:-1] - wide[1:]) * ((high[:-1] + high[1:]) / 2.0), name=name)


NAMES: dict[str, Any] = {
    "mean": mean, "accuracy": accuracy, "mean_absolute_error": mean_absolute_error, "precision": precision,
    "recall": recall, "true_positives": true_positives, "false_positives": false_positives,
    "true_negatives": true_negatives, "false_negatives": false_negatives,
    "root_mean_squared_error": root_mean_squared_error, "mean_iou": mean_iou,
    "mean_per_class_accuracy": mean_per_class_accuracy, "auc": auc, "mean_squared_error": mean_squared_error,
}  # fmt: skip
