"""Keras's HDF5 files, by h5py: weights of Keras 3, and models and weights of Keras 1 and 2."""

from __future__ import annotations

import importlib
import itertools
import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hybridflow.errors import CheckpointError
from hybridflow.weights.arrays import MAX_DEPTH, STAGE, Entry, check_count, unread

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MAX_RATIO = 1100  # bytes that one byte of a compressed array may become; deflate makes 1032 of it
_SLACK = 1 << 16
_MAX_TEXT = 1 << 28


def module(path: str) -> Any:
    """h5py.  Raises CheckpointError where it is not installed."""
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise CheckpointError(
            STAGE, f"{path} is an HDF5 file, which h5py reads: pip install 'hybridflow[keras-files]'."
        ) from None


class LegacyLayer(NamedTuple):
    """A layer in a file of Keras 1 or 2: its weights in their order, by the names that they had."""

    name: str
    weights: list[tuple[str, Entry]]


def opened(file: object, path: str) -> Any:
    """An open HDF5 file: of a path, or a stream."""
    return module(path).File(file, "r")


def datasets(group: object) -> dict[str, Entry]:
    """All arrays below a group by their paths."""
    return dict(_entries(group, "", 0, itertools.count()))


def _entries(group: Any, path: str, depth: int, met: Iterator[int]) -> Iterator[tuple[str, Entry]]:
    if depth > MAX_DEPTH:
        raise ValueError("it is nested too deep")
    for name in group:
        check_count(next(met))  # groups, too: few that hold each other twice are very many
        child, where = _hard(group, name), f"{path}/{name}" if path else name
        if _is_group(child):
            yield from _entries(child, where, depth + 1, met)
        else:
            yield where, entry(child)


def _is_group(value: object) -> bool:
    return hasattr(value, "keys")


def _hard(group: Any, name: str) -> Any:
    """A member.  Raises ValueError for links, which may lead out of the file or in circles."""
    link = group.get(name, getlink=True)
    if type(link).__name__ != "HardLink":
        raise ValueError(f"{name!r} is a link, which may lead out of the file")
    return group[name]


def entry(dataset: Any) -> Entry:
    """An array of a file.  Raises ValueError where its elements lie in other files, or are more than there are."""
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{dataset.name} has its elements in other files")
    if dataset.shape is None:
        raise ValueError(f"{dataset.name} has no elements")
    result = unread(dataset.shape, dataset.dtype, lambda: _read(dataset))
    wanted = math.prod(result.shape) * result.dtype.itemsize
    if wanted > _SLACK + _MAX_RATIO * dataset.id.get_storage_size():
        raise ValueError(f"{dataset.name} of the shape {result.shape} is larger than what the file holds")
    return result


def _read(dataset: Any) -> np.ndarray:
    array = np.asarray(dataset[()])
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).reshape(dataset.shape)


def attribute_texts(holder: Any, name: str) -> list[str]:
    """An attribute that is a list of texts.  Long ones are kept in pieces: ``name0``, ``name1`` ..."""
    if name in holder.attrs:
        pieces = [holder.attrs[name]]
    else:
        pieces = []
        while f"{name}{len(pieces)}" in holder.attrs:
            pieces.append(holder.attrs[f"{name}{len(pieces)}"])
    return [text(one) for piece in pieces for one in np.asarray(piece, object).ravel().tolist()]


def text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def is_legacy(file: object) -> bool:
    """Whether it is a file of Keras 1 or 2: a model, or its weights."""
    group = _model_weights(file)
    return "layer_names" in group.attrs or "layer_names0" in group.attrs


def _model_weights(file: Any) -> Any:
    """The group with the weights: of a file of a whole model, or the file itself."""
    return _hard(file, "model_weights") if "model_weights" in list(file) else file


def legacy_layers(file: object) -> list[LegacyLayer]:
    """The layers of a file of Keras 1 or 2, in their order."""
    group = _model_weights(file)
    result = []
    for name in attribute_texts(group, "layer_names"):
        layer = _at(group, name)
        weights = [(one, entry(_at(layer, one))) for one in attribute_texts(layer, "weight_names")]
        result.append(LegacyLayer(name, weights))
    check_count(sum(len(layer.weights) for layer in result))
    return result


def _at(group: object, path: str) -> Any:
    for part in path.split("/"):
        if part:
            group = _hard(group, part)
    return group


def configuration(file: Any, name: str) -> dict[str, Any] | None:
    """A description in a file of Keras 1 or 2, ``model_config`` or ``training_config``; None where there is none."""
    attribute = file.attrs.get(name)
    if attribute is None:
        return None
    written = text(attribute)
    if len(written) > _MAX_TEXT:
        raise ValueError("its configuration is longer than that of any model")
    config = json.loads(written)
    if not isinstance(config, dict):
        raise ValueError("its configuration is none")
    return config
