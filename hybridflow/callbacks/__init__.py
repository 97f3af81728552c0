"""Callbacks: ``hf.callbacks``, told of the course of ``fit``, ``evaluate`` and ``predict``, as in Keras."""

from __future__ import annotations

from hybridflow.callbacks.callback import Callback, History
from hybridflow.callbacks.logging import CSVLogger, LambdaCallback
from hybridflow.callbacks.saving import BackupAndRestore, ModelCheckpoint
from hybridflow.callbacks.stopping import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau, TerminateOnNaN
from hybridflow.callbacks.tensorboard import TensorBoard

__all__ = [
    "BackupAndRestore",
    "CSVLogger",
    "Callback",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
    "TensorBoard",
    "TerminateOnNaN",
]
