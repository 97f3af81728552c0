"""TensorFlow's ``tf.random``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export


@tf_export("random.split", "random.experimental.stateless_split")
def split(seed: Any, num: Any = 2, name: str | None = None) -> Any:
    """Split a seed."""
    return hf.random.split(seed, count=num)


@tf_export("random.fold_in", "random.experimental.stateless_fold_in")
def fold_in(seed: Any, data: Any, name: str | None = None) -> Any:
    """The seed for stateless functions, int64[2], that belongs to ``seed`` and the integer ``data``: a step's
    number."""
    return hf.random.fold_in(seed, data)


export(hf.random.Generator, "random.Generator", "random.experimental.Generator", "keras.random.SeedGenerator")
export(hf.random.global_generator, "random.get_global_generator", "random.experimental.get_global_generator")
