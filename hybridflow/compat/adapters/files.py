"""Datasets, checkpoints and saved functions with TensorFlow's arguments."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import convert_to_tensor
from hybridflow.compat.facade import Facade


def _of_lists(tensors: Any) -> Any:
    """A list of numbers is a tensor, as TensorFlow makes one; tuples and dicts are structures."""
    if isinstance(tensors, dict):
        return {key: _of_lists(value) for key, value in tensors.items()}
    if isinstance(tensors, tuple):
        return tuple([_of_lists(value) for value in tensors])
    return convert_to_tensor(tensors) if isinstance(tensors, (list, bool, int, float)) else tensors


def from_tensor_slices(tensors: Any, name: str | None = None) -> Any:
    """``tf.data.Dataset.from_tensor_slices``."""
    return hf.data.Dataset.from_tensor_slices(_of_lists(tensors))


def from_tensors(tensors: Any, name: str | None = None) -> Any:
    """``tf.data.Dataset.from_tensors``."""
    return hf.data.Dataset.from_tensors(_of_lists(tensors))


Dataset = Facade(
    hf.data.Dataset,
    hf.data.Dataset,
    {"from_tensor_slices": from_tensor_slices, "from_tensors": from_tensors},
)


def cardinality(dataset: Any) -> Any:
    """``tf.data.experimental.cardinality``."""
    return dataset.cardinality()


def latest_checkpoint(checkpoint_dir: Any, latest_filename: Any = None) -> str | None:
    """``tf.train.latest_checkpoint``: of any name, the newest."""
    found = [path for path in Path(checkpoint_dir).glob("*-*.safetensors") if path.stem.rpartition("-")[2].isdigit()]
    return str(max(found, key=_age)) if found else None


def _age(path: Path) -> tuple[int, int]:
    return path.stat().st_mtime_ns, int(path.stem.rpartition("-")[2])


def save(obj: Any, export_dir: Any, signatures: Any = None, options: Any = None) -> None:
    """``tf.saved_model.save``: one file at that path."""
    folder = os.path.dirname(os.fspath(export_dir))
    if folder:
        os.makedirs(folder, exist_ok=True)
    hf.saved.save(obj, export_dir, signatures)


def load(export_dir: Any, tags: Any = None, options: Any = None) -> Any:
    """``tf.saved_model.load``."""
    return hf.saved.load(export_dir)


def read_file(filename: Any, name: str | None = None) -> bytes:
    """``tf.io.read_file``: bytes."""
    return Path(filename).read_bytes()


def write_file(filename: Any, contents: bytes | str, name: str | None = None) -> None:
    """``tf.io.write_file``; folders that are not there are made."""
    Path(filename).parent.mkdir(parents=True, exist_ok=True)
    Path(filename).write_bytes(contents.encode() if isinstance(contents, str) else contents)


def matching_files(pattern: Any, name: str | None = None) -> list[str]:
    """``tf.io.matching_files``, and ``tf.io.gfile.glob``."""
    import glob

    return sorted(glob.glob(os.fspath(pattern)))


def exists(path: Any) -> bool:
    """``tf.io.gfile.exists``."""
    return os.path.exists(path)


def makedirs(path: Any) -> None:
    """``tf.io.gfile.makedirs``."""
    os.makedirs(path, exist_ok=True)


def decode_raw(input_bytes: bytes, out_type: Any, little_endian: bool = True, name: str | None = None) -> Any:
    """``tf.io.decode_raw``, of one text of bytes."""
    order = np.dtype(getattr(out_type, "dtype", out_type)).newbyteorder("<" if little_endian else ">")
    return hf.asarray(np.frombuffer(input_bytes, order).astype(order.newbyteorder("=")))


def open_file(name: Any, mode: str = "r") -> Any:
    """``tf.io.gfile.GFile``."""
    return open(name, mode)


isdir, listdir, rmtree, remove = os.path.isdir, os.listdir, shutil.rmtree, os.remove


def _manager(
    checkpoint: Any, directory: Any, max_to_keep: int | None = 5, keep_checkpoint_every_n_hours: Any = None,
    checkpoint_name: str = "ckpt", step_counter: Any = None, checkpoint_interval: Any = None, init_fn: Any = None,
) -> Any:  # fmt: skip
    """``tf.train.CheckpointManager``."""
    return hf.checkpoint.CheckpointManager(
        checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours, checkpoint_name, init_fn
    )


CheckpointManager = Facade(hf.checkpoint.CheckpointManager, _manager)
