"""Functions and models in files that run without their source: ``hf.saved``."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.saved.loading import Loaded, load
from hybridflow.saved.saved_function import SavedFunction
from hybridflow.saved.saving import save

__all__ = ["Loaded", "SavedFunction", "load", "save"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
