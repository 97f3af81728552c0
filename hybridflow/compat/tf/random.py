"""TensorFlow's ``tf.random``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.adapters import streams
from hybridflow.compat.adapters.draws import stateless_uniform
from hybridflow.compat.adapters.values import operand
from hybridflow.compat.export import TensorLike, export, tf_export


@tf_export("random.split", "random.experimental.stateless_split")
def split(seed: TensorLike, num: Any = 2, alg: int | None = None, name: str | None = None) -> Any:
    """Split a seed."""
    pair = operand(seed)
    return stateless_uniform((num, 2), pair, None, None, pair.dtype, alg=alg)


@tf_export("random.fold_in", "random.experimental.stateless_fold_in")
def fold_in(seed: TensorLike, data: TensorLike, alg: Any = None, name: str | None = None) -> Any:
    """The seed for stateless functions that belongs to ``seed`` and the integer ``data``: a step's number."""
    number = operand(data)
    return hf.stack([stateless_uniform((), operand(seed), None, None, number.dtype, alg=alg), number])


export(streams.Generator, "random.Generator", "random.experimental.Generator")
export(streams.SeedGenerator, "keras.random.SeedGenerator")
