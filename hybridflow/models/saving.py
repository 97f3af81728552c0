"""Whole models in one file: how they are made, their weights, and the state of their training."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hybridflow.checkpoint import Checkpoint
from hybridflow.checkpoint.checkpoint import opened, written
from hybridflow.checkpoint.object_graph import OF_MODELS, OF_SOME_MODELS
from hybridflow.core.allocation_limit import room_for
from hybridflow.core.file_errors import reading
from hybridflow.errors import ArgumentError, CheckpointError
from hybridflow.layers.functional_graph import build_for, symbols_of
from hybridflow.models import keras_files
from hybridflow.models.model import Model
from hybridflow.models.serialization import from_text, to_text

_VERSION = 1


def save_model(model: object, filepath: str | os.PathLike[str], overwrite: bool = True) -> None:
    """Save a model in one file: its configuration, its weights, what ``compile`` was given, and the optimizer's state.

    The file is in the safetensors format, whose metadata hold the rest as JSON; ``hf.models.load_model`` reads it.
    ``model.keras`` is a file that Keras 3 reads, too: with its layers, weights and what ``compile`` was given.  It is
    written by h5py, the extra ``keras-files``.  The name ``model.h5`` stands for ``model.h5.safetensors``.

    Args:
        model: a model.
        filepath: a path.
        overwrite: whether a file that is there may be replaced.

    Returns:
        None.

    Raises:
        FileExistsError: for a file that is there, unless ``overwrite``.
        ArgumentError: for what is no model, and for a path that is a folder.
        ArgumentTypeError: for a model whose configuration holds what cannot be written.
        CheckpointError: for a path that ends in ``.keras`` where h5py is not installed.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
    >>> model.compile("adam", "mse")
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> hf.models.save_model(model, path)
    >>> os.path.exists(path)
    True
    """
    if not isinstance(model, Model):
        raise ArgumentError("save_model", f"{model!r:.60} is no model.")
    path = written(filepath)
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{path} is there, and overwrite is False")
    if os.path.isdir(path):
        raise ArgumentError("save_model", f"{path} is a folder; give the path of a file, such as 'model.keras'.")
    header = {
        "version": _VERSION,
        "architecture": to_text(model, model.name),
        "shape": to_text(model._seen_shape, model.name),
        "dtype": None if model._seen_dtype is None else str(model._seen_dtype),
        "compiled": to_text(model._compiled and model._compiled.arguments(), model.name),
    }
    checkpoint = Checkpoint(**_parts(model), **header)
    if path.endswith(keras_files.SUFFIX):
        keras_files.save(model, path, checkpoint)
    else:
        checkpoint.write(path)


def load_model(
    filepath: str | os.PathLike[str],
    custom_objects: Mapping[str, Any] | None = None,
    compile: bool = True,
) -> Any:
    """Load the model of a file that ``hf.models.save_model`` wrote, as it was: training goes on where it was.

    Keras's files are read, too: ``.keras`` of Keras 3, and ``.h5`` of Keras 1 and 2, for which h5py has to be there
    (the extra ``keras-files``).  Of those that Keras wrote, the layers and weights are read, and what ``compile`` was
    given; the optimizer's state is not.  Nothing in a file is run: it names classes that there are.

    Args:
        filepath: a path.
        custom_objects: classes and functions of your own by the names that the file has for them. Classes that were
            defined are found by their names without it.
        compile: whether the model is compiled as it was.

    Returns:
        A model.

    Raises:
        CheckpointError: for a file that is damaged or of another kind.
        ArgumentError: for an unknown name.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> model.save(path)
    >>> bool(hf.all(hf.models.load_model(path)(hf.ones((1, 3))) == model(hf.ones((1, 3)))))
    True
    """
    if not keras_files.is_keras_file(filepath):
        return _restored(filepath, os.fspath(filepath), custom_objects, compile, None)
    name = os.fspath(filepath)
    with keras_files.own_state(name) as inside:
        if inside is None:
            return keras_files.load(name, custom_objects, compile)
        return _restored(inside, name, custom_objects, compile, name)


def _restored(
    path: str | os.PathLike[str],
    name: str,
    custom_objects: Mapping[str, Any] | None,
    compile: bool,
    weights: str | None,
) -> Any:
    """The model of a file of ours, which is called ``name``; ``weights`` is a file of Keras's with its weights."""
    file, header, _ = opened(path)
    version = header.get("version")
    if not isinstance(version, int) or any(not isinstance(header.get(name), str) for name in _TEXTS):
        raise CheckpointError("load_model", f"{name} holds no model, as save_model writes them.")
    if version > _VERSION:
        raise CheckpointError("load_model", f"{name} is of format {version}; this hybridflow reads up to {_VERSION}.")
    shapes = [file.shape(one) for one in file.names]
    if weights is not None:
        shapes += keras_files.shapes(weights)
    with reading(CheckpointError, "load_model", name, ArgumentError), room_for(shapes):
        model = _created(name, header, custom_objects, compile)
    assigned = set() if weights is None else keras_files.assign(model, weights)
    checkpoint = Checkpoint(
        **_parts(model), **dict.fromkeys([one for one in (*OF_MODELS, *OF_SOME_MODELS) if one in header])
    )
    report = checkpoint.restore(path, partial=not compile or weights is not None)
    lacking = [one for one in report.missing if one not in assigned]
    left = [one for one in report.unused if compile or one.startswith("model.")]  # the optimizer's are not asked for
    if lacking or left:
        raise CheckpointError(
            "load_model", f"{name} is of another model, or damaged: it lacks {lacking[:5]}, and has {left[:5]} besides."
        )
    return model


def _created(path: str, told: Mapping[str, Any], custom_objects: Mapping[str, Any] | None, compile: bool) -> Any:
    """The model of a file, with what it was compiled with, before it has its state."""
    model = from_text(told["architecture"], "load_model", custom_objects)
    shape = from_text(told["shape"], "load_model")
    if not isinstance(model, Model):
        raise CheckpointError("load_model", f"{path} holds {model!r:.60}, which is no model.")
    if shape is not None and not model.built:
        build_for(model, symbols_of(shape, told.get("dtype") or model.compute_dtype))
    arguments = from_text(told["compiled"], "load_model", custom_objects) if compile else None
    if arguments is not None:
        model.compile(**arguments)
    return model


_TEXTS = OF_MODELS[1:]


def _parts(model: Model) -> dict[str, Any]:
    """What has a state."""
    return {"model": model} | ({"optimizer": model.optimizer} if model.compiled else {})


Model._save = staticmethod(save_model)
Model._save_as_keras = staticmethod(keras_files.save_weights)
