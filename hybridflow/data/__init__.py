"""Pipelines of data, with TensorFlow's names, arguments and order of elements: ``hf.data``.

A ``Dataset`` is a description; an iterator runs it, on threads of its own where that was asked for.
"""

from __future__ import annotations

from hybridflow.data.dataset import Dataset
from hybridflow.data.iterator import Iterator
from hybridflow.data.loader import DataLoader, default_collate
from hybridflow.data.node import INFINITE as INFINITE_CARDINALITY, UNKNOWN as UNKNOWN_CARDINALITY
from hybridflow.data.threads import AUTOTUNE

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "DataLoader",
    "Dataset",
    "Iterator",
    "default_collate",
]
