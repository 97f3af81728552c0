"""``tf.keras.utils.text_dataset_from_directory``: texts in files, by the folders that these lie in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybridflow.compat.adapters.files import Dataset
from hybridflow.compat.export import tf_export
from hybridflow.core.string_tensor import as_strings
from hybridflow.errors import ArgumentError


def indexed(
    directory: Any, endings: Sequence[str], labels: Any, class_names: Sequence[str] | None, follow_links: bool
) -> tuple[list[str], list[int], list[str]]:
    """The files of a folder in their order, the number of the class of each, and the names of the classes.

    Raises ArgumentError where the names are not those of the folders.
    """
    root = Path(directory)
    if not root.is_dir():
        raise FileNotFoundError(f"[Errno 2] No such file or directory: {os.fspath(root)!r}")
    if labels != "inferred":
        paths = sorted(_files(root, endings, follow_links))
        if labels is not None and len(labels) != len(paths):
            raise ArgumentError(
                "dataset_from_directory",
                f"Expected the lengths of `labels` to match the number of files in the target directory. len(labels) "
                f"is {len(labels)} while we found {len(paths)} files in directory {directory}.",
            )
        outcome = [] if labels is None else [int(label) for label in labels]
        return paths, outcome, [] if labels is None else list(class_names or sorted({str(label) for label in outcome}))
    folders = sorted(part.name for part in root.iterdir() if part.is_dir() and not part.name.startswith("."))
    names = list(class_names or folders)
    if set(names) != set(folders):
        raise ArgumentError(
            "dataset_from_directory",
            "The `class_names` passed did not match the names of the subdirectories of the target directory. "
            f"Expected: {folders}, but received: {names}",
        )
    paths, numbers = [], []
    for number, name in enumerate(names):
        chosen = sorted(_files(root / name, endings, follow_links))
        paths += chosen
        numbers += [number] * len(chosen)
    return paths, numbers, names


def _files(folder: Path, endings: Sequence[str], follow_links: bool) -> list[str]:
    result = []
    for where, inner, names in os.walk(folder, followlinks=follow_links):
        inner.sort()
        result += [os.path.join(where, name) for name in names if name.lower().endswith(tuple(endings))]
    return result


def part_of(values: list[Any], split: float | None, subset: str) -> list[Any]:
    """The part of files that is for training, or for validation: the last ones."""
    if not split:
        return values
    kept = len(values) - int(split * len(values))
    return values[:kept] if subset == "training" else values[kept:]


@tf_export("keras.utils.text_dataset_from_directory", "keras.preprocessing.text_dataset_from_directory")
def text_dataset_from_directory(
    directory: Any, labels: Any = "inferred", label_mode: str | None = "int", class_names: Any = None,
    batch_size: int | None = 32, max_length: int | None = None, shuffle: bool = True, seed: int | None = None,
    validation_split: float | None = None, subset: str | None = None, follow_links: bool = False,
    format: str = "tf", verbose: bool = True,
) -> Any:  # fmt: skip
    """``tf.keras.utils.text_dataset_from_directory``: pairs of texts and labels, read when they are wanted."""
    stage = "text_dataset_from_directory"
    if label_mode not in ("int", "categorical", "binary", None):
        raise ArgumentError(stage, f"`label_mode` is {label_mode!r}. Expected 'int', 'categorical', 'binary' or None.")
    if labels is None or label_mode is None:
        labels, label_mode = None, None
    if validation_split and not 0 < validation_split < 1:
        raise ArgumentError(stage, f"`validation_split` must be between 0 and 1, received: {validation_split}")
    if bool(validation_split) != bool(subset):
        raise ArgumentError(stage, "If `subset` is set, `validation_split` must be set, and inversely.")
    if subset not in (None, "training", "validation", "both"):
        raise ArgumentError(stage, f"`subset` must be 'training', 'validation' or 'both', received: {subset!r}")
    if validation_split and shuffle and seed is None:
        raise ArgumentError(
            stage,
            "If using `validation_split` and shuffling the data, you must provide a `seed` argument, to make sure that "
            "there is no overlap between the training and validation subset.",
        )
    paths, numbers, names = indexed(directory, (".txt",), labels, class_names, follow_links)
    if label_mode == "binary" and len(names) != 2:
        raise ArgumentError(
            stage,
            f'When passing `label_mode="binary"`, there must be exactly 2 class_names. Received: class_names={names}',
        )
    if not paths:
        raise ArgumentError(stage, f"No text files found in directory {directory}. Allowed format: .txt")
    if shuffle:
        seed = int(np.random.randint(1_000_000)) if seed is None else seed
        order = np.arange(len(paths))
        np.random.RandomState(seed).shuffle(order)
        paths = [paths[k] for k in order]
        numbers = [numbers[k] for k in order] if numbers else numbers
    if verbose:
        print(f"Found {len(paths)} files belonging to {len(names)} classes.")

    def made(which: str) -> Any:
        chosen, own_numbers = part_of(paths, validation_split, which), part_of(numbers, validation_split, which)
        if verbose and validation_split:
            print(f"Using {len(chosen)} files for {which}.")
        outcome = Dataset.from_tensor_slices(_columns(chosen, own_numbers, label_mode, len(names)))
        if shuffle:
            outcome = outcome.shuffle(batch_size * 8 if batch_size else 1024, seed)
        outcome = outcome.map(
            lambda path, *label: (_read(path, max_length), *label) if label else _read(path, max_length)
        )
        if batch_size is not None:
            outcome = outcome.batch(batch_size)
        outcome = outcome.prefetch(2)
        outcome.class_names = names
        return outcome

    return (made("training"), made("validation")) if subset == "both" else made(subset or "training")


def _columns(paths: list[str], numbers: list[int], mode: str | None, count: int) -> Any:
    if mode is None:
        return as_strings(paths, "Dataset")
    labels: Any = np.array(numbers, np.int32)
    if mode == "categorical":
        labels = np.eye(count, dtype=np.float32)[labels]
    if mode == "binary":
        labels = labels.astype(np.float32)[:, None]
    return as_strings(paths, "Dataset"), labels


def _read(path: Any, most: int | None) -> Any:
    text = Path(path.numpy().decode()).read_bytes()
    return as_strings(text if most is None else text[:most], "Dataset")
