"""Losses: ``hf.losses``.  Labels come first and predictions second, as in Keras.

The functions have a ``reduction``, "mean" over all of them, "sum" or "none"; their cross entropies take logits, not
probabilities.  The classes are Keras's, with its names, arguments and defaults: an object is called with labels,
predictions, and weights of the samples.
"""

from __future__ import annotations

__traits__ = ("followed",)

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any

from hybridflow.core import name_hints as _name_hints
from hybridflow.core.serialization import identified
from hybridflow.errors import entered
from hybridflow.losses.classes import (
    CTC,
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    CategoricalHinge,
    Circle,
    CosineSimilarity,
    Dice,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    Loss,
    LossFunctionWrapper,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    Tversky,
)
from hybridflow.nn.losses import (
    huber,
    mean_absolute_error,
    mean_squared_error,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
)

__all__ = [
    "CTC",
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy",
    "CategoricalHinge",
    "Circle",
    "CosineSimilarity",
    "Dice",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "LossFunctionWrapper",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
    "Tversky",
    "get",
    "huber",
    "mean_absolute_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)

_KINDS: dict[str, type[Loss]] = {
    name: kind for name, kind in list(globals().items()) if isinstance(kind, type) and issubclass(kind, Loss)
}
SHORT = {
    "mse": "MeanSquaredError",
    "mae": "MeanAbsoluteError",
    "mape": "MeanAbsolutePercentageError",
    "msle": "MeanSquaredLogarithmicError",
    "bce": "BinaryCrossentropy",
    "kld": "KLDivergence",
}


@entered
def get(identifier: object) -> Any:
    """A loss by its name or description.

    Args:
        identifier: a class's name (``"MeanSquaredError"``, ``"mean_squared_error"``, ``"mse"``), a dict with
            ``class_name`` and ``config``, a loss, or a function of labels and predictions.

    Returns:
        The loss, or the function.

    Raises:
        ArgumentError: for an unknown name.
        ArgumentTypeError: for anything else that cannot be called.

    >>> hf.losses.get("sparse_categorical_crossentropy").name
    'sparse_categorical_crossentropy'
    """
    if isinstance(identifier, str):
        identifier = SHORT.get(identifier.lower(), identifier)
    return identified(_KINDS, identifier, "losses", "a loss")
