"""Optimizers, with Keras's names, arguments and formulas: ``hf.optimizers``."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.core.serialization import identified
from hybridflow.errors import ArgumentTypeError, entered
from hybridflow.optimizers import schedules
from hybridflow.optimizers.adadelta import Adadelta
from hybridflow.optimizers.adafactor import Adafactor
from hybridflow.optimizers.adagrad import Adagrad
from hybridflow.optimizers.adam import Adam
from hybridflow.optimizers.adamax import Adamax
from hybridflow.optimizers.adamw import AdamW
from hybridflow.optimizers.clipping import clip_by_global_norm, clip_by_norm, global_norm
from hybridflow.optimizers.ftrl import Ftrl
from hybridflow.optimizers.lamb import Lamb
from hybridflow.optimizers.lazy_adam import LazyAdam
from hybridflow.optimizers.lion import Lion
from hybridflow.optimizers.loss_scale import LossScaleOptimizer
from hybridflow.optimizers.muon import Muon
from hybridflow.optimizers.nadam import Nadam
from hybridflow.optimizers.optimizer import Optimizer
from hybridflow.optimizers.rmsprop import RMSprop
from hybridflow.optimizers.sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lamb",
    "LazyAdam",
    "Lion",
    "LossScaleOptimizer",
    "Muon",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "clip_by_global_norm",
    "clip_by_norm",
    "get",
    "global_norm",
    "schedules",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)

_KINDS: dict[str, type[Optimizer]] = {
    name: kind for name, kind in list(globals().items()) if isinstance(kind, type) and issubclass(kind, Optimizer)
}


@entered
def get(identifier: object) -> Optimizer:
    """An optimizer by its name or description.

    Args:
        identifier: a class's name (``"Adam"``, ``"adam"``), a dict with ``class_name`` and ``config``, or an optimizer.

    Returns:
        The optimizer.

    Raises:
        ArgumentError: for an unknown name.
        ArgumentTypeError: for anything else.

    >>> hf.optimizers.get("sgd")
    <SGD learning_rate=0.01, 0 variables>
    """
    if isinstance(identifier, (str, dict)):
        identifier = identified(_KINDS, identifier, "optimizers", "an optimizer")
    elif hasattr(identifier, "as_optimizer"):  # of TensorFlow 1
        identifier = identifier.as_optimizer()
    if not isinstance(identifier, Optimizer):
        raise ArgumentTypeError("optimizers", f"{identifier!r} is no optimizer; give one, or its name.")
    return identifier
