"""Models of other libraries, in files of ONNX: ``hf.onnx``."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.errors import OnnxError
from hybridflow.onnx.checking import Report, check
from hybridflow.onnx.model import OnnxModel, load
from hybridflow.onnx.saving import save

__all__ = ["OnnxError", "OnnxModel", "Report", "check", "load", "save"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
