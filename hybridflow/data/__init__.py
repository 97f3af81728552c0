"""Pipelines of data, with TensorFlow's names, arguments and order of elements: ``hf.data``.

A ``Dataset`` is a description; an iterator runs it, on threads of its own where that was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.data.csv_files import CsvDataset, make_csv_dataset
from hybridflow.data.dataset import Dataset
from hybridflow.data.files import FixedLengthRecordDataset, NumpyDataset, TextLineDataset, TFRecordDataset
from hybridflow.data.iterator import Iterator
from hybridflow.data.loader import DataLoader, default_collate
from hybridflow.data.options import Options
from hybridflow.data.pipeline import INFINITE as INFINITE_CARDINALITY, UNKNOWN as UNKNOWN_CARDINALITY
from hybridflow.data.strings import TextSpec
from hybridflow.data.tf_example import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    encode_example,
    parse_example,
    parse_single_example,
)
from hybridflow.data.tfrecord import TFRecordWriter
from hybridflow.data.threads import AUTOTUNE

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "CsvDataset",
    "DataLoader",
    "Dataset",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FixedLengthRecordDataset",
    "Iterator",
    "NumpyDataset",
    "Options",
    "TFRecordDataset",
    "TFRecordWriter",
    "TextLineDataset",
    "TextSpec",
    "VarLenFeature",
    "default_collate",
    "encode_example",
    "make_csv_dataset",
    "parse_example",
    "parse_single_example",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
