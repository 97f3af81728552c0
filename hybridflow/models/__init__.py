"""Models: layers with ``compile``, ``fit``, ``evaluate`` and ``predict``."""

from __future__ import annotations

from hybridflow.models.functional import Functional
from hybridflow.models.model import Model
from hybridflow.models.sequential import Sequential

__all__ = ["Functional", "Model", "Sequential"]
