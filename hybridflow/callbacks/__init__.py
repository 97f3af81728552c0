"""Callbacks: ``hf.callbacks``, told of the course of ``fit``, ``evaluate`` and ``predict``, as in Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.callbacks.backup_and_restore import BackupAndRestore
from hybridflow.callbacks.callback import Callback, History
from hybridflow.callbacks.callback_list import CallbackList
from hybridflow.callbacks.logging import CSVLogger, LambdaCallback, RemoteMonitor
from hybridflow.callbacks.model_checkpoint import ModelCheckpoint
from hybridflow.callbacks.stopping import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau, TerminateOnNaN
from hybridflow.callbacks.swap_ema_weights import SwapEMAWeights
from hybridflow.callbacks.tensorboard import TensorBoard
from hybridflow.core import name_hints as _name_hints

__all__ = [
    "BackupAndRestore",
    "CSVLogger",
    "Callback",
    "CallbackList",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
    "RemoteMonitor",
    "SwapEMAWeights",
    "TensorBoard",
    "TerminateOnNaN",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
