"""Models: layers with ``compile``, ``fit``, ``evaluate`` and ``predict``; how they are saved, drawn and made again."""

from __future__ import annotations

__traits__ = ("followed",)

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.models.cloning import clone_model, model_from_json
from hybridflow.models.functional import Functional
from hybridflow.models.graphviz import plot_model
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

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
