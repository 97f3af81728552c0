"""Names of layers that were given none: those of their classes, with numbers where a model has several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hybridflow.errors import ArgumentError
from hybridflow.layers.layer import Layer


def settle(layers: Iterable[Any], stage: str | None = None) -> None:
    """Let the layers of a model have names of their own: ``dense``, ``dense_1``, in the order in which they come.

    They are the same whatever models there were before.  A layer keeps the name that it got in another model, unless
    one of these has it already.  With a ``stage``, for messages, raises ArgumentError for two layers that were given
    one name.
    """
    members = [layer for layer in layers if isinstance(layer, Layer)]
    names: set[str] = set()
    for layer in members:
        if layer._name is not None:
            if stage is not None and layer._name in names:
                raise ArgumentError(stage, f"two layers are called {layer._name!r}; names of layers must differ.")
            names.add(layer._name)
    waiting = []
    for layer in members:
        if layer._name is None and (layer._settled_name is None or layer._settled_name in names):
            waiting.append(layer)
        elif layer._settled_name is not None:
            names.add(layer._settled_name)
    for layer in waiting:
        name, number = layer._kind_name(), 0
        while name in names:
            number += 1
            name = f"{layer._kind_name()}_{number}"
        names.add(name)
        layer._settle_name(name)
