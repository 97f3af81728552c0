"""TensorFlow's ``tf.bitwise``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import Operand, tf_export


@tf_export("bitwise.bitwise_and", "keras.ops.bitwise_and")
def bitwise_and(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Bitwise and: ``x1 & x2`` of integers or bools."""
    return hf.bitwise_and(x, y)


@tf_export("bitwise.bitwise_or", "keras.ops.bitwise_or")
def bitwise_or(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Bitwise or: ``x1 | x2`` of integers or bools."""
    return hf.bitwise_or(x, y)


@tf_export("bitwise.bitwise_xor", "keras.ops.bitwise_xor")
def bitwise_xor(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Bitwise exclusive or: ``x1 ^ x2`` of integers or bools."""
    return hf.bitwise_xor(x, y)


@tf_export("bitwise.invert", "keras.ops.bitwise_invert", "keras.ops.bitwise_not")
def invert(x: Operand, name: str | None = None) -> Any:
    """Bitwise not: ``~x`` of integers or bools."""
    return hf.bitwise_invert(x)


@tf_export("bitwise.left_shift", "keras.ops.bitwise_left_shift", "keras.ops.left_shift")
def left_shift(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Bitwise left shift: ``x1 << x2`` of integers."""
    return hf.bitwise_left_shift(x, y)


@tf_export("bitwise.right_shift", "keras.ops.bitwise_right_shift", "keras.ops.right_shift")
def right_shift(x: Operand, y: Operand, name: str | None = None) -> Any:
    """Bitwise right shift: ``x1 >> x2`` of integers; the sign is kept."""
    return hf.bitwise_right_shift(x, y)
