"""Callbacks: ``hf.callbacks``, told of the course of ``fit``, ``evaluate`` and ``predict``, as in Keras."""

from __future__ import annotations

from hybridflow.callbacks.averages import SwapEMAWeights
from hybridflow.callbacks.callback import Callback, History
from hybridflow.callbacks.logging import CSVLogger, LambdaCallback, RemoteMonitor
from hybridflow.callbacks.running import CallbackList
from hybridflow.callbacks.saving import BackupAndRestore, ModelCheckpoint
from hybridflow.callbacks.stopping import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau, TerminateOnNaN
from hybridflow.callbacks.tensorboard import TensorBoard

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
