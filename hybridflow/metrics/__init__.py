"""Metrics: ``hf.metrics``, with Keras's names, arguments and defaults.

A metric keeps its state in variables: ``update_state`` takes a batch into account, ``result`` is the metric of all
batches, ``reset_state`` forgets them.  Labels come first, predictions second, and weights of the samples third.
"""

from __future__ import annotations

__traits__ = ("followed",)

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any

from hybridflow.core import name_hints as _name_hints
from hybridflow.core.serialization import identified
from hybridflow.errors import entered
from hybridflow.losses import SHORT
from hybridflow.metrics.accuracy import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy,
    TopKCategoricalAccuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from hybridflow.metrics.confusion import (
    AUC,
    F1Score,
    FalseNegatives,
    FalsePositives,
    FBetaScore,
    Precision,
    PrecisionAtRecall,
    Recall,
    RecallAtPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
    TrueNegatives,
    TruePositives,
)
from hybridflow.metrics.iou import BinaryIoU, IoU, MeanIoU, OneHotIoU, OneHotMeanIoU
from hybridflow.metrics.metric import Mean, MeanMetricWrapper, Metric, Sum
from hybridflow.metrics.regression import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CategoricalHinge,
    ConcordanceCorrelation,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    PearsonCorrelation,
    Poisson,
    R2Score,
    RootMeanSquaredError,
    SparseCategoricalCrossentropy,
    SquaredHinge,
)

__all__ = [
    "AUC",
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "BinaryIoU",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "ConcordanceCorrelation",
    "CosineSimilarity",
    "F1Score",
    "FBetaScore",
    "FalseNegatives",
    "FalsePositives",
    "Hinge",
    "IoU",
    "KLDivergence",
    "LogCoshError",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanIoU",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Metric",
    "OneHotIoU",
    "OneHotMeanIoU",
    "PearsonCorrelation",
    "Poisson",
    "Precision",
    "PrecisionAtRecall",
    "R2Score",
    "Recall",
    "RecallAtPrecision",
    "RootMeanSquaredError",
    "SensitivityAtSpecificity",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity",
    "SquaredHinge",
    "Sum",
    "TopKCategoricalAccuracy",
    "TrueNegatives",
    "TruePositives",
    "binary_accuracy",
    "categorical_accuracy",
    "get",
    "sparse_categorical_accuracy",
    "sparse_top_k_categorical_accuracy",
    "top_k_categorical_accuracy",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)

_KINDS: dict[str, type[Metric]] = {
    name: kind for name, kind in list(globals().items()) if isinstance(kind, type) and issubclass(kind, Metric)
}
_SHORT = {**SHORT, "rmse": "RootMeanSquaredError", "cosine": "CosineSimilarity"}


@entered
def get(identifier: object) -> Any:
    """A metric by its name or description.

    Args:
        identifier: a class's name (``"MeanSquaredError"``, ``"mean_squared_error"``, ``"mse"``), a dict with
            ``class_name`` and ``config``, a metric, or a function of labels and predictions.

    Returns:
        The metric, or the function.

    Raises:
        ArgumentError: for an unknown name.
        ArgumentTypeError: for anything else that cannot be called.

    >>> hf.metrics.get("mae")
    <MeanAbsoluteError 'mean_absolute_error'>
    """
    if isinstance(identifier, str):
        identifier = _SHORT.get(identifier.lower(), identifier)
    return identified(_KINDS, identifier, "metrics", "a metric")
