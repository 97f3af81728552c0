"""TensorFlow's ``tf.ragged``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export
from hybridflow.compiler.ir import dtypes


@tf_export("ragged.constant")
def constant(pylist: Any, dtype: Any = None, name: str | None = None) -> Any:
    """The ragged tensor of a list of rows."""
    rows = hf.ragged.constant(pylist=pylist, dtype=dtype)
    if dtype is not None or rows.dtype != dtypes.int64 or not all(isinstance(row, (list, tuple)) for row in pylist):
        return rows
    ints = [one for row in pylist for one in row]
    fits = all(type(one) is int and -(2**31) <= one < 2**31 for one in ints)
    return rows.with_values(hf.astype(rows.values, dtypes.int32)) if ints and fits else rows


@tf_export("ragged.row_splits_to_segment_ids")
def row_splits_to_segment_ids(splits: Any, name: str | None = None) -> Any:
    """The row of each value, by where rows end."""
    return hf.ragged.row_splits_to_segment_ids(splits=splits)


export(hf.ragged.map_flat_values, "ragged.map_flat_values")
