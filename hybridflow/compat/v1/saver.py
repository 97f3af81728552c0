"""``tf.train.Saver``: variables of a session in files of the safetensors format."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.checkpoint import files, load_arrays, save_arrays
from hybridflow.compat.v1.dtype_names import shown
from hybridflow.compat.v1.errors import NotFoundError
from hybridflow.compat.v1.variable_functions import global_variables

if TYPE_CHECKING:
    from hybridflow.compat.v1.session import Session


SUFFIX = ".safetensors"
INDEX = "checkpoint"


class CheckpointState(NamedTuple):
    """What is known of a folder: the last file that was saved there, and all that were kept."""

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]


class Saver:
    """Saves variables of a session, and restores them: all, those of a list, or those of a dict by other names."""

    def __init__(
        self,
        var_list: Iterable[Any] | None = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: object = None,
        builder: object = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: object = 2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        refused = {"saver_def": saver_def, "builder": builder, "defer_build": defer_build, "filename": filename}
        if wrong := [key for key, value in refused.items() if value]:
            raise NotImplementedError(f"tf.train.Saver has no {', '.join(wrong)} in hybridflow: leave it out.")
        chosen = global_variables() if var_list is None else var_list
        if not chosen and not allow_empty:
            raise ValueError("No variables to save")
        self._pads = pad_step_number
        if isinstance(chosen, Mapping):
            self._variables = dict(chosen)
        else:
            self._variables = {v.op.name: v for v in chosen}
        self._most, self._reshape = max_to_keep, reshape
        self._kept: list[str] = []

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: object = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Save; returns the path, with the step behind it, that ``restore`` takes, or None where nothing is saved."""
        if not self._variables:
            return None
        step = global_step
        if step is not None and not isinstance(step, (int, np.integer)):
            step = sess.run(step)
        # TensorFlow writes steps with eight digits where it is to pad them.
        number = "" if step is None else f"-{int(step):08d}" if self._pads else f"-{int(step)}"
        path = os.fspath(save_path) + number
        values = sess.run(list(self._variables.values()))
        save_arrays(path + SUFFIX, dict(zip(self._variables, values)))
        if path in self._kept:
            self._kept.remove(path)
        self._kept.append(path)
        while self._most and len(self._kept) > self._most:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self._kept.pop(0) + SUFFIX)
        if write_state:
            update_checkpoint_state(os.path.dirname(path), path, self._kept, latest_filename)
        return path

    def restore(self, sess: Session, save_path: str) -> None:
        """Give variables the values of a file.  Raises ValueError where it is not there, NotFoundError where it
        lacks one of them."""
        if not self._variables:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        if not checkpoint_exists(save_path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {save_path}")
        arrays = load_arrays(save_path + SUFFIX)
        for name, variable in self._variables.items():
            if name not in arrays:
                raise NotFoundError(
                    "Saver", f"Key {name} not found in checkpoint {save_path}; it has {', '.join(arrays)}."
                )
            value = arrays[name].numpy()
            if not variable.shape.is_compatible_with(value.shape):
                if not self._reshape:
                    raise ValueError(f"{name} has shape {variable.shape}, in the checkpoint {value.shape}.")
                value = value.reshape(variable.shape.as_list())
            sess.state.load(variable, value.astype(np.dtype(variable.dtype)))

    @property
    def last_checkpoints(self) -> list[str]:
        return list(self._kept)


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    return os.path.exists(os.fspath(checkpoint_prefix) + SUFFIX)


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Iterable[Any] | None = None,
    latest_filename: str | None = None,
) -> None:
    """Note in a folder which file is the last."""
    os.makedirs(save_dir or ".", exist_ok=True)
    place = os.path.join(save_dir, latest_filename or INDEX)
    paths = [os.path.basename(p) for p in all_model_checkpoint_paths or [model_checkpoint_path]]
    told = json.dumps({"last": os.path.basename(model_checkpoint_path), "all": paths})
    files.replace(place, lambda file: file.write(told.encode()))


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """What is known of a folder, or None."""
    try:
        with open(os.path.join(checkpoint_dir, latest_filename or INDEX), encoding="utf-8") as file:
            told = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    paths = [os.path.join(checkpoint_dir, name) for name in told["all"]]
    return CheckpointState(os.path.join(checkpoint_dir, told["last"]), paths)


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The last file that was saved into a folder, if it is there."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    return state.model_checkpoint_path if state and checkpoint_exists(state.model_checkpoint_path) else None


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """Names and shapes of what a file holds."""
    path = latest_checkpoint(ckpt_dir_or_file) if os.path.isdir(ckpt_dir_or_file) else ckpt_dir_or_file
    return sorted((name, list(value.shape)) for name, value in load_arrays(f"{path}{SUFFIX}").items())


def load_variable(ckpt_dir_or_file: str, name: str) -> np.ndarray:
    path = latest_checkpoint(ckpt_dir_or_file) if os.path.isdir(ckpt_dir_or_file) else ckpt_dir_or_file
    return load_arrays(f"{path}{SUFFIX}")[name].numpy()


class CheckpointReader:
    """What a file holds, without a graph."""

    def __init__(self, path: str) -> None:
        prefix = latest_checkpoint(path) if os.path.isdir(path) else path
        if prefix is None or not checkpoint_exists(prefix):
            raise NotFoundError("CheckpointReader", f"there is no checkpoint {path!r}.")
        self._arrays = load_arrays(f"{prefix}{SUFFIX}")

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        return {name: list(value.shape) for name, value in self._arrays.items()}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        return {name: shown(value.dtype) for name, value in self._arrays.items()}

    def has_tensor(self, name: str) -> bool:
        return name in self._arrays

    def get_tensor(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            raise NotFoundError("CheckpointReader", f"Key {name} not found in checkpoint.")
        return self._arrays[name].numpy()


load_checkpoint = NewCheckpointReader = CheckpointReader
__all__ = ["Saver", "checkpoint_exists", "get_checkpoint_state", "latest_checkpoint", "list_variables", "load_variable"]
