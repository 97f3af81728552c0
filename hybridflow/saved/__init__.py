"""Functions and models in files that run without their source: ``hf.saved``."""

from __future__ import annotations

from hybridflow.saved.loading import Loaded, SavedFunction, load
from hybridflow.saved.saving import save

__all__ = ["Loaded", "SavedFunction", "load", "save"]
