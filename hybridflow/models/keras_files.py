"""Keras's files of whole models: ``.keras`` archives, and HDF5 files of Keras 1 and 2."""

from __future__ import annotations

import io
import json
import os
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hybridflow.checkpoint import Checkpoint
from hybridflow.checkpoint.checkpoint import write_state
from hybridflow.checkpoint.files import replace
from hybridflow.checkpoint.object_graph import object_paths
from hybridflow.core.allocation_limit import room_for
from hybridflow.core.file_errors import reading
from hybridflow.errors import ArgumentError, CheckpointError, HybridflowError
from hybridflow.models.keras_config import is_keras, model_of
from hybridflow.models.model import Model

SUFFIX = ".keras"
_OWN = "hybridflow.safetensors"  # in an archive that was written here: what Keras's files do not hold
_KERAS = "3.15.1"  # the version whose files are written
_STAMP = 1980, 1, 1, 0, 0, 0  # of members: the same model is the same file
_ZIP = b"PK\x03\x04"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_CONFIG, KERAS_WEIGHTS = "config.json", "model.weights.h5"
_MAX_CONFIG = 1 << 28  # bytes


def is_keras_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file that is an archive or an HDF5 file, as Keras's are and hybridflow's are not."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(8)
    return head.startswith(_ZIP) or head == _HDF5


def save(model: Model, path: str, checkpoint: Checkpoint) -> None:
    """Write a file that Keras 3 reads.  What it holds beside Keras's own is the checkpoint, without the weights.

    Raises ArgumentTypeError for a model whose configuration cannot be written.
    """
    from hybridflow.models import keras_description
    from hybridflow.weights import keras_writing

    config = keras_description.described(model)
    if model._compiled is not None:
        config["compile_config"] = keras_description.compiled(model._compiled.arguments())
    content = io.BytesIO()
    held = {id(variable) for variable in keras_writing.write(model, content, path)}
    state = checkpoint._state()
    for name, variable in object_paths({"model": model}).items():
        if id(variable) in held:
            state.arrays.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        own_state_path = Path(folder) / _OWN
        write_state(own_state_path, state)
        members = {
            "metadata.json": json.dumps({"keras_version": _KERAS, "date_saved": "1980-01-01@00:00:00"}).encode(),
            _CONFIG: json.dumps(config).encode(),
            KERAS_WEIGHTS: content.getvalue(),
            _OWN: own_state_path.read_bytes(),
        }

    def write_into(file: Any) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in members.items():
                archive.writestr(zipfile.ZipInfo(name, _STAMP), data)

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    replace(path, write_into)


def save_weights(model: Model, path: str | os.PathLike[str]) -> None:
    """Write the weights of a model as a ``.weights.h5`` file of Keras 3's.

    Raises CheckpointError for weights that such files have no place for.
    """
    from hybridflow.weights import keras_writing

    content = io.BytesIO()
    held = {id(variable) for variable in keras_writing.write(model, content, os.fspath(path))}
    lost = [name for name, variable in model._named_weights().items() if id(variable) not in held]
    if lost:
        raise CheckpointError(
            model.name, f"Keras's files have no place for {', '.join(lost[:5])}; give a path that ends in .safetensors."
        )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    replace(path, lambda file: file.write(content.getvalue()))


@contextmanager
def own_state(path: str) -> Iterator[str | None]:
    """The part of a ``.keras`` file that was written here, as a file of its own; None for what Keras wrote."""
    from hybridflow.weights import archives

    with open(path, "rb") as file:
        is_archive = file.read(4) == _ZIP
    if not is_archive:
        yield None
        return
    with reading(CheckpointError, "load_model", path, ArgumentError), archives.opened(path) as archive:
        data = archives.member(archive, _OWN) if _OWN in archive.namelist() else None
    if data is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        state_path = Path(folder) / _OWN
        state_path.write_bytes(data)
        yield str(state_path)


def shapes(path: str) -> list[tuple[int, ...]]:
    """The shapes of the weights in a file."""
    from hybridflow.weights import reading as weights_reading

    weights = weights_reading.read(path)
    return [weights.shape(name) for name in weights]


def assign(model: Model, path: str) -> set[str]:
    """Give a model the weights of a file that was written here; the result are their paths in a checkpoint."""
    from hybridflow.weights import loading

    if not shapes(path):
        return set()
    report = loading.load_weights(model, path, "keras", skip_mismatch=True)
    if report.unused:
        raise CheckpointError("load_model", f"{path} has weights that are not of the model: {report.unused[:5]}.")
    variables = model._named_weights()
    restored = {id(variables[name]) for name in report.restored}
    return {name for name, variable in object_paths({"model": model}).items() if id(variable) in restored}


def parsed(text: Any) -> dict[str, Any] | None:
    """A configuration of Keras's; None for anything else, one of hybridflow's for example."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if is_keras(value) and "$object" not in value else None


def load(path: str, objects: Mapping[str, Any] | None, compile: bool) -> Model:
    """The model of a file of Keras's, with its weights.

    Raises CheckpointError for a damaged file, and for one of weights alone; ArgumentError for what it has and
    hybridflow has not.
    """
    from hybridflow.weights import loading, reading as weights_reading  # which few programs need

    with reading(CheckpointError, "load_model", path, ArgumentError):
        config, training = _configurations(path)
    if config is None:
        raise CheckpointError("load_model", f"{path} holds weights and no model: build it, then model.load_weights.")
    weights = weights_reading.read(path)
    with (
        reading(CheckpointError, "load_model", path, ArgumentError),
        room_for(weights.shape(name) for name in weights),
    ):
        model = model_of(config, objects)
    loading.load_weights(model, path, "keras")
    if compile and training:
        _compile(model, training, objects)
    return model


def _configurations(path: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """What describes the model, and its training."""
    from hybridflow.weights import archives, hdf5

    with open(path, "rb") as file:
        is_archive = file.read(4) == _ZIP
    if not is_archive:
        held = hdf5.opened(path, path)
        config = hdf5.configuration(held, "model_config")
        return config if is_keras(config) else None, hdf5.configuration(held, "training_config")
    with archives.opened(path) as archive:
        if _CONFIG not in archive.namelist():
            return None, None
        config = _json(archive, _CONFIG)
    return (config if is_keras(config) else None), config.get("compile_config")


def _json(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    if archive.getinfo(name).file_size > _MAX_CONFIG:
        raise ValueError("its configuration is longer than that of any model")
    from hybridflow.weights import archives

    value = json.loads(archives.member(archive, name))
    if not isinstance(value, dict):
        raise ValueError("its configuration is none")
    return value


def _compile(model: Model, training: Mapping[str, Any], objects: Mapping[str, Any] | None) -> None:
    """Compile a model as Keras had it; what hybridflow lacks is left out with a warning."""
    known = dict(objects or {})
    optimizer = training.get("optimizer_config", training.get("optimizer"))
    arguments = {
        "optimizer": _described(optimizer, known),
        "loss": _described(training.get("loss"), known),
        "metrics": _described(training.get("metrics"), known),
        "loss_weights": training.get("loss_weights"),
    }
    try:
        model.compile(**{name: value for name, value in arguments.items() if value is not None})
    except (HybridflowError, TypeError) as error:
        warnings.warn(f"{model.name} is not compiled, as it was in Keras: {error}", stacklevel=4)


def _described(value: object, known: Mapping[str, Any]) -> Any:
    """A part of what ``compile`` was given, without what Keras adds to descriptions."""
    if isinstance(value, list):
        return [_described(part, known) for part in value]
    if not isinstance(value, Mapping):
        return known.get(value, value) if isinstance(value, str) else value
    if "class_name" in value and "config" in value:
        if value["class_name"] == "function":
            return known.get(value["config"], value["config"])
        config = value["config"]
        held = config.items() if isinstance(config, Mapping) else ()
        new_config = {_OLD.get(k, k): _described(v, known) for k, v in held if v is not None and k not in _LEFT_OUT}
        return {"class_name": value["class_name"], "config": new_config}
    return {key: _described(part, known) for key, part in value.items()}


_OLD = {"lr": "learning_rate"}
_LEFT_OUT = "decay", "is_legacy_optimizer", "jit_compile", "fn", "name"
