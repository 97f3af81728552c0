"""Machine code ahead of time, which C calls without Python: ``hf.aot``."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.aot.library import Library, compile
from hybridflow.core import name_hints as _name_hints

__all__ = ["Library", "compile"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
