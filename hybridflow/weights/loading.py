"""Weights of other programs given to a model."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hybridflow.core.file_errors import reading
from hybridflow.errors import ArgumentError, CheckpointError
from hybridflow.module import Module
from hybridflow.weights import archives, hdf5, keras_layout, tensorflow_layout, torch_layout
from hybridflow.weights.arrays import STAGE, Weights
from hybridflow.weights.assigning import WeightsReport, assign
from hybridflow.weights.reading import keras_weights, read

if TYPE_CHECKING:
    from hybridflow.layers.layer import Layer


SOURCES = "keras", "torch", "tf"
_IMPLIED = {"keras": "keras", "keras-legacy": "keras", "torch": "torch", "tensorflow": "tf"}
# What leaves the order of a dense layer's inputs as it is, between a Flatten and the layer.
_PASSING = "Dropout", "Activation", "ReLU", "LeakyReLU", "ELU", "Softmax", "GaussianDropout", "GaussianNoise"


def load_weights(
    model: Any,
    path: str | os.PathLike[str],
    source: str | None = None,
    rename: Mapping[str, str] | Callable[[str], str | None] | None = None,
    skip_mismatch: bool = False,
) -> WeightsReport:
    """Assign weights of a file of Keras, PyTorch or TensorFlow to a model, by rules for each class of layers.

    ``source`` says whose layout the file has where its kind does not: a safetensors file may be anybody's.  ``rename``
    maps beginnings of the file's names, or is a function of a name; what it returns None for is left out.
    """
    name = os.fspath(path)
    weights = read(name)
    layout = _layout(weights, source, name)
    if not getattr(model, "built", True) and any(True for _ in weights):
        raise ArgumentError(STAGE, f"{model.name} has no variables yet: build it, or call it once.")
    if layout == "keras" and weights.format in ("keras", "keras-legacy"):
        if rename is not None:
            raise ArgumentError(STAGE, "rename is for files whose layers are found by names: PyTorch's, TensorFlow's.")
        return _from_keras(model, name, weights.format, skip_mismatch)
    weights = weights.renamed(_renamed(weights, rename))
    if layout == "torch":
        weights = weights.renamed(_renamed(weights, model._torch_names))
        assignments = list(torch_layout.assignments(model, weights, _flattened(model)))
        left = [key for key in weights if not torch_layout.is_dropped(key)]
    else:
        assignments = list(tensorflow_layout.assignments(model, weights))
        left = [key for key in weights if not tensorflow_layout.is_beside(key)]
    used = {key for one in assignments for key in one.sources}
    return assign(
        name, list(model._named_weights()), assignments, [key for key in left if key not in used], skip_mismatch
    )


def _layout(weights: Weights, source: str | None, path: str) -> str:
    implied = _IMPLIED.get(weights.format)
    if source is not None and source not in SOURCES:
        raise ArgumentError(STAGE, f"source is {source!r}; it is one of {', '.join(map(repr, SOURCES))}.")
    if source is None and implied is None:
        raise ArgumentError(STAGE, f'{path} ({weights.format}) does not say whose it is: give source="torch".')
    if implied is not None and source not in (None, implied):
        raise ArgumentError(STAGE, f"{path} is a file of {weights.format}; source is {source!r}.")
    if source == "keras" and implied is None:
        raise ArgumentError(STAGE, f"{path} ({weights.format}) has no order of layers, as Keras's files do.")
    return source or implied or "torch"


def _from_keras(model: Layer, path: str, format: str, skip_mismatch: bool) -> WeightsReport:
    with reading(CheckpointError, STAGE, path, ArgumentError):
        with open(path, "rb") as stream:
            is_hdf5 = stream.read(8) == hdf5.SIGNATURE
        file = hdf5.opened(path if is_hdf5 else keras_weights(archives.opened(path)), path)
        if format == "keras-legacy":
            layers = hdf5.legacy_layers(file)
            assignments = list(keras_layout.of_legacy(model, layers))
            names = list(keras_layout.legacy_names(layers))
        else:
            node = keras_layout.tree(file)
            assignments = list(keras_layout.of_tree(model, node))
            names = list(keras_layout.names(node))
    used = {key for one in assignments for key in one.sources}
    unused = keras_layout.without_counts(model, [key for key in names if key not in used])
    wanted = model._named_weights()
    paths = {id(variable): name for name, variable in wanted.items()}  # one that several layers have is named once
    assignments = [one._replace(path=paths.get(id(one.variable), one.path)) for one in assignments]
    return assign(path, list(wanted), assignments, unused, skip_mismatch)


def _renamed(weights: Weights, rename: Mapping[str, str] | Callable[[str], str | None] | None) -> dict[str, str]:
    """The new name of each array."""
    result: dict[str, str] = {}
    for old in weights:
        new: str | None = old
        if callable(rename):
            new = rename(old)
        elif rename is not None:
            for start, begins in rename.items():
                if old == start or old.startswith((f"{start}.", f"{start}/")) or (start == "" and begins):
                    new = f"{begins}{old[len(start) :]}".lstrip("./")
                    break
        if new is None:
            continue
        if new in result:
            raise ArgumentError(STAGE, f"rename gives {result[new]!r} and {old!r} the name {new!r}.")
        result[new] = old
    return {old: new for new, old in result.items()}


def _flattened(model: Module) -> dict[int, tuple[int, ...]]:
    """The shapes that inputs of dense layers had before they were flattened, by the layers' ids.

    PyTorch flattens [channels, height, width], hybridflow [height, width, channels], so rows of such a layer's kernel
    have another order.
    """
    result: dict[int, tuple[int, ...]] = {}
    known = False
    for one in (model, *model.submodules):
        ends: Sequence[Any] = getattr(one, "outputs", None) or ()
        calls: dict[int, Any] = {}
        stack = [symbol.call for symbol in ends if hasattr(symbol, "call")]
        while stack:
            call = stack.pop()
            if id(call) not in calls:
                calls[id(call)] = call
                stack += [symbol.call for symbol in call.inputs()]
        known = known or bool(calls)
        for call in calls.values():
            spatial = _before(call) if type(call.layer).__name__ == "Dense" else None
            if spatial is not None:
                result[id(call.layer)] = spatial
    flat = [one for one in model.submodules if type(one).__name__ == "Flatten"]
    if flat and not known:
        warnings.warn(
            f"{model.name} has a Flatten, and no inputs that are known before it is called: a dense layer behind "
            "images takes its rows in PyTorch's order [channels, height, width]. Begin the model with hf.Input.",
            stacklevel=4,
        )
    return result


def _before(call: Any) -> tuple[int, ...] | None:
    """The shape, without the batch, of what was flattened before a call; None where nothing was."""
    while True:
        symbols = call.inputs()
        if len(symbols) != 1:
            return None
        call = symbols[0].call
        kind = type(call.layer).__name__
        if kind == "Flatten":
            (layer_input,) = call.inputs()
            shape = tuple(layer_input.shape)[1:]
            if len(shape) < 2 or any(extent is None for extent in shape):
                return None
            return shape
        if kind not in _PASSING:
            return None
