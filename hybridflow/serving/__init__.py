"""Serving models over HTTP: ``hf.serving``.  ``hybridflow serve MODEL...`` runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.serving.application import Application, app
from hybridflow.serving.client import Client

__all__ = ["Application", "Client", "app"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
