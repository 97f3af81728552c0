"""Pipelines of data, with TensorFlow's names, arguments and order of elements: ``hf.data``.

A ``Dataset`` is a description; an iterator runs it, on threads of its own where that was asked for.
"""

from __future__ import annotations

from hybridflow.data.dataset import Dataset
from hybridflow.data.delimited import CsvDataset, make_csv_dataset
from hybridflow.data.examples import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    encode_example,
    parse_example,
    parse_single_example,
)
from hybridflow.data.files import FixedLengthRecordDataset, NumpyDataset, TextLineDataset, TFRecordDataset
from hybridflow.data.iterator import Iterator
from hybridflow.data.loader import DataLoader, default_collate
from hybridflow.data.node import INFINITE as INFINITE_CARDINALITY, UNKNOWN as UNKNOWN_CARDINALITY
from hybridflow.data.options import Options
from hybridflow.data.records import TFRecordWriter
from hybridflow.data.texts import TextSpec
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
