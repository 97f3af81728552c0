"""TensorFlow's ``tf.ragged``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export


@tf_export("ragged.constant")
def constant(pylist: Any, dtype: Any = None, name: str | None = None) -> Any:
    """The ragged tensor of a list of rows."""
    return hf.ragged.constant(pylist=pylist, dtype=dtype)


@tf_export("ragged.row_splits_to_segment_ids")
def row_splits_to_segment_ids(splits: Any, name: str | None = None) -> Any:
    """The row of each value, by where rows end."""
    return hf.ragged.row_splits_to_segment_ids(splits=splits)


export(hf.ragged.map_flat_values, "ragged.map_flat_values")
