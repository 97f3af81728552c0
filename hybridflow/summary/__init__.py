"""What TensorBoard shows of a run: ``hf.summary``, with TensorFlow's names.  It needs the extra ``tensorboard``."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.summary import experimental
from hybridflow.summary.writer import (
    SummaryWriter,
    audio,
    create_file_writer,
    flush,
    graph,
    histogram,
    hparams,
    image,
    record_if,
    scalar,
    should_record_summaries,
    text,
)

__all__ = [
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "experimental",
    "flush",
    "graph",
    "histogram",
    "hparams",
    "image",
    "record_if",
    "scalar",
    "should_record_summaries",
    "text",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
