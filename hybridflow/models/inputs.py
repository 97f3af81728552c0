"""What models of inputs are called with."""

from __future__ import annotations

from typing import Any

from hybridflow.array.shapes import expand_dims, squeeze
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError
from hybridflow.layers.keras_tensor import Symbol


def fitting(value: Any, symbol: Symbol, model: str) -> Any:
    """The value of an input as a tensor, with a last axis of extent 1 where it lacks that, or without one.

    Raises ArgumentError for another shape than that of the input.
    """
    value = as_tensor(value, model)
    if value.ndim == symbol.ndim - 1 and symbol.shape[-1] == 1:
        value = expand_dims(value, axis=-1)
    elif value.ndim == symbol.ndim + 1 and value.shape[-1] == 1:
        value = squeeze(value, axis=-1)
    fits = value.ndim == symbol.ndim and all(
        wanted is None or not isinstance(actual, int) or actual == wanted
        for actual, wanted in zip(value.shape, symbol.shape)
    )
    if not fits:
        one = "" if value.ndim != symbol.ndim - 1 else " One sample is no batch: see Dataset.batch, or x[None]."
        raise ArgumentError(model, f"the input {symbol.name!r} is {value.type}; its shape must be {symbol.shape}.{one}")
    return value
