"""Losses.  ``reduction`` is "mean" over all of them, "sum" or "none"; errors: ShapeError, DTypeError, ArgumentError.

Labels come first and predictions second, as in Keras; a cross entropy takes logits, not probabilities.
"""

from __future__ import annotations

__traits__ = ("makes tensors",)


from hybridflow.array.elementwise import abs, add, clip, less, logaddexp, multiply, square, subtract, where
from hybridflow.array.indexing import take_along_axis
from hybridflow.array.reductions import logsumexp, mean, sum
from hybridflow.array.shapes import expand_dims, squeeze
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, cast, common_dtype, float_operand
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError


def _reduced(losses: Tensor, reduction: str, stage: str) -> Tensor:
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(stage, f"reduction is {reduction!r}; it must be 'mean', 'sum' or 'none'.")


def _pair(labels: ArrayLike, predictions: ArrayLike, stage: str) -> tuple[Tensor, Tensor]:
    """Labels and predictions of one shape and one float dtype: broadcasting here would hide a mistake."""
    labels, predictions = as_tensor(labels, stage), float_operand(predictions, stage)
    if labels.shape != predictions.shape:
        raise ShapeError(
            stage,
            f"the labels {labels.type} and the predictions {predictions.type} must have one shape; reshape one.",
        )
    dtype = common_dtype(stage, (labels, predictions))
    return dtype[0], dtype[1]


@operation
def mean_squared_error(labels: ArrayLike, predictions: ArrayLike, reduction: str = "mean") -> Tensor:
    """Mean squared error: ``(predictions - labels)**2``.

    Args:
        labels: the true values.
        predictions: what was predicted; the shapes broadcast.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Returns:
        A float scalar, or with "none" a tensor of losses.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.losses.mean_squared_error([0.0, 0.0], [1.0, -3.0])
    <Tensor f32[] cpu> 5.0
    """
    y, p = _pair(labels, predictions, "mean_squared_error")
    return _reduced(square(subtract(p, y)), reduction, "mean_squared_error")


@operation
def mean_absolute_error(labels: ArrayLike, predictions: ArrayLike, reduction: str = "mean") -> Tensor:
    """Mean absolute error: ``|predictions - labels|``.

    Args:
        labels: the true values.
        predictions: what was predicted; the shapes broadcast.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Returns:
        A float scalar, or with "none" a tensor of losses.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.losses.mean_absolute_error([0.0, 0.0], [1.0, -3.0])
    <Tensor f32[] cpu> 2.0
    """
    y, p = _pair(labels, predictions, "mean_absolute_error")
    return _reduced(abs(subtract(p, y)), reduction, "mean_absolute_error")


@operation
def huber(labels: ArrayLike, predictions: ArrayLike, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """Huber loss: half the squared error up to an error of ``delta``, growing linearly beyond.

    Args:
        labels: the true values.
        predictions: what was predicted; the shapes broadcast.
        delta: where it goes from quadratic to linear.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Returns:
        A float scalar, or with "none" a tensor of losses.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.losses.huber([0.0, 0.0], [0.5, 3.0])
    <Tensor f32[] cpu> 1.3125
    """
    y, p = _pair(labels, predictions, "huber")
    error = subtract(p, y)
    inner = clip(error, -delta, delta)  # the square of its magnitude has no second derivative at 0
    outer = multiply(subtract(abs(error), abs(inner)), delta)
    return _reduced(add(multiply(square(inner), 0.5), outer), reduction, "huber")


@operation
def sigmoid_cross_entropy(labels: ArrayLike, logits: ArrayLike, reduction: str = "mean") -> Tensor:
    """Sigmoid cross entropy: ``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``, without
    overflow.

    Args:
        labels: probabilities of True.
        logits: what was predicted, before the sigmoid.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Returns:
        A float scalar, or with "none" a tensor of losses.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.losses.sigmoid_cross_entropy([1.0, 0.0], [2.0, 2.0])
    <Tensor f32[] cpu> 1.1269281
    """
    z, x = _pair(labels, logits, "sigmoid_cross_entropy")
    return _reduced(subtract(logaddexp(x, 0.0), multiply(x, z)), reduction, "sigmoid_cross_entropy")


@operation
def softmax_cross_entropy(
    labels: ArrayLike, logits: ArrayLike, axis: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Softmax cross entropy: ``-sum(labels * log_softmax(logits))`` over ``axis``, the classes.

    Integer ``labels`` are class numbers, of the shape of ``logits`` without ``axis``; float ``labels`` are
    probabilities, of the shape of ``logits``.  ``label_smoothing`` shares that much probability evenly over all
    classes.  A class number out of range raises IndexRangeError when the loss is computed.

    Raises ShapeError if the shapes do not match and AxisError for an axis out of range.

    Args:
        labels: class numbers or probabilities.
        logits: what was predicted, before the softmax.
        axis: the axis of classes.
        label_smoothing: from 0 to 1.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Returns:
        A float scalar, or with "none" a tensor of losses.

    >>> hf.losses.softmax_cross_entropy([1, 0], [[0.0, 2.0], [0.0, 2.0]])
    <Tensor f32[] cpu> 1.1269281
    """
    stage = "softmax_cross_entropy"
    labels, logits = as_tensor(labels, stage), as_tensor(logits, stage)
    if not dtypes.is_float(logits.dtype):
        raise DTypeError(stage, f"the logits are {logits.type}; they must be floats. Labels come first, logits second.")
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(stage, f"label_smoothing is {label_smoothing}; it must lie in [0, 1].")
    axis = type_rules.axis(stage, logits.type, axis)
    dtype = logits.dtype
    x = cast(logits, dtypes.compute_dtype(dtype))
    per_example = (*x.shape[:axis], *x.shape[axis + 1 :])
    normalizer = logsumexp(x, axis)
    if dtypes.is_integer(labels.dtype):
        if labels.shape != per_example:
            floats = " Shares of classes, as one-hot rows are, are floats." if labels.shape == logits.shape else ""
            raise ShapeError(
                stage,
                f"the labels {labels.type} must have the shape of the logits {logits.type} without axis {axis}, as "
                f"integers name classes.{floats}",
            )
        numbers = cast(labels, default_int)
        picked = of_class(x, numbers, axis)
    else:
        if labels.shape != logits.shape:
            raise ShapeError(stage, f"the labels {labels.type} must have the shape of the logits {logits.type}.")
        weights = cast(labels, x.dtype)
        picked = sum(multiply(weights, x), axis)
        normalizer = multiply(normalizer, sum(weights, axis))
    losses = subtract(normalizer, picked)
    if label_smoothing:
        uniform = subtract(logsumexp(x, axis), mean(x, axis))
        losses = add(multiply(losses, 1 - label_smoothing), multiply(uniform, label_smoothing))
    return cast(_reduced(losses, reduction, stage), dtype)


def of_class(x: ArrayLike, numbers: ArrayLike, axis: int) -> Tensor:
    """What ``x`` holds along ``axis`` for each class number, int64 of the shape of ``x`` without ``axis``.

    A number out of range raises IndexRangeError when this is computed, one below 0 too: it is no index from the end.
    """
    known = where(less(numbers, 0), _NO_CLASS, numbers)
    return squeeze(take_along_axis(x, expand_dims(known, axis), axis), axis)


_NO_CLASS = 2**63 - 1  # out of the range of any axis
