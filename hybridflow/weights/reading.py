"""Which kind of file there is, by what is in it, and its arrays."""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import Any

from hybridflow.checkpoint import files
from hybridflow.core.file_errors import reading
from hybridflow.core.file_kinds import kind_of
from hybridflow.errors import CheckpointError
from hybridflow.weights import archives, hdf5, tensor_bundle, torch_files
from hybridflow.weights.arrays import STAGE, Entry, Weights, check_count, unread

_ZIP = b"PK\x03\x04"
_SHARDS = ".safetensors.index.json"
KERAS_WEIGHTS = "model.weights.h5"
_MAX_INDEX = 1 << 28


def read(path: str | os.PathLike[str]) -> Weights:
    """Read the weights of another program.

    What is in the file says its kind, not its ending:

    - safetensors, alone or in several files with a ``model.safetensors.index.json``;
    - NumPy's ``.npz``;
    - PyTorch's ``.pt`` and ``.pth`` with tensors in dicts and lists, new ones and those before 1.6;
    - Keras's ``.keras``, ``.weights.h5`` and ``.h5`` (these three need h5py: the extra ``keras-files``);
    - TensorFlow's checkpoints, by their prefix, and folders of SavedModels, whose variables are read.

    Nothing in a file is run: a pickle may name storages of tensors and little else.

    Args:
        path: the file, the prefix of a checkpoint, or a folder.

    Returns:
        The arrays by name, as an ``hf.weights.Weights``; each is read when it is asked for.

    Raises:
        CheckpointError: for a file that is damaged, of another kind, or names what could run code.
        FileNotFoundError: where there is none.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "arrays.npz")
    >>> np.savez(path, kernel=np.ones((2, 3), np.float32), bias=np.zeros(3, np.float32))
    >>> weights = hf.weights.read(path)
    >>> list(weights)
    ['kernel', 'bias']
    >>> weights["bias"]
    <Tensor f32[3] cpu> [0. 0. 0.]
    """
    name = os.fspath(path)
    with reading(CheckpointError, STAGE, name):
        kind, entries = _recognized(name)
    return Weights(name, kind, entries)


def _recognized(path: str) -> tuple[str, dict[str, Entry]]:
    if os.path.isdir(path):
        return _folder(path)
    if not os.path.exists(path) and os.path.exists(path + tensor_bundle.INDEX):
        return "tensorflow", tensor_bundle.entries(path)
    if path.endswith(_SHARDS):
        return "safetensors", _sharded(path)
    with open(path, "rb") as file:
        head = file.read(32)
    if head.startswith(_ZIP):
        return _archive(path)
    if head.startswith(hdf5.SIGNATURE):
        file = hdf5.opened(path, path)
        return ("keras-legacy", _legacy(file)) if hdf5.is_legacy(file) else ("keras", hdf5.datasets(file))
    if head.startswith(torch_files.old_magic()):
        return "torch", torch_files.entries_of_old_file(path, os.path.getsize(path))
    if path.endswith(tensor_bundle.INDEX):
        return "tensorflow", tensor_bundle.entries(path.removesuffix(tensor_bundle.INDEX))
    if head[8:9] == b"{":
        return "safetensors", _safetensors(path)
    other = kind_of(path)
    raise CheckpointError(
        STAGE,
        f"{path} is none of safetensors, .npz, PyTorch's, Keras's or TensorFlow's files"
        + (f", but {other}" if other else "")
        + ". A SavedModel is read by its folder.",
    )


def _folder(path: str) -> tuple[str, dict[str, Entry]]:
    variables = os.path.join(path, "variables", "variables")
    if os.path.exists(variables + tensor_bundle.INDEX):
        return "tensorflow", tensor_bundle.entries(variables)
    for name in (f"model{_SHARDS}", "model.safetensors"):
        if os.path.exists(os.path.join(path, name)):
            return _recognized(os.path.join(path, name))
    raise ValueError("the folder holds neither a SavedModel nor a model.safetensors")


def _archive(path: str) -> tuple[str, dict[str, Entry]]:
    archive = archives.opened(path)
    names = archive.namelist()
    if KERAS_WEIGHTS in names:
        return "keras", hdf5.datasets(hdf5.opened(keras_weights(archive), path))
    if any(name.rpartition("/")[2] == "data.pkl" for name in names):
        return "torch", torch_files.entries_of_archive(archive)
    if any(name.endswith(".npy") for name in names):
        return "npz", archives.arrays(archive)
    raise ValueError("the archive holds no arrays of NumPy's, PyTorch's or Keras's")


def keras_weights(archive: zipfile.ZipFile) -> Any:
    """The weights in a ``.keras`` file, as a stream."""
    return io.BytesIO(archives.member(archive, KERAS_WEIGHTS))


def _legacy(file: object) -> dict[str, Entry]:
    return {f"{layer.name}/{name}": entry for layer in hdf5.legacy_layers(file) for name, entry in layer.weights}


def _safetensors(path: str) -> dict[str, Entry]:
    file = files.File(path)

    def one(name: str) -> Entry:
        return unread(file.shape(name), file.dtype(name), lambda: file.tensor(name).numpy())

    check_count(len(file.names))
    return {name: one(name) for name in file.names}


def _sharded(path: str) -> dict[str, Entry]:
    """The arrays of several files, which a table names: those beside it, and no others."""
    if os.path.getsize(path) > _MAX_INDEX:
        raise ValueError("its table is longer than that of any model")
    with open(path, encoding="utf-8") as file:
        places = json.load(file)["weight_map"]
    check_count(len(places))
    shards: dict[str, dict[str, Entry]] = {}
    result = {}
    for name, place in places.items():
        if not isinstance(place, str) or place != os.path.basename(place) or place in ("", ".", ".."):
            raise ValueError(f"{place!r} is no file beside it")
        if place not in shards:
            shards[place] = _safetensors(os.path.join(os.path.dirname(path), place))
        result[name] = shards[place][name]
    return result
