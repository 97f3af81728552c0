"""What TensorBoard shows of a run: ``hf.summary``, with TensorFlow's names.  It needs the extra ``tensorboard``."""

from __future__ import annotations

from hybridflow.summary import experimental
from hybridflow.summary.writing import (
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
