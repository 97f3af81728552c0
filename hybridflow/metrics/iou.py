"""How far predicted classes and those of labels overlap: intersection over union."""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.array.creation import asarray, eye, zeros
from hybridflow.array.elementwise import astype, greater, logical_and, not_equal, where
from hybridflow.array.indexing import scatter_add, take
from hybridflow.array.reductions import argmax, sum
from hybridflow.array.shapes import broadcast_to, expand_dims, reshape
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.effects.runtime_raise import check_all
from hybridflow.errors import ArgumentError, IndexRangeError, ShapeError
from hybridflow.metrics.metric import Metric, ratio


def _check_classes(numbers: Tensor, count: int, what: str, stage: str) -> None:
    """Raise IndexRangeError, when that is known, for a number that is no class."""
    within = logical_and(numbers >= 0, numbers < count)

    def error(stage: str, what: str, count: int, numbers: Tensor, within: Tensor) -> IndexRangeError:
        outliers = numbers.numpy()[~within.numpy()]
        return IndexRangeError(
            stage, f"the {what} {outliers[0]} is no class; with num_classes {count} they are below it."
        )

    values = [stage, what, count, numbers, within]
    check_all(within, IndexRangeError, error, values, f"[{stage}] a {what} is no class.")


class IoU(Metric):
    """Intersection over union (IoU).

    The mean over some classes of: elements that are of the class in labels and predictions, over those that are so in
    either.  Labels and predictions are class numbers, of any shape.

    ``sparse_y_true`` and ``sparse_y_pred`` False: they are one-hot, or scores, along ``axis``.  Where the label is
    ``ignore_class`` nothing counts.  A class out of range raises IndexRangeError.

    Args:
        num_classes: the number of classes.
        target_class_ids: the classes that count.
        name: the name in logs.
        dtype: the dtype of its state and result.
        ignore_class: a class whose elements do not count.
        sparse_y_true: whether labels are numbers of classes rather than one-hot.
        sparse_y_pred: whether predictions are numbers of classes rather than a score for each.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.IoU(2, [0])([0, 0, 1, 1], [0, 1, 0, 1])
    <Tensor f32[] cpu> 0.33333334
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(dtype, name)
        wrong = [number for number in target_class_ids if not 0 <= number < num_classes]
        if wrong:
            raise ArgumentError(self.name, f"the class {wrong[0]} is not among {num_classes} (num_classes).")
        self.num_classes, self.target_class_ids = num_classes, list(target_class_ids)
        self.ignore_class, self.axis = ignore_class, axis
        self.sparse_y_true, self.sparse_y_pred = sparse_y_true, sparse_y_pred
        self.total_cm = self.add_variable((num_classes, num_classes), dtype=dtypes.float64, name="total_cm")

    def update_state(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take a batch into account.

        Args:
            y_true: class numbers, or a score for each class along the layer's axis.
            y_pred: class numbers, or a score for each class along the layer's axis.
            sample_weight: a weight for each sample, or None.

        Raises:
            ShapeError: where labels and predictions differ in size.
        """
        labels, predictions = as_tensor(y_true, self.name), as_tensor(y_pred, self.name)
        labels = labels if self.sparse_y_true else argmax(labels, axis=self.axis)
        predictions = predictions if self.sparse_y_pred else argmax(predictions, axis=self.axis)
        labels, predictions = cast(labels, dtypes.int64), cast(predictions, dtypes.int64)
        if labels.size != predictions.size:
            raise ShapeError(self.name, f"labels {labels.type} and predictions {predictions.type} differ in size.")
        weights = cast(as_tensor(1.0 if sample_weight is None else sample_weight, self.name), dtypes.float64)
        while 0 < weights.ndim < labels.ndim:
            weights = expand_dims(weights, axis=-1)
        weights = broadcast_to(weights, labels.shape)
        if self.ignore_class is not None:
            counted = not_equal(labels, self.ignore_class)
            weights = where(counted, weights, 0.0)
            labels = where(counted, labels, 0)
            predictions = where(reshape(counted, predictions.shape), predictions, 0)
        rows, columns = reshape(labels, (-1,)), reshape(predictions, (-1,))
        for numbers, what in ((rows, "label"), (columns, "prediction")):
            _check_classes(numbers, self.num_classes, what, self.name)
        cells = rows * self.num_classes + columns
        matrix = scatter_add(zeros((self.num_classes**2,), dtype=dtypes.float64), cells, reshape(weights, (-1,)))
        self.total_cm.assign_add(reshape(matrix, self.total_cm.shape))

    def result(self) -> Tensor:
        matrix = as_tensor(self.total_cm, self.name)
        chosen = asarray(self.target_class_ids, dtype=dtypes.int64)
        hits = take(sum(where(eye(self.num_classes, dtype=dtypes.bool_), matrix, 0.0), axis=0), chosen)
        union = take(sum(matrix, axis=0), chosen) + take(sum(matrix, axis=1), chosen) - hits
        present = astype(union > 0, dtypes.float64)  # classes that are nowhere do not count
        return cast(ratio(sum(ratio(hits, union)), sum(present)), self._dtype)


class MeanIoU(IoU):
    """The mean intersection over union of all classes, see ``IoU``.

    Args:
        num_classes: the number of classes.
        name: the name in logs.
        dtype: the dtype of its state and result.
        ignore_class: a class whose elements do not count.
        sparse_y_true: whether labels are numbers of classes rather than one-hot.
        sparse_y_pred: whether predictions are numbers of classes rather than a score for each.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.MeanIoU(2)([0, 0, 1, 1], [0, 1, 0, 1])
    <Tensor f32[] cpu> 0.33333334
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        classes = range(num_classes)
        super().__init__(num_classes, classes, name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)


class OneHotIoU(IoU):
    """Intersection over union of one-hot labels: ``IoU`` of labels that are one-hot, and of predictions that are
    scores, or class numbers (``sparse_y_pred``).

    Args:
        num_classes: the number of classes.
        target_class_ids: the classes that count.
        name: the name in logs.
        dtype: the dtype of its state and result.
        ignore_class: a class whose elements do not count.
        sparse_y_pred: whether predictions are numbers of classes rather than a score for each.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.OneHotIoU(2, [0])([[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.8]])
    <Tensor f32[] cpu> 1.0
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis)


class OneHotMeanIoU(MeanIoU):
    """Mean intersection over union of one-hot labels: ``MeanIoU`` of labels that are one-hot, and of predictions that
    are scores, or class numbers (``sparse_y_pred``).

    Args:
        num_classes: the number of classes.
        name: the name in logs.
        dtype: the dtype of its state and result.
        ignore_class: a class whose elements do not count.
        sparse_y_pred: whether predictions are numbers of classes rather than a score for each.
        axis: the axis of classes, or along which the value is formed.

    >>> hf.metrics.OneHotMeanIoU(2)([[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.8]])
    <Tensor f32[] cpu> 1.0
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)


class BinaryIoU(IoU):
    """Intersection over union of two classes: ``IoU`` of two classes, 0 and 1; predictions above ``threshold`` are 1.

    Args:
        target_class_ids: the classes that count.
        threshold: the prediction from which an element counts as positive.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.BinaryIoU([0, 1], threshold=0.3)([0, 1, 0, 1], [0.1, 0.2, 0.4, 0.7])
    <Tensor f32[] cpu> 0.33333334
    """

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float = 0.5,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        if not 0 <= threshold < 1:
            raise ArgumentError(self.name, f"threshold is {threshold!r}; it must be at least 0 and less than 1.")
        self.threshold = threshold

    def update_state(self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take a batch into account.

        Args:
            y_true: labels, which are 0 or 1.
            y_pred: predictions, which are compared with the threshold.
            sample_weight: a weight for each sample, or None.

        Raises:
            ShapeError: where labels and predictions differ in size.
        """
        super().update_state(y_true, greater(as_tensor(y_pred, self.name), self.threshold), sample_weight)
