"""TensorFlow's ``tf.lookup``: tables whose numbers are those that TensorFlow makes of Python's."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.adapters.values import convert_to_tensor
from hybridflow.compat.export import export
from hybridflow.compat.facade import Facade


def _content(
    keys: Any, values: Any, key_dtype: object = None, value_dtype: object = None, name: str | None = None
) -> Any:
    """``tf.lookup.KeyValueTensorInitializer``."""
    known, outcome = convert_to_tensor(keys, key_dtype), convert_to_tensor(values, value_dtype)
    return hf.lookup.KeyValueTensorInitializer(known, outcome, key_dtype, value_dtype)


KeyValueTensorInitializer = export(
    Facade(hf.lookup.KeyValueTensorInitializer, _content), "lookup.KeyValueTensorInitializer"
)
export(hf.lookup.StaticHashTable, "lookup.StaticHashTable")
export(hf.lookup.StaticVocabularyTable, "lookup.StaticVocabularyTable")
export(hf.lookup.TextFileIndex, "lookup.TextFileIndex")
export(hf.lookup.TextFileInitializer, "lookup.TextFileInitializer")
export(hf.lookup.DenseHashTable, "lookup.experimental.DenseHashTable")
export(hf.lookup.MutableHashTable, "lookup.experimental.MutableHashTable")
