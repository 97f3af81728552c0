"""The memory of tensors: ``hf.memory.stats()`` and ``hf.memory.trim()``.

Freed memory is kept for the next tensors of like sizes: taking it from the system anew costs more than most kernels.
It goes back when sizes change, when nothing has used it for ten seconds (which later operations find out, no thread
waits for it), beyond ``hf.config.memory_limit``, and by ``trim``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.runtime.memory.memory_pool import Stats, stats, trim

__all__ = [
    "Stats",
    "stats",
    "trim",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
