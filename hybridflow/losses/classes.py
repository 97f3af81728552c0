"""Losses as objects, with Keras's names, arguments and defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.array.creation import arange, full_like
from hybridflow.array.elementwise import (
    abs,
    clip,
    equal,
    log,
    log1p,
    logaddexp,
    logical_and,
    logical_not,
    maximum,
    multiply,
    not_equal,
    power,
    square,
    where,
)
from hybridflow.array.linalg import matmul
from hybridflow.array.reductions import logsumexp, max as largest, mean, sum
from hybridflow.array.shapes import broadcast_to, expand_dims, matrix_transpose, reshape, squeeze
from hybridflow.compiler.ir import dtypes
from hybridflow.core import layer_context
from hybridflow.core.context import dialect
from hybridflow.core.promotion import to_dtype
from hybridflow.core.serialization import Configured, snake_case
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike
from hybridflow.eager.operands import as_tensor, cast, float_operand
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.nn.ctc import ctc_loss
from hybridflow.nn.functional import l2_normalize, log_softmax, sigmoid, softmax, softplus
from hybridflow.nn.losses import of_class
from hybridflow.tracing.replica_axes import over_replicas, replica_count

_EPSILON = 1e-7  # probabilities are at least that far from 0 and 1 before their logarithm is taken
_NONE = -1e30  # the logarithm of 0: finite, so that derivatives are numbers
_REDUCTIONS = "sum_over_batch_size", "mean", "sum", "mean_with_sample_weight", "none"


class Loss(Configured):
    """The base of all losses, and of your own: define ``call(y_true, y_pred)``, which returns the loss of each sample.

    ``reduction`` makes one of them: "sum_over_batch_size" or "mean", their mean; "sum"; "mean_with_sample_weight", the
    sum divided by that of the weights; or "none", which leaves them.  ``dtype``, a floating-point one or a policy, is
    what it is computed in.  Weights have the shape of the losses, or one that
    broadcasts when axes are put behind it.

    Args:
        name: the name in logs.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        dtype: the dtype of the loss.

    >>> class Largest(hf.losses.Loss):
    ...     def call(self, y_true, y_pred):
    ...         return hf.max(hf.abs(y_pred - y_true), axis=-1)
    >>> Largest()([[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0], [0.0, 4.0]])
    <Tensor f32[] cpu> 2.0
    """

    _takes_numbers = False  # integer labels stay what they are

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: DTypeLike | None = None
    ) -> None:
        self.reduction = reduction or "none"
        self.name = name or self._kind_name()
        self.dtype = None if dtype is None else _computed_in(dtype, self.name)
        if self.reduction not in _REDUCTIONS:
            raise ArgumentError(self.name, f"reduction is {reduction!r}; it must be one of {', '.join(_REDUCTIONS)}.")

    def _kind_name(self) -> str:
        """What a loss is called that was given no name."""
        return snake_case(type(self).__name__)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """For subclasses: the loss of each sample.

        Args:
            y_true: labels, [batch, ...].
            y_pred: predictions, [batch, ...].

        Returns:
            A tensor [batch, ...].

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define call(self, y_true, y_pred)")

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> Tensor:
        """The loss of predictions, in ``dtype`` or else float32 if these are narrower; labels become floats like
        them.  In a model's steps, samples and elements count where the mask of the predictions, if they have one, says
        that there is something."""
        predictions = float_operand(y_pred, self.name)
        # Keras has float32 for wider predictions, too
        usual = dtypes.float32 if dialect.is_tensorflow else dtypes.compute_dtype(predictions.dtype)
        predictions = cast(predictions, self.dtype or usual)
        labels = as_tensor(y_true, self.name)
        if not self._takes_numbers:
            labels = cast(labels, predictions.dtype)
        losses = self.call(labels, predictions)
        counted, mask = self._counted(labels, losses), layer_context.mask_of(y_pred)
        if mask is not None and mask.ndim <= losses.ndim:
            losses, counted = masked(losses, counted, mask)
        weights = None if sample_weight is None else cast(as_tensor(sample_weight, self.name), losses.dtype)
        if weights is not None:
            if weights.ndim == losses.ndim + 1 and weights.shape[-1] == 1:
                weights = squeeze(weights, axis=-1)
            while weights.ndim < losses.ndim:
                weights = expand_dims(weights, axis=-1)
            losses = losses * weights
        return self._reduced(losses, weights, counted)

    def _counted(self, labels: ArrayLike, losses: object) -> Any:
        """1 where a loss counts in means and 0 where not, of the shape and dtype of the losses; None if all do."""
        return None

    def _reduced(self, losses: Tensor, weights: Tensor | None, counted: Tensor | None) -> Any:
        if self.reduction == "none":
            return losses
        if self.reduction == "sum":
            return sum(losses)
        if self.reduction == "mean_with_sample_weight" and weights is not None:
            total = sum(broadcast_to(weights, losses.shape) * (1 if counted is None else counted))
            return sum(losses) / over_replicas(total, "sum")
        if counted is not None:
            return sum(losses) / maximum(over_replicas(sum(counted), "sum"), 1)
        count = replica_count()  # a replica of a strategy divides by what all have
        return mean(losses) if count == 1 else sum(losses) / (losses.size * count)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another loss like this; subclasses with arguments add theirs.

        Returns:
            A dict from names to values.
        """
        config = {"reduction": self.reduction, "name": self.name}
        if self.dtype is not None:
            config["dtype"] = self.dtype.name
        return config | self._own_arguments(Loss)


def _computed_in(dtype: DTypeLike, stage: str) -> Any:
    """The dtype that a loss computes in, of a float dtype or a policy, or the name of one."""
    dtype = getattr(dtype, "compute_dtype", dtype)
    result = to_dtype(dtype.removeprefix("mixed_") if isinstance(dtype, str) else dtype, stage)
    if not dtypes.is_float(result):
        raise ArgumentError(stage, f"dtype is {dtype!r}; it must be a floating-point one.")
    return result


class _Ready(Loss):
    """A loss without arguments of its own.  The order of arguments is Keras's, which differs from that of the base."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = None, dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(name, reduction, dtype)


class _OfEach(_Ready):
    """The mean over the last axis of a loss of each element."""

    def call(self, y_true: ArrayLike, y_pred: ArrayLike) -> Any:
        y_true, y_pred = alike(y_true, y_pred)
        return mean(self.of_each(y_true, y_pred), axis=-1)

    def of_each(self, y: ArrayLike, p: ArrayLike) -> Any:
        """For subclasses: the loss of each element.

        Args:
            y: labels.
            p: predictions, of the same shape and dtype.

        Returns:
            A tensor of that shape.

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define of_each(self, y, p)")


class MeanSquaredError(_OfEach):
    """Mean squared error: ``(y_pred - y_true)**2``.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.MeanSquaredError()([[0.0, 0.0]], [[1.0, -3.0]])
    <Tensor f32[] cpu> 5.0
    """

    def of_each(self, y: Any, p: Any) -> Tensor:
        return square(p - y)


class MeanAbsoluteError(_OfEach):
    """Mean absolute error: ``|y_pred - y_true|``.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.MeanAbsoluteError()([[0.0, 0.0]], [[1.0, -3.0]])
    <Tensor f32[] cpu> 2.0
    """

    def of_each(self, y: Any, p: Any) -> Tensor:
        return abs(p - y)


class MeanAbsolutePercentageError(_OfEach):
    """Mean absolute percentage error: ``100 * |y_pred - y_true| / |y_true|``; labels count as 1e-7 or more.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.MeanAbsolutePercentageError()([[2.0, 4.0]], [[1.0, 5.0]])
    <Tensor f32[] cpu> 37.5
    """

    def of_each(self, y: Any, p: Any) -> Tensor:
        return 100.0 * abs(p - y) / maximum(abs(y), _EPSILON)


class MeanSquaredLogarithmicError(_OfEach):
    """Mean squared logarithmic error: ``(log(1 + y_pred) - log(1 + y_true))**2``; both count as 1e-7 or more.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.MeanSquaredLogarithmicError()([[0.0, 3.0]], [[0.0, 3.0]])
    <Tensor f32[] cpu> 0.0
    """

    def of_each(self, y: ArrayLike, p: ArrayLike) -> Any:
        return square(log1p(maximum(p, _EPSILON)) - log1p(maximum(y, _EPSILON)))


class LogCosh(_OfEach):
    """Log-cosh loss: ``log(cosh(y_pred - y_true))``, without overflow.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.LogCosh()([[0.0, 0.0]], [[0.0, 0.0]])
    <Tensor f32[] cpu> 0.0
    """

    def of_each(self, y: Any, p: Any) -> Tensor:
        error = p - y
        return logaddexp(error, -error) - 0.6931471805599453


class Huber(_OfEach):
    """Huber loss: half the squared error up to an error of ``delta``, growing linearly beyond.

    Args:
        delta: where the loss goes from quadratic to linear.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.Huber()([[0.0, 0.0]], [[0.5, 3.0]])
    <Tensor f32[] cpu> 1.3125
    """

    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(reduction, name, dtype)
        self.delta = delta

    def _kind_name(self) -> str:
        return "huber_loss"

    def of_each(self, y: Any, p: Any) -> Tensor:
        error = p - y
        inner = clip(error, -self.delta, self.delta)  # as in ``nn.losses.huber``
        return multiply(square(inner), 0.5) + (abs(error) - abs(inner)) * self.delta


class Poisson(_OfEach):
    """Poisson loss: ``y_pred - y_true * log(y_pred)``.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.Poisson()([[0.0, 0.0]], [[1.0, 2.0]])
    <Tensor f32[] cpu> 1.5
    """

    def of_each(self, y: Any, p: Any) -> Tensor:
        return p - y * log(p + _EPSILON)


class Hinge(_OfEach):
    """Hinge loss: ``max(1 - y_true * y_pred, 0)``; labels of 0 count as -1.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.Hinge()([[1.0, 0.0]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 1.0
    """

    def of_each(self, y: ArrayLike, p: ArrayLike) -> Any:
        return maximum(1 - _signs(y) * p, 0)


class SquaredHinge(_OfEach):
    """Squared hinge loss: ``max(1 - y_true * y_pred, 0)**2``; labels of 0 count as -1.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.SquaredHinge()([[1.0, 0.0]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 1.25
    """

    def of_each(self, y: ArrayLike, p: ArrayLike) -> Any:
        return square(maximum(1 - _signs(y) * p, 0))


class KLDivergence(_Ready):
    """Kullback-Leibler divergence: ``sum(y_true * log(y_true / y_pred))`` over the last axis.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.KLDivergence()([[0.5, 0.5]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 0.0
    """

    def call(self, y_true: ArrayLike, y_pred: ArrayLike) -> Any:
        y, p = (clip(x, _EPSILON, 1) for x in alike(y_true, y_pred))
        return sum(y * log(y / p), axis=-1)


class CosineSimilarity(Loss):
    """Cosine similarity loss.

    Less the cosine of the angle between labels and predictions, along ``axis``: -1 where they point alike.

    Args:
        axis: the axis of classes, or along which the loss is formed.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.CosineSimilarity()([[0.0, 1.0]], [[0.0, 2.0]])
    <Tensor f32[] cpu> -1.0
    """

    def __init__(
        self,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, dtype)
        self.axis = axis

    def call(self, y_true: ArrayLike, y_pred: ArrayLike) -> Any:
        y, p = (l2_normalize(x, self.axis) for x in alike(y_true, y_pred))
        return -sum(y * p, axis=self.axis)


class _Crossentropy(Loss):
    """``from_logits``: predictions are logits, not probabilities."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, dtype)
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(self.name, f"label_smoothing is {label_smoothing!r}; it must be from 0 to 1.")
        self.from_logits, self.label_smoothing, self.axis = bool(from_logits), label_smoothing, axis


class BinaryCrossentropy(_Crossentropy):
    """Binary cross entropy.

    ``-y_true * log(p) - (1 - y_true) * log(1 - p)``, the mean over ``axis``; p are the predictions, or the sigmoid of
    logits.  ``label_smoothing`` draws labels that much towards 1/2.

    Args:
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: label smoothing: the share of each label that is spread over all classes, from 0 to 1.
        axis: the axis of classes, or along which the loss is formed.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.BinaryCrossentropy(from_logits=True)([[1.0, 0.0]], [[2.0, 2.0]])
    <Tensor f32[] cpu> 1.1269281
    """

    def call(self, y_true: ArrayLike, y_pred: ArrayLike) -> Any:
        y, p = alike(y_true, y_pred)
        _check_classes(self, y, p)
        if self.label_smoothing:
            y = y * (1 - self.label_smoothing) + 0.5 * self.label_smoothing
        if self.from_logits:
            return mean(logaddexp(p, 0.0) - p * y, axis=self.axis)
        p = clip(p, _EPSILON, 1 - _EPSILON)
        return mean(-(y * log(p) + (1 - y) * log(1 - p)), axis=self.axis)


class CategoricalCrossentropy(_Crossentropy):
    """Categorical cross entropy: ``-sum(y_true * log(p))`` over ``axis``, the classes; p are the predictions, scaled
    to the sum 1, or the softmax of logits.  ``label_smoothing`` shares that much of labels evenly over all classes.

    Args:
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: label smoothing: the share of each label that is spread over all classes, from 0 to 1.
        axis: the axis of classes, or along which the loss is formed.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 0.6931472
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        _check_classes(self, y_true, y_pred)
        if self.label_smoothing:
            share = self.label_smoothing / y_pred.shape[self.axis]
            y_true = y_true * (1 - self.label_smoothing) + share
        return -sum(y_true * _log_probabilities(y_pred, self.from_logits, self.axis), axis=self.axis)


class SparseCategoricalCrossentropy(Loss):
    """Categorical cross entropy of labels that are numbers.

    ``-log(p)`` of the class that is right, a number; p are the predictions, scaled to the sum 1, or the softmax of
    logits, along ``axis``.  Where the label is ``ignore_class`` the loss is 0, and does not count in a mean.

    A label out of range raises IndexRangeError when the loss is computed.

    Args:
        from_logits: whether predictions are logits rather than probabilities.
        ignore_class: a class whose elements do not count.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        axis: the axis of classes, or along which the loss is formed.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.SparseCategoricalCrossentropy()([1], [[0.5, 0.5]])
    <Tensor f32[] cpu> 0.6931472
    """

    _takes_numbers = True

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: int = -1,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, dtype)
        self.from_logits, self.ignore_class, self.axis = bool(from_logits), ignore_class, axis

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        y = class_numbers(y_true, y_pred.ndim - 1)
        known = None if self.ignore_class is None else not_equal(y, self.ignore_class)
        of_all = _log_probabilities(y_pred, self.from_logits, self.axis)
        losses = -of_class(of_all, y if known is None else where(known, y, 0), self.axis)
        return losses if known is None else where(known, losses, 0)

    def _counted(self, labels: ArrayLike, losses: Any) -> Any:
        if self.ignore_class is None:
            return None
        return cast(not_equal(class_numbers(labels, losses.ndim), self.ignore_class), losses.dtype)


def _check_classes(loss: _Crossentropy, y: Tensor, p: Tensor) -> None:
    """Raises ShapeError for labels that broadcasting would bring to the predictions: class numbers, most often."""
    if y.ndim != p.ndim or y.shape[loss.axis] != p.shape[loss.axis]:
        raise ShapeError(
            loss.name,
            f"the labels are {y.type}, the predictions {p.type}; they must have the same shape. "
            "For class numbers take SparseCategoricalCrossentropy.",
        )


def _log_probabilities(p: ArrayLike, from_logits: bool, axis: int) -> Any:
    if from_logits:
        return log_softmax(p, axis)
    return log(clip(p / sum(p, axis=axis, keepdims=True), _EPSILON, 1 - _EPSILON))


def masked(losses: Any, counted: Tensor | None, mask: Any) -> tuple[Any, Any]:
    """Losses that are 0 where the mask of the predictions says that there is nothing, and which of them count."""
    while mask.ndim < losses.ndim:
        mask = expand_dims(mask, axis=-1)
    mask = broadcast_to(mask, losses.shape)
    there = cast(mask, losses.dtype)
    return where(mask, losses, 0), there if counted is None else counted * there


def class_numbers(y: Any, axes: int) -> Any:
    """Labels as int64, without a last axis of extent 1 where they have one too many."""
    y = cast(y, dtypes.int64)
    return squeeze(y, axis=-1) if y.ndim == axes + 1 and y.shape[-1] == 1 else y


def alike(y: Any, p: Any) -> tuple[Any, Any]:
    """Labels and predictions of one number of axes: a last one of extent 1 is taken away, or comes to the other."""
    if y.ndim == p.ndim + 1 and y.shape[-1] == 1:
        return squeeze(y, axis=-1), p
    if p.ndim == y.ndim + 1 and p.shape[-1] == 1:
        return expand_dims(y, axis=-1), p
    return y, p


def _signs(y: ArrayLike) -> Any:
    """Labels of 0 and 1 as -1 and 1; others stay."""
    return where(y == 0, -1, y)


class LossFunctionWrapper(Loss):
    """A function of labels and predictions as a loss, with keyword arguments of its own.

    Args:
        fn: a function of labels and predictions.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.
        **kwargs: keyword arguments, which are passed on.

    >>> cubed = hf.losses.LossFunctionWrapper(lambda y, p, power: hf.abs(p - y) ** power, power=3)
    >>> cubed([0.0, 0.0], [1.0, 2.0])
    <Tensor f32[] cpu> 4.5
    """

    _takes_numbers = True

    def __init__(
        self,
        fn: Callable[..., Any],
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn, self._fn_kwargs = fn, kwargs

    def call(self, y_true: ArrayLike, y_pred: ArrayLike) -> Any:
        return as_tensor(self.fn(*alike(y_true, y_pred), **self._fn_kwargs), self.name)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"fn": self.fn} | self._fn_kwargs


class CategoricalHinge(_Ready):
    """Categorical hinge loss of one-hot labels.

    It is ``max(1 + the largest prediction for a wrong class - that for the right one, 0)``; predictions for wrong
    classes count as 0 or more.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.CategoricalHinge()([[0.0, 1.0]], [[0.75, 0.5]])
    <Tensor f32[] cpu> 1.25
    """

    def call(self, y_true: ArrayLike, y_pred: ArrayLike) -> Any:
        y, p = alike(y_true, y_pred)
        return maximum(largest((1 - y) * p, axis=-1) - sum(y * p, axis=-1) + 1, 0)


class BinaryFocalCrossentropy(_Crossentropy):
    """Binary focal loss: ``BinaryCrossentropy`` times ``(1 - p)**gamma``, where p is the probability of what is right.

    So clear cases count less. With ``apply_class_balancing`` it is also times ``alpha`` for labels of 1, and ``1 -
    alpha`` for those of 0.

    Source: Lin and others, "Focal Loss for Dense Object Detection", 2017.

    Args:
        apply_class_balancing: whether classes are weighed by ``alpha``.
        alpha: the weight of the one class; 1 less it is that of the other.
        gamma: how much less easy examples count.
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: label smoothing: the share of each label that is spread over all classes, from 0 to 1.
        axis: the axis of classes, or along which the loss is formed.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.BinaryFocalCrossentropy()([[1.0, 0.0]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 0.1732868
    """

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(from_logits, label_smoothing, axis, reduction, name, dtype)
        self.apply_class_balancing, self.alpha, self.gamma = bool(apply_class_balancing), alpha, gamma

    def call(self, y_true: ArrayLike, y_pred: ArrayLike) -> Any:
        y, p = alike(y_true, y_pred)
        _check_classes(self, y, p)
        if self.label_smoothing:
            y = y * (1 - self.label_smoothing) + 0.5 * self.label_smoothing
        p = clip(sigmoid(p) if self.from_logits else p, _EPSILON, 1 - _EPSILON)
        entropy = -(y * log(p) + (1 - y) * log(1 - p))
        focal = power(1 - (y * p + (1 - y) * (1 - p)), self.gamma) * entropy
        if self.apply_class_balancing:
            focal = focal * (y * self.alpha + (1 - y) * (1 - self.alpha))
        return mean(focal, axis=self.axis)


class CategoricalFocalCrossentropy(_Crossentropy):
    """Categorical focal loss: ``CategoricalCrossentropy`` whose parts are times ``alpha * (1 - p)**gamma``, so that
    clear cases count less.

    Source: Lin and others, "Focal Loss for Dense Object Detection", 2017.

    Args:
        alpha: the weight of the one class; 1 less it is that of the other.
        gamma: how much less easy examples count.
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: label smoothing: the share of each label that is spread over all classes, from 0 to 1.
        axis: the axis of classes, or along which the loss is formed.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.CategoricalFocalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 0.0433217
    """

    def __init__(
        self,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(from_logits, label_smoothing, axis, reduction, name, dtype)
        self.alpha, self.gamma = alpha, gamma

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        _check_classes(self, y_true, y_pred)
        if self.label_smoothing:
            y_true = y_true * (1 - self.label_smoothing) + self.label_smoothing / y_pred.shape[self.axis]
        p = softmax(y_pred, self.axis) if self.from_logits else y_pred / sum(y_pred, axis=self.axis, keepdims=True)
        p = clip(p, _EPSILON, 1 - _EPSILON)
        return -sum(y_true * log(p) * (power(1 - p, self.gamma) * self.alpha), axis=self.axis)


class CategoricalGeneralizedCrossEntropy(Loss):
    """Generalized cross entropy: ``(1 - p**q) / q``, where p is the probability of the right class, a number.

    It lies between the cross entropy, which q near 0 gives, and the mean absolute error, which bears with wrong labels,
    of q = 1.

    Source: Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels",
    2018. A label out of range raises IndexRangeError when the loss is computed.

    Args:
        q: from 0, as the crossentropy, to 1, as the absolute error.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.CategoricalGeneralizedCrossEntropy()([1], [[0.75, 0.25]])
    <Tensor f32[] cpu> 1.0
    """

    _takes_numbers = True

    def __init__(
        self,
        q: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, dtype)
        if not 0 < q < 1:
            raise ArgumentError(self.name, f"q is {q!r}; it must be above 0 and below 1.")
        self.q = q

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        numbers = cast(y_true, dtypes.int64)
        if numbers.ndim == y_pred.ndim:
            numbers = squeeze(numbers, axis=-1)
        return (1 - power(of_class(y_pred, numbers, -1), self.q)) / self.q


class Tversky(Loss):
    """Tversky loss: 1 less the Tversky index, over ``axis``, or over all.

    The index is what labels and predictions share, divided by a sum (as Keras computes it). The sum is that plus
    ``alpha`` times what is only labelled and ``beta`` times what is only predicted.

    Source: Salehi and others, "Tversky loss function for image segmentation", 2017.

    Args:
        alpha: what false positives weigh.
        beta: what false negatives weigh.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        axis: the axis of classes, or along which the loss is formed.
        dtype: the dtype of the loss.

    >>> round(hf.losses.Tversky()([[1.0, 0.0]], [[0.5, 0.5]]).item(), 4)
    0.5
    """

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        axis: AxisLike = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, dtype)
        self.alpha, self.beta, self.axis = alpha, beta, axis

    def call(self, y_true: ArrayLike, y_pred: ArrayLike) -> Any:
        y, p = alike(y_true, y_pred)
        shared = sum(y * p, axis=self.axis)
        more, less = sum((1 - y) * p, axis=self.axis), sum(y * (1 - p), axis=self.axis)
        return 1 - (shared + _EPSILON) / (shared + less * self.alpha + more * self.beta + _EPSILON)


class Dice(Loss):
    """Dice loss: 1 less twice what labels and predictions share, divided by their sums; over ``axis``, or over all.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        axis: the axis of classes, or along which the loss is formed.
        dtype: the dtype of the loss.

    >>> round(hf.losses.Dice()([[1.0, 0.0]], [[0.5, 0.5]]).item(), 4)
    0.5
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        axis: AxisLike = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, dtype)
        self.axis = axis

    def call(self, y_true: ArrayLike, y_pred: ArrayLike) -> Any:
        y, p = alike(y_true, y_pred)
        shared = sum(y * p, axis=self.axis)
        return 1 - (2 * shared + _EPSILON) / (sum(y, axis=self.axis) + sum(p, axis=self.axis) + _EPSILON)


class CTC(_Ready):
    """CTC loss (connectionist temporal classification).

    ``hf.nn.ctc_loss`` of logits (batch, steps, classes), all of whose steps count, and labels (batch, places) padded
    with 0, which is the blank and no label.

    Args:
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> round(hf.losses.CTC()([[1, 0]], hf.zeros((1, 2, 2))).item(), 4)  # 3 of 4 ways: 1-, -1, 11
    0.2877
    """

    _takes_numbers = True

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if y_true.ndim != 2 or y_pred.ndim != 3:
            raise ShapeError(
                self.name,
                f"labels are {y_true.type} and logits {y_pred.type}; they must be (batch, places) and "
                "(batch, steps, classes).",
            )
        numbers = cast(y_true, dtypes.int64)
        places = sum(cast(not_equal(numbers, 0), dtypes.int64), axis=-1)
        steps = full_like(places, y_pred.shape[1])
        return ctc_loss(numbers, y_pred, places, steps, logits_time_major=False)


class Circle(Loss):
    """Circle loss: how far embeddings of one class lie apart and of several together.

    Predictions are vectors of length 1, a row for each sample; labels are class numbers. The distance of two samples of
    a batch is ``1 - cosine``. Those of one class should be below ``margin``, the others above ``1 - margin``; ``gamma``
    scales them. The distance of a sample from itself counts unless ``remove_diagonal``. Samples whose loss is 0 do not
    count in means.

    Source: Sun and others, "Circle Loss: A Unified Perspective of Pair Similarity Optimization", 2020.

    Args:
        gamma: the scale of similarities.
        margin: how far apart the similarities should be.
        remove_diagonal: whether a sample is compared with itself.
        reduction: ``"sum_over_batch_size"``, ``"sum"``, ``"mean"``, ``"mean_with_sample_weight"`` or ``"none"``.
        name: the name in logs.
        dtype: the dtype of the loss.

    >>> hf.losses.Circle()([0, 0, 1], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).shape
    ()
    """

    _takes_numbers = True

    def __init__(
        self,
        gamma: float = 80.0,
        margin: float = 0.4,
        remove_diagonal: bool = True,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name, reduction, dtype)
        self.gamma, self.margin, self.remove_diagonal = gamma, margin, remove_diagonal

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        count = y_true.size
        if y_pred.ndim != 2 or y_pred.shape[0] != count:
            raise ShapeError(self.name, f"labels {y_true.type} and embeddings {y_pred.type}: one row for each label.")
        numbers = reshape(cast(y_true, dtypes.int64), (count,))
        same = equal(numbers[:, None], numbers)
        itself = equal(arange(count)[:, None], arange(count))
        pairs = logical_and(same, logical_not(itself)) if self.remove_diagonal else same
        distances = maximum(1 - matmul(y_pred, matrix_transpose(y_pred)), 0)
        near = maximum(distances + self.margin, 0) * (distances - self.margin)
        far = maximum(1 + self.margin - distances, 0) * (1 - self.margin - distances)
        return softplus(self._over(near, pairs) + self._over(far, logical_not(same)))

    def _over(self, similarities: Tensor, chosen: ArrayLike) -> Any:
        """``logsumexp`` of those of each row that are chosen; far below 0 where none is."""
        return logsumexp(where(chosen, similarities * self.gamma, _NONE), axis=1)

    def _counted(self, labels: ArrayLike, losses: Any) -> Any:
        return cast(losses > 0, losses.dtype)
