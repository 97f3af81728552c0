"""Weights written as Keras 3 keeps them: the ``.weights.h5`` files that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hybridflow.core.variable import Variable
from hybridflow.module import Module
from hybridflow.weights import hdf5, keras_layout
from hybridflow.weights.assigning import direct_variables

_OWN_COUNTS = "Normalization"  # has a count of samples in Keras, an integer behind its mean and variance


def write(module: object, file: object, path: str) -> list[Variable]:
    """Write the weights of a model into an HDF5 file: a path to be created, or a stream.  The result are the variables
    that are in it; states of random generators are not, as Keras's are others.

    Raises CheckpointError where h5py is not installed, named for ``path``.
    """
    held: list[Variable] = []
    with hdf5.module(path).File(file, "w") as h5:
        _write(module, h5, held, set())
    return held


def _write(module: Any, group: Any, held: list[Variable], seen: set[int]) -> None:
    seen.add(id(module))
    variables = direct_variables(module)
    kind = type(module).__name__
    if kind in keras_layout.PROJECTED:
        for part, key in keras_layout.PROJECTIONS.items():
            mine = [variable for name, variable in variables if name.startswith(f"{part}_")]
            _variables(group.create_group(key), key, mine, held)
        variables = []
    kept = [variable for _, variable in variables]
    _variables(group, getattr(module, "name", "") or "", kept, held)
    if kind == _OWN_COUNTS and kept:
        group["vars"][str(len(kept))] = np.zeros((), np.int32)
    for name, value in keras_layout.parts(module):
        for key, layer in [(name, value)] if isinstance(value, Module) else _in_list(name, value):
            if id(layer) not in seen:  # a layer that several others have is kept once
                _write(layer, group.create_group(key), held, seen)


def _in_list(place: str, layers: Sequence[tuple[Any, Any]]) -> Iterator[tuple[str, Any]]:
    for _, key, layer in keras_layout.counted(layers):
        if isinstance(layer, Module):
            yield f"{place}/{key}", layer
        else:
            yield from _in_list(f"{place}/{key}", keras_layout.placed(layer))


def _variables(group: Any, name: str, variables: Sequence[Variable], held: list[Variable]) -> None:
    inner = group.create_group("vars")
    inner.attrs["name"] = name
    for number, variable in enumerate(variables):
        array = variable.numpy()
        if array.dtype.name == "bfloat16":  # which HDF5 has no name for: as Keras writes it
            dataset = inner.create_dataset(str(number), data=array.view(np.uint16))
            dataset.attrs["dtype"] = "bfloat16"
        else:
            inner[str(number)] = array
        held.append(variable)
