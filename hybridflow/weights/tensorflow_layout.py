"""Where TensorFlow's checkpoints keep the weights of a model: by the attributes of objects, and layers by number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hybridflow.module import Module
from hybridflow.weights.arrays import Weights
from hybridflow.weights.assigning import Assignment, direct_variables

_PROJECTED = "MultiHeadAttention", "GroupQueryAttention"
_NORMALIZATION = {"adapt_mean": "mean", "adapt_variance": "variance"}
_BESIDE = ("keras_api/", "optimizer/", "save_counter", "_CHECKPOINTABLE_OBJECT_GRAPH")
_SLOT = "/.OPTIMIZER_SLOT/"
_UNKEPT = "/count"  # of a Normalization


def assignments(model: object, weights: Weights) -> Iterator[Assignment]:
    """What a checkpoint has for a model: at its root, or below ``model/``."""
    roots = [""] + [f"{name}/" for name in ("model", "net") if any(key.startswith(f"{name}/") for key in weights)]
    for root in roots:
        assignments_here = list(_of(model, root, "", weights))
        if assignments_here:
            yield from assignments_here
            return


def is_beside(name: str) -> bool:
    """Whether it is no weight of a layer, but a state of training."""
    return name.startswith(_BESIDE) or _SLOT in name or name.endswith(_UNKEPT)


def _of(module: Any, prefix: str, path: str, weights: Weights) -> Iterator[Assignment]:
    for name, variable in direct_variables(module):
        for key in _keys(module, name):
            source = f"{prefix}{key}"
            if source in weights:
                shape = weights.shape(source)
                load = _loader(weights, source)
                yield Assignment(f"{path}.{name}" if path else name, variable, (source,), shape, load)
                break
    layers = getattr(module, "layers", None)
    if isinstance(layers, (list, tuple)):
        number = 0
        for place, layer in enumerate(layers):
            if isinstance(layer, Module) and layer.variables:
                inner = f"{path}.layers.{place}" if path else f"layers.{place}"
                yield from _of(layer, f"{prefix}layer_with_weights-{number}/", inner, weights)
                number += 1
        return
    for name, value in module._attributes():
        inner = f"{path}.{name}" if path else name
        if isinstance(value, Module):
            yield from _of(value, f"{prefix}{name}/", inner, weights)
        elif isinstance(value, (list, tuple)):
            for place, part in enumerate(value):
                if isinstance(part, Module):
                    yield from _of(part, f"{prefix}{name}/{place}/", f"{inner}.{place}", weights)


def _keys(module: object, name: str) -> list[str]:
    """How a variable may be called below its layer."""
    if type(module).__name__ in _PROJECTED:
        part, _, leaf = name.partition("_")
        return [f"_{part}_dense/{leaf}", f"{part}_dense/{leaf}"]
    return [_NORMALIZATION.get(name, name)]


def _loader(weights: Weights, source: str) -> Any:
    return lambda: weights.numpy(source)
