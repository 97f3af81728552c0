"""The step of summaries that are given none: ``hf.summary.experimental``."""

from __future__ import annotations

from hybridflow.summary.writer import get_step, set_step

__all__ = ["get_step", "set_step"]
