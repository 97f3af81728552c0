"""How many predictions are right."""

from __future__ import annotations

from typing import Any

from hybridflow.array.elementwise import equal, greater
from hybridflow.array.indexing import take_along_axis
from hybridflow.array.reductions import argmax, mean, sum
from hybridflow.array.shapes import expand_dims
from hybridflow.compiler.ir import dtypes
from hybridflow.core.promotion import default_float
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentError
from hybridflow.losses.classes import alike, class_numbers
from hybridflow.metrics.metric import OfBatches


def binary_accuracy(y_true: ArrayLike, y_pred: ArrayLike, threshold: float = 0.5) -> Tensor:
    """Binary accuracy: the share of predictions on the label's side of the threshold, over the last axis.

    Args:
        y_true: the true values, ``[..., n]``.
        y_pred: what was predicted, of the same shape.
        threshold: the prediction from which an element counts as positive.

    Returns:
        A float tensor of the shape ``[...]``.

    >>> hf.metrics.binary_accuracy([[1, 0], [1, 1]], [[0.9, 0.2], [0.4, 0.6]])
    <Tensor f32[2] cpu> [1.  0.5]
    """
    y, p = alike(as_tensor(y_true, "binary_accuracy"), as_tensor(y_pred, "binary_accuracy"))
    return _mean_of(equal(cast(greater(p, threshold), p.dtype), cast(y, p.dtype)))


def categorical_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> Tensor:
    """Categorical accuracy: 1 where labels (one-hot) and predictions have their largest element at the same class.

    Args:
        y_true: the true values, ``[..., classes]``.
        y_pred: what was predicted, of the same shape.

    Returns:
        A float tensor of the shape ``[...]``, of zeros and ones.

    >>> hf.metrics.categorical_accuracy([[0, 1], [1, 0]], [[0.2, 0.8], [0.4, 0.6]])
    <Tensor f32[2] cpu> [1. 0.]
    """
    y, p = as_tensor(y_true, "categorical_accuracy"), as_tensor(y_pred, "categorical_accuracy")
    if dtypes.is_bool(y.dtype):
        y = cast(y, p.dtype)
    return cast(equal(argmax(y, axis=-1), argmax(p, axis=-1)), default_float)


def sparse_categorical_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> Tensor:
    """Categorical accuracy of labels that are numbers: 1 where the largest prediction is that of the label, else 0.

    Args:
        y_true: the numbers of the classes, ``[...]``.
        y_pred: what was predicted, ``[..., classes]``.

    Returns:
        A float tensor of the shape ``[...]``, of zeros and ones.

    >>> hf.metrics.sparse_categorical_accuracy([1, 0], [[0.2, 0.8], [0.4, 0.6]])
    <Tensor f32[2] cpu> [1. 0.]
    """
    y, p = as_tensor(y_true, "sparse_categorical_accuracy"), as_tensor(y_pred, "sparse_categorical_accuracy")
    return cast(equal(class_numbers(y, p.ndim - 1), argmax(p, axis=-1)), default_float)


def top_k_categorical_accuracy(y_true: ArrayLike, y_pred: ArrayLike, k: int = 5) -> Tensor:
    """Top-k accuracy: 1 where the label's class (one-hot) is among the k classes predicted highest, else 0.

    Args:
        y_true: the true values, ``[..., classes]``.
        y_pred: what was predicted, of the same shape.
        k: the number of highest scores that may contain the class.

    Returns:
        A float tensor of the shape ``[...]``, of zeros and ones.

    >>> hf.metrics.top_k_categorical_accuracy([[0, 0, 1]], [[0.1, 0.7, 0.2]], k=2)
    <Tensor f32[1] cpu> [1.]
    """
    y = as_tensor(y_true, "top_k_categorical_accuracy")
    return sparse_top_k_categorical_accuracy(argmax(y, axis=-1), y_pred, k)


def sparse_top_k_categorical_accuracy(y_true: ArrayLike, y_pred: ArrayLike, k: int = 5) -> Tensor:
    """Top-k accuracy of labels that are numbers: 1 where the label is among the k classes predicted highest, else 0.

    A class counts among them if fewer than ``k`` others have a larger prediction.

    Args:
        y_true: the numbers of the classes, ``[...]``.
        y_pred: what was predicted, ``[..., classes]``.
        k: the number of highest scores that may contain the class.

    Returns:
        A float tensor of the shape ``[...]``, of zeros and ones.

    >>> hf.metrics.sparse_top_k_categorical_accuracy([2], [[0.1, 0.7, 0.2]], k=1)
    <Tensor f32[1] cpu> [0.]
    """
    if k < 1:
        raise ArgumentError("sparse_top_k_categorical_accuracy", f"k is {k!r}; it must be 1 or more.")
    y, p = as_tensor(y_true, "top_k_categorical_accuracy"), as_tensor(y_pred, "top_k_categorical_accuracy")
    true_scores = take_along_axis(p, expand_dims(class_numbers(y, p.ndim - 1), axis=-1), -1)
    larger = sum(cast(greater(p, true_scores), dtypes.int32), axis=-1)
    return cast(larger < k, default_float)


class Accuracy(OfBatches):
    """Accuracy: the share of predictions that equal their labels.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.Accuracy()([1, 2, 3, 4], [0, 2, 3, 4])
    <Tensor f32[] cpu> 0.75
    """

    def __init__(self, name: str | None = "accuracy", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        return equal(*alike(y_true, y_pred))


class BinaryAccuracy(OfBatches):
    """The share of predictions on the label's side of the threshold.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.
        threshold: the prediction from which an element counts as positive.

    >>> hf.metrics.BinaryAccuracy()([[1], [1], [0], [0]], [[0.98], [1], [0], [0.6]])
    <Tensor f32[] cpu> 0.75
    """

    def __init__(
        self, name: str | None = "binary_accuracy", dtype: DTypeLike | None = None, threshold: float = 0.5
    ) -> None:
        super().__init__(name, dtype)
        if not 0 <= threshold <= 1:
            raise ArgumentError(self.name, f"threshold is {threshold!r}; it must be from 0 to 1.")
        self.threshold = threshold

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        return binary_accuracy(y_true, y_pred, self.threshold)


class CategoricalAccuracy(OfBatches):
    """The share of samples whose largest prediction is that of the label, which is one-hot.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.CategoricalAccuracy()([[0, 1], [1, 0]], [[0.2, 0.8], [0.4, 0.6]])
    <Tensor f32[] cpu> 0.5
    """

    def __init__(self, name: str | None = "categorical_accuracy", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        return categorical_accuracy(y_true, y_pred)


class SparseCategoricalAccuracy(OfBatches):
    """The share of samples whose largest prediction is that of the label, which is a number.

    Args:
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.SparseCategoricalAccuracy()([1, 0], [[0.2, 0.8], [0.4, 0.6]])
    <Tensor f32[] cpu> 0.5
    """

    def __init__(self, name: str | None = "sparse_categorical_accuracy", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        return sparse_categorical_accuracy(y_true, y_pred)


class _TopK(OfBatches):
    """``k``: how many of the largest predictions count."""

    def __init__(self, k: int = 5, name: str | None = None, dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)
        if k < 1:
            raise ArgumentError(self.name, f"k is {k!r}; it must be 1 or more.")
        self.k = k


class TopKCategoricalAccuracy(_TopK):
    """The share of samples whose label (one-hot) is among the ``k`` largest predictions.

    Args:
        k: the number of highest scores that may contain the class.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.TopKCategoricalAccuracy(k=1)([[0, 0, 1], [0, 1, 0]], [[0.1, 0.9, 0.8], [0.05, 0.95, 0]])
    <Tensor f32[] cpu> 0.5
    """

    def __init__(
        self, k: int = 5, name: str | None = "top_k_categorical_accuracy", dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(k, name, dtype)

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        return top_k_categorical_accuracy(y_true, y_pred, self.k)


class SparseTopKCategoricalAccuracy(_TopK):
    """The share of samples whose label (a number) is among the ``k`` largest predictions.

    Args:
        k: the number of highest scores that may contain the class.
        name: the name in logs.
        dtype: the dtype of its state and result.

    >>> hf.metrics.SparseTopKCategoricalAccuracy(k=1)([2, 1], [[0.1, 0.9, 0.8], [0.05, 0.95, 0]])
    <Tensor f32[] cpu> 0.5
    """

    def __init__(
        self, k: int = 5, name: str | None = "sparse_top_k_categorical_accuracy", dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(k, name, dtype)

    def of_samples(self, y_true: Tensor, y_pred: Tensor) -> Any:
        return sparse_top_k_categorical_accuracy(y_true, y_pred, self.k)


def _mean_of(hits: Tensor) -> Tensor:
    return mean(cast(hits, default_float), axis=-1) if hits.ndim else cast(hits, default_float)
