"""Right and wrong decisions by thresholds, and what is made of their numbers.

A prediction above the threshold is positive.  Sources: for the area under a curve of precision over recall
J. Davis and M. Goadrich, "The relationship between precision-recall and ROC curves", ICML 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.array.elementwise import (
    abs,
    astype,
    greater,
    log,
    logical_and,
    maximum,
    minimum,
    not_equal,
    sigmoid,
    where,
)
from hybridflow.array.reductions import max, mean, sum
from hybridflow.array.shapes import broadcast_to, reshape
from hybridflow.array.sorting import top_k as largest
from hybridflow.compiler.ir import dtypes
from hybridflow.core.allocation_limit import take_room
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.losses.classes import alike
from hybridflow.metrics.metric import Metric, one_of, ratio

_EPSILON = 1e-7


class Counts(NamedTuple):
    """Weights of true positives, false positives, true negatives and false negatives, for each threshold."""

    tp: Any
    fp: Any
    tn: Any
    fn: Any


_NAMES = {"tp": "true_positives", "fp": "false_positives", "tn": "true_negatives", "fn": "false_negatives"}


class _Decisions(Metric):
    """What counts decisions at thresholds.  ``_kept`` names the counts that the state is made of."""

    _kept: tuple[str, ...] = Counts._fields

    def __init__(self, name: str | None, dtype: DTypeLike | None) -> None:
        super().__init__(dtype, name)
        self._thresholds: Any = None
        self._counts: dict[str, Any] = {}
        self.top_k: int | None = None
        self.class_id: int | None = None

    def _begin(self, thresholds: Sequence[float], outputs: tuple[int, ...] = ()) -> None:
        """Make the state: a count for each threshold, and each output of those that are kept apart."""
        self._thresholds = asarray(np.array(thresholds, np.float32))
        shape = (len(thresholds), *outputs)
        self._counts = {kind: self.add_variable(shape, dtype=dtypes.float64, name=_NAMES[kind]) for kind in self._kept}

    @property
    def true_positives(self) -> Any:
        """The variable that counts them, where the metric does; so for the other three."""
        return self._counts.get("tp")

    @property
    def false_positives(self) -> Any:
        return self._counts.get("fp")

    @property
    def true_negatives(self) -> Any:
        return self._counts.get("tn")

    @property
    def false_negatives(self) -> Any:
        return self._counts.get("fn")

    def update_state(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take a batch into account.

        Args:
            y_true: labels, [batch, ...], which are 0 or 1.
            y_pred: predictions, [batch, ...], from 0 to 1.
            sample_weight: a weight for each sample, or None.

        Raises:
            ShapeError: where labels and predictions differ in shape.
        """
        weights = self._there(y_pred, y_pred, sample_weight)
        labels, predictions, weights = self._prepared(y_true, y_pred, weights)
        counts = _counted(labels, predictions, weights, self._thresholds)
        for kind, variable in self._counts.items():
            variable.assign_add(getattr(counts, kind))

    def _prepared(
        self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Labels as bools, predictions and weights, all of one shape with one axis."""
        predictions = cast(as_tensor(y_pred, self.name), dtypes.float32)
        labels, predictions = alike(as_tensor(y_true, self.name), predictions)
        if labels.shape != predictions.shape:
            raise ShapeError(self.name, f"labels {labels.type} and predictions {predictions.type} differ in shape.")
        if self.top_k is not None:
            least = largest(predictions, self.top_k)[0][..., -1:]
            predictions = where(predictions < least, -np.inf, predictions)
        if self.class_id is not None:
            labels, predictions = labels[..., self.class_id], predictions[..., self.class_id]
        weights = as_tensor(1.0 if sample_weight is None else sample_weight, self.name)
        weights = cast(weights, dtypes.float64)
        if weights.ndim == labels.ndim + 1 and weights.shape[-1] == 1:
            weights = weights[..., 0]
        while 0 < weights.ndim < labels.ndim:
            weights = weights[..., None]
        weights = broadcast_to(weights, labels.shape)
        return reshape(not_equal(labels, 0), (-1,)), reshape(predictions, (-1,)), reshape(weights, (-1,))

    def _now(self) -> Counts:
        """The counts up to now, None for those that are not kept."""
        counts = {kind: as_tensor(variable, self.name) for kind, variable in self._counts.items()}
        return Counts(*(counts.get(kind) for kind in Counts._fields))


def _counted(labels: Tensor, predictions: Tensor, weights: Tensor, thresholds: Tensor) -> Counts:
    """The counts along the first axis of labels, for each threshold."""
    above = greater(predictions[None], reshape(thresholds, (-1,) + (1,) * predictions.ndim))
    yes, no = where(labels, weights, 0.0), where(labels, 0.0, weights)
    tp, fp = sum(where(above, yes[None], 0.0), axis=1), sum(where(above, no[None], 0.0), axis=1)
    return Counts(tp, fp, sum(no, axis=0) - fp, sum(yes, axis=0) - tp)


class _AtThresholds(_Decisions):
    """``thresholds``: a number or a list of them, 0.5 unless given; the result has one element for each of a list."""

    def __init__(
        self, thresholds: float | Sequence[float] | None = None, name: str | None = None, dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(name, dtype)
        self.thresholds = thresholds
        self._open(0.5)

    def _open(self, usual: float) -> None:
        thresholds = [usual] if self.thresholds is None else np.atleast_1d(self.thresholds).tolist()
        wrong = [t for t in thresholds if not (t is not None and 0 <= t <= 1) and self.thresholds is not None]
        if wrong:
            raise ArgumentError(self.name, f"thresholds are {self.thresholds!r}; each must be from 0 to 1.")
        self._begin(thresholds)

    def _shaped(self, result: Tensor) -> Tensor:
        several = self.thresholds is not None and np.ndim(self.thresholds) > 0
        return cast(result if several else result[0], self._dtype)


class TruePositives(_AtThresholds):
    """The number of positives that are predicted so.

    Args:
        thresholds: the prediction from which an element counts as positive; 0.5 by default.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.TruePositives()([0, 1, 1, 1], [1, 0, 1, 1])
    <Tensor f32[] cpu> 2.0
    """

    _kept = ("tp",)

    def result(self) -> Tensor:
        return self._shaped(self._now().tp)


class FalsePositives(_AtThresholds):
    """The number of negatives that are predicted to be positive.

    Args:
        thresholds: the prediction from which an element counts as positive; 0.5 by default.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.FalsePositives()([0, 1, 0, 0], [0, 0, 1, 1])
    <Tensor f32[] cpu> 2.0
    """

    _kept = ("fp",)

    def result(self) -> Tensor:
        return self._shaped(self._now().fp)


class TrueNegatives(_AtThresholds):
    """The number of negatives that are predicted so.

    Args:
        thresholds: the prediction from which an element counts as positive; 0.5 by default.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.TrueNegatives()([0, 1, 0, 0], [1, 1, 0, 0])
    <Tensor f32[] cpu> 2.0
    """

    _kept = ("tn",)

    def result(self) -> Tensor:
        return self._shaped(self._now().tn)


class FalseNegatives(_AtThresholds):
    """The number of positives that are predicted to be negative.

    Args:
        thresholds: the prediction from which an element counts as positive; 0.5 by default.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.FalseNegatives()([0, 1, 1, 1], [0, 1, 0, 0])
    <Tensor f32[] cpu> 2.0
    """

    _kept = ("fn",)

    def result(self) -> Tensor:
        return self._shaped(self._now().fn)


class _OfChosen(_AtThresholds):
    """``top_k``: only that many predictions of the last axis may be positive, those that are largest, whatever the
    threshold if none is given.  ``class_id``: only that element of the last axis counts."""

    def __init__(
        self,
        thresholds: float | Sequence[float] | None = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        _Decisions.__init__(self, name, dtype)
        if top_k is not None and top_k < 1:
            raise ArgumentError(self.name, f"top_k is {top_k!r}; it must be 1 or more.")
        self.thresholds, self.top_k, self.class_id = thresholds, top_k, class_id
        self._open(0.5 if top_k is None else float(np.finfo(np.float32).min))


class Precision(_OfChosen):
    """The share of predicted positives that are positive; 0 where none was predicted.

    Args:
        thresholds: the prediction from which an element counts as positive; 0.5 by default.
        top_k: how many of the highest scores count as positive.
        class_id: the class that counts.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.Precision()([0, 1, 1, 1], [1, 0, 1, 1])
    <Tensor f32[] cpu> 0.6666667
    """

    _kept = ("tp", "fp")

    def result(self) -> Tensor:
        now = self._now()
        return self._shaped(ratio(now.tp, now.tp + now.fp))


class Recall(_OfChosen):
    """The share of positives that are predicted so; 0 where there are none.

    Args:
        thresholds: the prediction from which an element counts as positive; 0.5 by default.
        top_k: how many of the highest scores count as positive.
        class_id: the class that counts.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.Recall()([0, 1, 1, 1], [1, 0, 1, 1])
    <Tensor f32[] cpu> 0.6666667
    """

    _kept = ("tp", "fn")

    def result(self) -> Tensor:
        now = self._now()
        return self._shaped(ratio(now.tp, now.tp + now.fn))


class _OverThresholds(_Decisions):
    """``num_thresholds``: at so many, evenly over 0 to 1 and a little beyond."""

    def __init__(self, num_thresholds: int, class_id: int | None, name: str | None, dtype: DTypeLike | None) -> None:
        super().__init__(name, dtype)
        if num_thresholds < 2:
            raise ArgumentError(self.name, f"num_thresholds is {num_thresholds!r}; it must be 2 or more.")
        take_room(self.name, (num_thresholds,))
        self.num_thresholds, self.class_id = num_thresholds, class_id

    def _even(self) -> list[float]:
        inner = np.arange(1, self.num_thresholds - 1) / (self.num_thresholds - 1)
        return [-_EPSILON, *inner.tolist(), 1 + _EPSILON]


class ThresholdOptions(TypedDict, total=False):
    """What metrics of thresholds take by name."""

    class_id: int | None
    name: str | None
    dtype: DTypeLike | None


class _AtBest(_OverThresholds):
    """The best of one rate where another is at least ``value``; 0 where it nowhere is."""

    _value_name = ""

    def __init__(
        self,
        value: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_thresholds, class_id, name, dtype)
        if not 0 <= value <= 1:
            raise ArgumentError(self.name, f"{self._value_name} is {value!r}; it must be from 0 to 1.")
        self.value = value
        self._begin(self._even() if num_thresholds > 2 else [0.5])

    def rates(self, now: Counts) -> tuple[Tensor, Tensor]:
        """For subclasses: the rate that is wanted, and that which has a bound.

        Args:
            now: the counts at each threshold.

        Returns:
            A pair of tensors [thresholds].

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError

    def result(self) -> Tensor:
        wanted, bounded = self.rates(self._now())
        return cast(max(where(bounded >= self.value, wanted, 0.0)), self._dtype)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {self._value_name: self.value}


class SensitivityAtSpecificity(_AtBest):
    """The best sensitivity (recall) of thresholds at which the specificity is at least so much.

    Args:
        specificity: the specificity wanted.
        num_thresholds: the number of thresholds.
        **options: ``num_thresholds``, ``class_id``, ``name`` and ``dtype``.

    >>> hf.metrics.SensitivityAtSpecificity(0.5)([0, 0, 0, 1, 1], [0, 0.3, 0.8, 0.3, 0.8])
    <Tensor f32[] cpu> 0.5
    """

    _value_name = "specificity"

    def __init__(self, specificity: float, num_thresholds: int = 200, **options: Unpack[ThresholdOptions]) -> None:
        super().__init__(specificity, num_thresholds, **options)

    def rates(self, now: Counts) -> tuple[Tensor, Tensor]:
        return ratio(now.tp, now.tp + now.fn), ratio(now.tn, now.tn + now.fp)


class SpecificityAtSensitivity(_AtBest):
    """The best specificity of thresholds at which the sensitivity (recall) is at least so much.

    Args:
        sensitivity: the sensitivity wanted.
        num_thresholds: the number of thresholds.
        **options: ``num_thresholds``, ``class_id``, ``name`` and ``dtype``.

    >>> hf.metrics.SpecificityAtSensitivity(0.5)([0, 0, 0, 1, 1], [0, 0.3, 0.8, 0.3, 0.8])
    <Tensor f32[] cpu> 0.6666667
    """

    _value_name = "sensitivity"

    def __init__(self, sensitivity: float, num_thresholds: int = 200, **options: Unpack[ThresholdOptions]) -> None:
        super().__init__(sensitivity, num_thresholds, **options)

    def rates(self, now: Counts) -> tuple[Tensor, Tensor]:
        return ratio(now.tn, now.tn + now.fp), ratio(now.tp, now.tp + now.fn)


class PrecisionAtRecall(_AtBest):
    """The best precision of thresholds at which the recall is at least so much.

    Args:
        recall: the recall wanted.
        num_thresholds: the number of thresholds.
        **options: ``num_thresholds``, ``class_id``, ``name`` and ``dtype``.

    >>> hf.metrics.PrecisionAtRecall(0.5)([0, 0, 0, 1, 1], [0, 0.3, 0.8, 0.3, 0.8])
    <Tensor f32[] cpu> 0.5
    """

    _value_name = "recall"

    def __init__(self, recall: float, num_thresholds: int = 200, **options: Unpack[ThresholdOptions]) -> None:
        super().__init__(recall, num_thresholds, **options)

    def rates(self, now: Counts) -> tuple[Tensor, Tensor]:
        return ratio(now.tp, now.tp + now.fp), ratio(now.tp, now.tp + now.fn)


class RecallAtPrecision(_AtBest):
    """The best recall of thresholds at which the precision is at least so much.

    Args:
        precision: the precision wanted.
        num_thresholds: the number of thresholds.
        **options: ``num_thresholds``, ``class_id``, ``name`` and ``dtype``.

    >>> hf.metrics.RecallAtPrecision(0.8)([0, 0, 1, 1], [0, 0.5, 0.3, 0.9])
    <Tensor f32[] cpu> 0.5
    """

    _value_name = "precision"

    def __init__(self, precision: float, num_thresholds: int = 200, **options: Unpack[ThresholdOptions]) -> None:
        super().__init__(precision, num_thresholds, **options)

    def rates(self, now: Counts) -> tuple[Tensor, Tensor]:
        return ratio(now.tp, now.tp + now.fn), ratio(now.tp, now.tp + now.fp)


class AUC(_OverThresholds):
    """Area under the curve (AUC).

    The area under the curve that thresholds draw: of true over false positive rates ("ROC"), or of precision over
    recall ("PR").

    ``summation_method`` "interpolation" connects points (for PR as Davis and Goadrich do); "minoring" and "majoring"
    take the lower and the higher of two neighbours.  ``thresholds`` between 0 and 1 replace even ones.  With
    ``multi_label`` each element of the last axis has an area of its own, and the result is their mean, by
    ``label_weights`` if given.  ``from_logits``: predictions are logits, not probabilities.

    Args:
        num_thresholds: the number of thresholds.
        curve: ``"ROC"`` or ``"PR"``.
        summation_method: ``"interpolation"``, ``"minoring"`` or ``"majoring"``.
        name: the name in logs.
        dtype: the dtype of its state and result.
        thresholds: the prediction from which an element counts as positive; 0.5 by default.
        multi_label: whether each label has a curve of its own.
        num_labels: the number of labels.
        label_weights: what labels weigh.
        from_logits: whether predictions are logits rather than probabilities.

    >>> hf.metrics.AUC(num_thresholds=3)([0, 0, 1, 1], [0, 0.5, 0.3, 0.9])
    <Tensor f32[] cpu> 0.75
    """

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: DTypeLike | None = None,
        thresholds: Sequence[float] | None = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: ArrayLike | None = None,
        from_logits: bool = False,
    ) -> None:
        super().__init__(num_thresholds if thresholds is None else len(thresholds) + 2, None, name or "auc", dtype)
        self.curve = one_of("curve", curve, ("ROC", "PR"), self.name)
        self.summation_method = one_of("summation_method", summation_method, _SUMMATIONS, self.name)
        self.thresholds = None if thresholds is None else sorted(thresholds)
        self.multi_label, self.num_labels, self.label_weights = multi_label, num_labels, label_weights
        self.from_logits = from_logits
        if self.thresholds is not None and not all(0 <= t <= 1 for t in self.thresholds):
            raise ArgumentError(self.name, f"thresholds are {thresholds!r}; each must be from 0 to 1.")
        if not multi_label or num_labels is not None:
            self._begin(self._points(), (num_labels,) if multi_label and num_labels is not None else ())

    def _points(self) -> list[float]:
        return self._even() if self.thresholds is None else [-_EPSILON, *self.thresholds, 1 + _EPSILON]

    def _prepared(
        self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike
    ) -> tuple[Tensor, Tensor, Tensor]:
        predictions = as_tensor(y_pred, self.name)
        if self.from_logits:
            predictions = sigmoid(predictions)
        result = super()._prepared(y_true, predictions, sample_weight)
        if not self.multi_label:
            return result
        if predictions.ndim < 2:
            raise ShapeError(self.name, f"predictions {predictions.type} have no axis of labels (multi_label).")
        labels = predictions.shape[-1]
        if self._thresholds is None:
            self._begin(self._points(), (labels,))
        return tuple(reshape(part, (-1, labels)) for part in result)  # type: ignore[return-value]

    def result(self) -> Tensor:
        if not self._counts:
            return cast(as_tensor(0.0, self.name), self._dtype)
        now = self._now()
        areas = self._interpolated_pr(now) if self._is_pr_interpolated() else self._summed(now)
        if self.multi_label and self.label_weights is not None:
            weights = asarray(self.label_weights, dtype=dtypes.float64)
            areas = ratio(sum(areas * weights), sum(weights))
        elif self.multi_label:
            areas = mean(areas)
        return cast(areas, self._dtype)

    def _is_pr_interpolated(self) -> bool:
        return self.curve == "PR" and self.summation_method == "interpolation"

    def _summed(self, now: Counts) -> Tensor:
        recall = ratio(now.tp, now.tp + now.fn)
        if self.curve == "ROC":
            x, y = ratio(now.fp, now.fp + now.tn), recall
        else:
            x, y = recall, ratio(now.tp, now.tp + now.fp)
        left, right = y[:-1], y[1:]
        if self.summation_method == "interpolation":
            heights = (left + right) / 2.0
        else:
            heights = minimum(left, right) if self.summation_method == "minoring" else maximum(left, right)
        return sum((x[:-1] - x[1:]) * heights, axis=0)

    def _interpolated_pr(self, now: Counts) -> Tensor:
        """Between two points true positives grow linearly with all positives, and precision is their quotient."""
        positives = now.tp + now.fp
        left, right = positives[:-1], positives[1:]
        gained = now.tp[:-1] - now.tp[1:]
        slope = ratio(gained, maximum(left - right, 0.0))
        offset = now.tp[1:] - slope * right
        grown = where(logical_and(left > 0, right > 0), ratio(left, maximum(right, 0.0)), 1.0)
        return sum(ratio(slope * (gained + offset * log(grown)), now.tp[1:] + now.fn[1:]), axis=0)


_SUMMATIONS = "interpolation", "minoring", "majoring"


class FBetaScore(Metric):
    """F-beta score: the harmonic mean of precision and recall, which counts ``beta`` times as much, of each class.

    Labels and predictions have the shape (samples, classes).  A prediction above ``threshold`` is positive; without
    one, the largest of a sample is.  ``average`` makes one number of the classes': "micro" counts all together,
    "macro" takes their mean, "weighted" by the number of labels of each; None leaves them.

    Args:
        average: ``"micro"``, ``"macro"``, ``"weighted"``, or None for each class.
        beta: how much recall weighs, compared with precision.
        threshold: the prediction from which an element counts as positive.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> labels = [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    >>> predictions = [[0.2, 0.6, 0.7], [0.2, 0.6, 0.6], [0.6, 0.8, 0.0]]
    >>> hf.metrics.FBetaScore(beta=2.0, threshold=0.5)(labels, predictions)
    <Tensor f32[3] cpu> [0.3846154  0.90909094 0.8333333 ]
    """

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str | None = "fbeta_score",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(dtype, name)
        if average is not None:
            one_of("average", average, ("micro", "macro", "weighted"), self.name)
        if not beta > 0:
            raise ArgumentError(self.name, f"beta is {beta!r}; it must be positive.")
        if threshold is not None and not 0 < threshold <= 1:
            raise ArgumentError(self.name, f"threshold is {threshold!r}; it must be above 0, and 1 or less.")
        self.average, self.beta, self.threshold = average, float(beta), threshold
        self._sums: list[Any] = []

    def update_state(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take a batch into account.

        Args:
            y_true: labels, [batch, classes], which are 0 or 1.
            y_pred: predictions, [batch, classes].
            sample_weight: a weight for each sample, or None.

        Raises:
            ShapeError: where labels and predictions have other axes.
        """
        y, p = as_tensor(y_true, self.name), cast(as_tensor(y_pred, self.name), dtypes.float32)
        if y.ndim != 2 or y.shape != p.shape:
            raise ShapeError(self.name, f"labels {y.type} and predictions {p.type} must be (samples, classes) both.")
        if self.threshold is None:
            chosen = logical_and(p >= max(p, axis=-1, keepdims=True), abs(p) > 1e-9)
        else:
            chosen = p > self.threshold
        if not self._sums:
            classes = () if self.average == "micro" else y.shape[1:]
            self._sums = [self.add_variable(classes, dtype=dtypes.float64) for _ in range(3)]
        weights = as_tensor(1.0 if sample_weight is None else sample_weight, self.name)
        weights = cast(weights[:, None] if weights.ndim == 1 else weights, dtypes.float64)
        right = not_equal(y, 0)
        axis = None if self.average == "micro" else 0
        for kept, counted in zip(self._sums, (logical_and(right, chosen), chosen, right)):
            kept.assign_add(sum(astype(counted, dtypes.float64) * weights, axis=axis))

    def result(self) -> Tensor:
        if not self._sums:
            return cast(as_tensor(0.0, self.name), self._dtype)
        hits, chosen, right = (as_tensor(part, self.name) for part in self._sums)
        square = self.beta**2
        scores = ratio((1 + square) * hits, square * right + chosen)
        if self.average == "weighted":
            scores = ratio(sum(scores * right), sum(right))
        elif self.average == "macro":
            scores = mean(scores)
        return cast(scores, self._dtype)


class F1Score(FBetaScore):
    """F1 score: the harmonic mean of precision and recall of each class, see ``FBetaScore``.

    Args:
        average: ``"micro"``, ``"macro"``, ``"weighted"``, or None for each class.
        threshold: the prediction from which an element counts as positive.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> labels = [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    >>> predictions = [[0.2, 0.6, 0.7], [0.2, 0.6, 0.6], [0.6, 0.8, 0.0]]
    >>> hf.metrics.F1Score(threshold=0.5)(labels, predictions)
    <Tensor f32[3] cpu> [0.5       0.8       0.6666667]
    """

    def __init__(
        self,
        average: str | None = None,
        threshold: float | None = None,
        name: str | None = "f1_score",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(average, 1.0, threshold, name, dtype)
