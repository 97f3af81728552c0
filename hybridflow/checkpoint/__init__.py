"""Checkpoints: ``hf.checkpoint``.  State is kept in files of the safetensors format, never as code."""

from __future__ import annotations

from hybridflow.checkpoint.checkpoint import Checkpoint, Report, load_arrays, save_arrays
from hybridflow.checkpoint.manager import CheckpointManager, checkpoints, latest_checkpoint

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "Report",
    "checkpoints",
    "latest_checkpoint",
    "load_arrays",
    "save_arrays",
]
