"""Models: layers with ``compile``, ``fit``, ``evaluate`` and ``predict``; how they are saved, drawn and made again."""

from __future__ import annotations

from hybridflow.models.cloning import clone_model, model_from_json
from hybridflow.models.drawing import plot_model
from hybridflow.models.functional import Functional
from hybridflow.models.model import Model
from hybridflow.models.saving import load_model, save_model
from hybridflow.models.sequential import Sequential

__all__ = [
    "Functional",
    "Model",
    "Sequential",
    "clone_model",
    "load_model",
    "model_from_json",
    "plot_model",
    "save_model",
]
