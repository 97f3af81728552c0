"""Errors of predicted numbers, and losses of predicted probabilities, as metrics."""

from __future__ import annotations

from typing import Any

from hybridflow.array.creation import ones_like
from hybridflow.array.elementwise import divide, multiply, sqrt, square, subtract
from hybridflow.array.reductions import mean, std, sum, var
from hybridflow.array.shapes import expand_dims
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.losses import classes as losses
from hybridflow.losses.classes import alike
from hybridflow.metrics.metric import Averaging, Metric, OfBatches, one_of, ratio
from hybridflow.nn.functional import l2_normalize


class _OfLoss(Averaging):
    """The mean of a loss over all samples; the arguments between are the loss's."""

    def __init__(self, loss: losses.Loss, name: str | None, dtype: DTypeLike | None) -> None:
        super().__init__(name, dtype)
        self._loss = loss

    def update_state(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take a batch into account.

        Args:
            y_true: labels, [batch, ...].
            y_pred: predictions, [batch, ...].
            sample_weight: a weight for each sample, or None.
        """
        values = self._loss(y_true, y_pred)
        if sample_weight is not None:
            sample_weight = self._weights(as_tensor(y_true, self.name), values, sample_weight)
        self._take(values, self._there(y_pred, values, sample_weight))

    def _weights(self, labels: ArrayLike, values: ArrayLike, sample_weight: ArrayLike | None) -> Any:
        """The given weights, 0 where a label is ignored; without weights it counts in the mean, as in Keras."""
        counted = self._loss._counted(labels, values)
        if counted is None:
            return sample_weight
        weights = as_tensor(sample_weight, self.name)
        while weights.ndim < counted.ndim:
            weights = expand_dims(weights, axis=-1)
        return cast(weights, counted.dtype) * counted

    def get_config(self) -> dict[str, Any]:
        config = {name: value for name, value in self._loss.get_config().items() if name not in ("reduction", "name")}
        return super().get_config() | config


class MeanSquaredError(_OfLoss):
    """The mean of ``(y_pred - y_true)**2``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.MeanSquaredError()([[0.0, 0.0]], [[1.0, -3.0]])
    <Tensor f32[] cpu> 5.0
    """

    def __init__(self, name: str | None = "mean_squared_error", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.MeanSquaredError("none"), name, dtype)


class RootMeanSquaredError(OfBatches):
    """The square root of the mean of ``(y_pred - y_true)**2``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.RootMeanSquaredError()([[0.0, 0.0]], [[1.0, -7.0]])
    <Tensor f32[] cpu> 5.0
    """

    def __init__(self, name: str | None = "root_mean_squared_error", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        y, p = alike(cast(y_true, self._dtype), cast(y_pred, self._dtype))
        return square(p - y)

    def result(self) -> Tensor:
        return sqrt(super().result())


class MeanAbsoluteError(_OfLoss):
    """The mean of ``|y_pred - y_true|``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.MeanAbsoluteError()([[0.0, 0.0]], [[1.0, -3.0]])
    <Tensor f32[] cpu> 2.0
    """

    def __init__(self, name: str | None = "mean_absolute_error", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.MeanAbsoluteError("none"), name, dtype)


class MeanAbsolutePercentageError(_OfLoss):
    """The mean of ``100 * |y_pred - y_true| / |y_true|``; labels count as 1e-7 or more.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.MeanAbsolutePercentageError()([[2.0, 4.0]], [[1.0, 5.0]])
    <Tensor f32[] cpu> 37.5
    """

    def __init__(self, name: str | None = "mean_absolute_percentage_error", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.MeanAbsolutePercentageError("none"), name, dtype)


class MeanSquaredLogarithmicError(_OfLoss):
    """The mean of ``(log(1 + y_pred) - log(1 + y_true))**2``; both count as 1e-7 or more.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.MeanSquaredLogarithmicError()([[0.0, 3.0]], [[0.0, 3.0]])
    <Tensor f32[] cpu> 0.0
    """

    def __init__(self, name: str | None = "mean_squared_logarithmic_error", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.MeanSquaredLogarithmicError("none"), name, dtype)


class CosineSimilarity(OfBatches):
    """The mean cosine of the angle between labels and predictions along ``axis``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.CosineSimilarity()([[0.0, 1.0]], [[0.0, 2.0]])
    <Tensor f32[] cpu> 1.0
    """

    def __init__(self, name: str | None = "cosine_similarity", dtype: DTypeLike | None = None, axis: int = -1) -> None:
        super().__init__(name, dtype)
        self.axis = axis

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        y, p = alike(cast(y_true, self._dtype), cast(y_pred, self._dtype))
        return sum(l2_normalize(y, self.axis) * l2_normalize(p, self.axis), axis=self.axis)


class LogCoshError(_OfLoss):
    """The mean of ``log(cosh(y_pred - y_true))``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.LogCoshError()([[0.0, 0.0]], [[0.0, 0.0]])
    <Tensor f32[] cpu> 0.0
    """

    def __init__(self, name: str | None = "logcosh", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.LogCosh("none"), name, dtype)


class Hinge(_OfLoss):
    """The mean of ``max(1 - y_true * y_pred, 0)``; labels of 0 count as -1.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.Hinge()([[1.0, 0.0]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 1.0
    """

    def __init__(self, name: str | None = "hinge", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.Hinge("none"), name, dtype)


class SquaredHinge(_OfLoss):
    """The mean of ``max(1 - y_true * y_pred, 0)**2``; labels of 0 count as -1.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.SquaredHinge()([[1.0, 0.0]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 1.25
    """

    def __init__(self, name: str | None = "squared_hinge", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.SquaredHinge("none"), name, dtype)


class KLDivergence(_OfLoss):
    """The mean of ``sum(y_true * log(y_true / y_pred))``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.KLDivergence()([[0.5, 0.5]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 0.0
    """

    def __init__(self, name: str | None = "kl_divergence", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.KLDivergence("none"), name, dtype)


class Poisson(_OfLoss):
    """The mean of ``y_pred - y_true * log(y_pred)``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.Poisson()([[0.0, 0.0]], [[1.0, 2.0]])
    <Tensor f32[] cpu> 1.5
    """

    def __init__(self, name: str | None = "poisson", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.Poisson("none"), name, dtype)


class BinaryCrossentropy(_OfLoss):
    """The mean binary cross entropy, see ``hf.losses.BinaryCrossentropy``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: label smoothing: the share of each label that is spread over all classes, from 0 to 1.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.BinaryCrossentropy()([[1.0, 0.0]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 0.6931472
    """

    def __init__(
        self,
        name: str | None = "binary_crossentropy",
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> None:
        super().__init__(losses.BinaryCrossentropy(from_logits, label_smoothing, axis, "none"), name, dtype)


class CategoricalCrossentropy(_OfLoss):
    """The mean cross entropy of one-hot labels, see ``hf.losses.CategoricalCrossentropy``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.
        from_logits: whether predictions are logits rather than probabilities.
        label_smoothing: label smoothing: the share of each label that is spread over all classes, from 0 to 1.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]])
    <Tensor f32[] cpu> 0.6931472
    """

    def __init__(
        self,
        name: str | None = "categorical_crossentropy",
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> None:
        super().__init__(losses.CategoricalCrossentropy(from_logits, label_smoothing, axis, "none"), name, dtype)


class SparseCategoricalCrossentropy(_OfLoss):
    """The mean cross entropy of labels that are numbers, see ``hf.losses.SparseCategoricalCrossentropy``.

    The loss of ``ignore_class`` is 0; where there are weights of samples, theirs do not count.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.
        from_logits: whether predictions are logits rather than probabilities.
        ignore_class: a class whose elements do not count.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.SparseCategoricalCrossentropy()([1], [[0.5, 0.5]])
    <Tensor f32[] cpu> 0.6931472
    """

    def __init__(
        self,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__(losses.SparseCategoricalCrossentropy(from_logits, ignore_class, "none", axis), name, dtype)


class R2Score(Metric):
    """The share of the labels' variance that predictions explain: 1 if they are right, 0 if no better than the mean.

    Labels and predictions have the shape (samples, outputs).  ``class_aggregation`` makes one number of those of the
    outputs: "uniform_average"; "variance_weighted_average"; None leaves them.  ``num_regressors`` above 0 gives the
    adjusted score.

    Args:
        class_aggregation: how outputs are put together: ``"uniform_average"``, ``"variance_weighted_average"`` or
            None.
        num_regressors: how many independent variables there are, for the adjusted score.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.R2Score()([[1.0], [4.0], [3.0]], [[2.0], [4.0], [4.0]])
    <Tensor f32[] cpu> 0.5714286
    """

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str | None = "r2_score",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(dtype, name)
        if class_aggregation is not None:
            one_of("class_aggregation", class_aggregation, _AGGREGATIONS, self.name)
        if num_regressors < 0:
            raise ArgumentError(self.name, f"num_regressors is {num_regressors}; it must be 0 or more.")
        self.class_aggregation, self.num_regressors = class_aggregation, num_regressors
        self._rows = self.add_variable(dtype=dtypes.float64, name="rows")
        self._sums: list[Any] = []

    def update_state(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take a batch into account.

        Args:
            y_true: labels, [batch, outputs].
            y_pred: predictions, [batch, outputs].
            sample_weight: a weight for each sample, or None.

        Raises:
            ShapeError: where labels and predictions have other axes.
        """
        y, p = alike(
            cast(as_tensor(y_true, self.name), dtypes.float64), cast(as_tensor(y_pred, self.name), dtypes.float64)
        )
        if y.ndim != 2 or y.shape != p.shape:
            raise ShapeError(self.name, f"labels {y.type} and predictions {p.type} must be (samples, outputs) both.")
        if not self._sums:
            outputs = y.shape[1:]
            self._sums = [self.add_variable(outputs, dtype=dtypes.float64) for _ in range(4)]
        weights = cast(as_tensor(1.0 if sample_weight is None else sample_weight, self.name), dtypes.float64)
        if weights.ndim == 1:
            weights = weights[:, None]
        ones = ones_like(y) * weights
        for kept, term in zip(self._sums, (y * weights, square(y) * weights, square(p - y) * weights, ones)):
            kept.assign_add(sum(term, axis=0))
        self._rows.assign_add(sum(ones_like(y[:, 0])))

    def result(self) -> Tensor:
        if not self._sums:
            return cast(as_tensor(0.0, self.name), self._dtype)
        values, squares, errors, count = self._sums
        spread = subtract(squares, ratio(square(as_tensor(values, self.name)), count))
        scores = 1.0 - ratio(as_tensor(errors, self.name), spread)
        if self.class_aggregation == "uniform_average":
            scores = mean(scores)
        elif self.class_aggregation is not None:
            scores = ratio(sum(scores * spread), sum(spread))
        if self.num_regressors:
            rows = self._rows
            scores = 1.0 - divide(multiply(1.0 - scores, rows - 1.0), rows - self.num_regressors - 1.0)
        return cast(scores, self._dtype)


_AGGREGATIONS = "uniform_average", "variance_weighted_average"


class CategoricalHinge(_OfLoss):
    """The mean of ``max(0, 1 + largest of the others - the right one's)``, of scores and one-hot labels.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.CategoricalHinge()([[0.0, 1.0]], [[0.5, 0.25]])
    <Tensor f32[] cpu> 1.25
    """

    def __init__(self, name: str | None = "categorical_hinge", dtype: DTypeLike | None = None) -> None:
        super().__init__(losses.CategoricalHinge("none"), name, dtype)


class PearsonCorrelation(OfBatches):
    """The mean of Pearson's correlation of labels and predictions along ``axis``.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.PearsonCorrelation()([[0.0, 1.0, 2.0]], [[1.0, 3.0, 5.0]]).round(5)
    <Tensor f32[] cpu> 1.0
    """

    def __init__(
        self, name: str | None = "pearson_correlation", dtype: DTypeLike | None = None, axis: int = -1
    ) -> None:
        super().__init__(name, dtype)
        self.axis = axis

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        y, p = (_centred(x, self.axis) for x in alike(cast(y_true, self._dtype), cast(y_pred, self._dtype)))
        y, p = (x / std(x, axis=self.axis, keepdims=True) for x in (y, p))
        return mean(y * p, axis=self.axis)


class ConcordanceCorrelation(OfBatches):
    """The mean of Lin's concordance correlation of labels and predictions along ``axis``: how near they are to equal.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.ConcordanceCorrelation()([[0.0, 1.0, 2.0]], [[0.0, 1.0, 2.0]]).round(5)
    <Tensor f32[] cpu> 1.0
    """

    def __init__(
        self, name: str | None = "concordance_correlation", dtype: DTypeLike | None = None, axis: int = -1
    ) -> None:
        super().__init__(name, dtype)
        self.axis = axis

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        y, p = alike(cast(y_true, self._dtype), cast(y_pred, self._dtype))
        shift = mean(y, axis=self.axis, keepdims=True) - mean(p, axis=self.axis, keepdims=True)
        spread = var(y, axis=self.axis, keepdims=True) + var(p, axis=self.axis, keepdims=True) + square(shift)
        together = _centred(y, self.axis) * _centred(p, self.axis)
        return mean(2 * together / (spread + 1e-7), axis=self.axis)


def _centred(x: Tensor, axis: int) -> Tensor:
    return x - mean(x, axis=axis, keepdims=True)
