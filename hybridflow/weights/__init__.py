"""Weights of other programs: ``hf.weights``.  Files are read as data; nothing in them is run."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.weights.arrays import Weights
from hybridflow.weights.reading import read

__all__ = ["Weights", "read"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
