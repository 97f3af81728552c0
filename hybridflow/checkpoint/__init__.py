"""Checkpoints: ``hf.checkpoint``.  State is kept in files of the safetensors format, never as code."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.checkpoint.checkpoint import Checkpoint, Report, load_arrays, save_arrays
from hybridflow.checkpoint.manager import CheckpointManager, checkpoints, latest_checkpoint
from hybridflow.core import name_hints as _name_hints

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "Report",
    "checkpoints",
    "latest_checkpoint",
    "load_arrays",
    "save_arrays",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
