"""Data that a configuration names, as arrays: each kind is a function, whose signature says what ``[data]`` takes."""

from __future__ import annotations

import csv as csv_files
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.cli.training import signatures
from hybridflow.cli.training.config import Config
from hybridflow.data import FixedLenFeature, TFRecordDataset, parse_example
from hybridflow.errors import ArgumentError, DataError

_STAGE = "data"
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")


class Table(NamedTuple):
    """Inputs, labels or None, and the names of the classes where labels are texts or folders."""

    x: Any
    y: object
    classes: list[str] | None = None


def npz(path: str, x: str | list = "x", y: str | list = "y", *, classes: object = None) -> Table:
    """Arrays of a ``.npz`` file; several names give a model several inputs, or outputs."""
    with np.load(path, allow_pickle=False) as held:
        arrays = dict(held)
    has_labels = all(name in arrays for name in _listed(y))
    return Table(_arrays(arrays, x), _arrays(arrays, y) if has_labels else None)


def _listed(names: Any) -> list[str]:
    return list(names) if isinstance(names, (list, tuple)) else [names]


def _arrays(arrays: dict[str, np.ndarray], names: Any) -> Any:
    for name in _listed(names):
        if name not in arrays:
            raise ArgumentError(_STAGE, f"there is no array {name!r}; there are {', '.join(arrays)}.", "")
        if arrays[name].dtype.kind not in "biuf":
            raise ArgumentError(_STAGE, f"the array {name!r} is of {arrays[name].dtype}; give numbers.", "")
    if isinstance(names, (list, tuple)):
        return {name: _usual(arrays[name]) for name in names}
    return _usual(arrays[names])


def _usual(array: np.ndarray) -> np.ndarray:
    """What models compute with: float32 in the place of wider numbers, int64 of narrower ones."""
    return array.astype(np.float32 if array.dtype.kind == "f" else array.dtype if array.dtype.kind == "b" else np.int64)


def csv(
    path: str,
    label: str,
    columns: list | None = None,
    delimiter: str = ",",
    *,
    classes: Sequence[str] | None = None,
) -> Table:
    """A CSV file with a line of names: ``columns`` are numbers, the label is one, or the name of a class."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv_files.reader(file, delimiter=delimiter)
        names = next(reader, [])
        rows = [row for row in reader if row]
    chosen = [name for name in names if name != label] if columns is None else list(columns)
    for name in chosen:
        if name not in names:
            raise ArgumentError(_STAGE, f"there is no column {name!r}; there are {', '.join(names)}.", "")
    places = [names.index(name) for name in chosen]
    x = np.array([[_number(row, k, names, line + 2) for k in places] for line, row in enumerate(rows)], np.float32)
    x = x.reshape(len(rows), len(places))
    if label not in names:
        return Table(x, None)
    place = names.index(label)
    texts = [row[place] if place < len(row) else "" for row in rows]
    try:
        if classes is None:
            return Table(x, _numbers(texts))
    except ValueError:
        classes = sorted(set(texts))
    return Table(x, _places(texts, classes), list(classes))


def _number(row: Sequence[str], place: int, names: Sequence[str], line: int) -> float:
    try:
        return float(row[place])
    except (ValueError, IndexError):
        text = row[place] if place < len(row) else ""
        message = f"line {line}: the column {names[place]!r} has {text!r:.40}, which is no number."
        raise DataError(_STAGE, message, "") from None


def _numbers(texts: list[str]) -> np.ndarray:
    try:
        return np.array([int(text) for text in texts], np.int64)
    except ValueError:
        return np.array([float(text) for text in texts], np.float32)


def _places(texts: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    by_name = {name: place for place, name in enumerate(classes)}
    unknown = next((text for text in texts if text not in by_name), None)
    if unknown is not None:
        raise DataError(_STAGE, f"the label {unknown!r:.40} is none of the classes {', '.join(classes)}.", "")
    return np.array([by_name[text] for text in texts], np.int64)


def tfrecord(path: str, features: dict, label: str, *, classes: object = None) -> Table:
    """Examples of a TFRecord file: ``features = {image = {shape = [28, 28], dtype = "float32"}, label = {}}``."""
    kinds = {}
    for name, one in features.items():
        if not isinstance(one, dict) or not set(one) <= {"shape", "dtype"}:
            raise ArgumentError(_STAGE, f"the feature {name!r} is {one!r:.40}; write {{shape = [3]}}.", "")
        usual = "int64" if name == label else "float32"
        kinds[name] = FixedLenFeature(tuple(one.get("shape", ())), one.get("dtype", usual))
    records = [record.item() if hasattr(record, "item") else record for record in TFRecordDataset(path)]
    held = {name: value.numpy() for name, value in parse_example(records, kinds).items()}
    y = held.pop(label, None)
    return Table(next(iter(held.values())) if len(held) == 1 else held, y)


def images(
    path: str,
    size: list,
    channels: int = 3,
    *,
    classes: Sequence[str] | None = None,
) -> Table:
    """Pictures in a folder for each class, as float32 from 0 to 255; ``size`` is [height, width].  Reads by Pillow."""
    try:
        from PIL import Image
    except ImportError:
        message = "image files are read by Pillow: pip install 'hybridflow[images]'."
        raise ArgumentError(_STAGE, message, "") from None
    if channels not in (1, 3, 4) or len(size) != 2 or not all(isinstance(n, int) and n > 0 for n in size):
        raise ArgumentError(_STAGE, f"size is {size} and channels {channels}; give [height, width], and 1, 3 or 4.", "")
    folders = sorted(one.name for one in os.scandir(path) if one.is_dir())
    files = [(name, file) for name in folders or [""] for file in _pictures(os.path.join(path, name))]
    if not files:
        raise DataError(_STAGE, f"{path} holds no pictures.", "")
    x = np.empty((len(files), *size, channels), np.float32)
    for place, (_, file) in enumerate(files):
        try:
            with Image.open(file) as image:
                pixels = image.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels]).resize((size[1], size[0]))
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(_STAGE, f"{file} is no picture: {error}.", "") from None
        x[place] = np.asarray(pixels).reshape(*size, channels)
    if not folders:
        return Table(x, None)
    classes = folders if classes is None else classes
    return Table(x, _places([name for name, _ in files], classes), list(classes))


def _pictures(folder: str) -> list[str]:
    return sorted(one.path for one in os.scandir(folder) if one.name.lower().endswith(_PICTURES))


KINDS: dict[str, Callable[..., Table]] = {"npz": npz, "csv": csv, "tfrecord": tfrecord, "images": images}


def _common(
    kind: str,
    scale: float = 1.0,
    validation: float | str = 0.0,
    test: str | None = None,
) -> None:
    """What all kinds take: a factor of the inputs, a share or a file to validate on, a file for ``eval``."""


def parameters(kind: str) -> dict[str, inspect.Parameter]:
    """What ``[data]`` takes for a kind."""
    accepted = {name: one for name, one in signatures.parameters(KINDS[kind]).items() if name != "classes"}
    return {**signatures.parameters(_common), **accepted}


class Data:
    """The data of a configuration: what is learned, what is validated on, and what files hold in the same form."""

    def __init__(self, config: Config, classes: list[str] | None = None) -> None:
        value = config.values.get("data")
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in KINDS:
            place = ("data", "kind") if isinstance(kind, str) else ("data",)
            what = f"there is no kind {kind!r}" if kind else "it needs a kind"
            raise config.error(place, f"{what}; there are {', '.join(KINDS)}.")
        self._config, self._kind, self.classes = config, kind, classes
        arguments = signatures.checked(config, ("data",), value, parameters(kind), kind)
        self.validation, self.test = arguments.pop("validation", 0.0), arguments.pop("test", None)
        self._scale = arguments.pop("scale", 1.0)
        del arguments["kind"]
        self._given = arguments
        if not isinstance(self.validation, str) and not 0 <= self.validation < 1:
            raise config.error(("data", "validation"), f"{self.validation} is no share; give 0 to 1, or a file.")

    def read(self, path: str | None = None, key: str = "path") -> Table:
        """The arrays of the configuration's file, or of another one that is like it."""
        arguments = dict(self._given)
        arguments["path"] = self._config.absolute(arguments["path"]) if path is None else path
        place = ("data", key)
        try:
            table = KINDS[self._kind](**arguments, classes=self.classes)
        except OSError as error:
            raise self._config.error(place, f"{arguments['path']}: {error.strerror or error}.") from None
        except (DataError, ArgumentError, ValueError, LookupError, EOFError, csv_files.Error) as error:
            text = signatures.text_of(error)
            raise self._config.error(place, f"{arguments['path']}: {text}") from None
        self.classes = table.classes if self.classes is None else self.classes
        x = table.x
        if self._scale != 1.0:
            x = {name: _scaled(part, self._scale) for name, part in x.items()} if isinstance(x, dict) else x
            x = x if isinstance(x, dict) else _scaled(x, self._scale)
        table = table._replace(x=x)
        counts = {len(part) if part.ndim else -1 for part in parts_of(table.x) + parts_of(table.y)}
        if len(counts) != 1 or counts <= {-1, 0}:
            raise self._config.error(
                place, f"{arguments['path']}: there are no rows, or arrays of {sorted(counts)} rows."
            )
        return table

    def split(self, seed: int) -> tuple[Table, Table | None]:
        """What is learned, and what is validated on: a file, or a share of the rows, drawn by the seed."""
        table = self.read()
        if table.y is None:
            raise self._config.error(("data",), "there are no labels to learn.")
        if isinstance(self.validation, str):
            return table, self.read(self._config.absolute(self.validation), "validation")
        if not self.validation:
            return table, None
        count = len(parts_of(table.y)[0])
        held = min(max(round(count * self.validation), 1), count - 1)
        if held < 1:
            raise self._config.error(("data", "validation"), f"there is one row: nothing of {count} can be held back.")
        order = np.random.default_rng(seed).permutation(count)
        return _rows(table, np.sort(order[held:])), _rows(table, np.sort(order[:held]))


def _scaled(array: np.ndarray, factor: float) -> np.ndarray:
    return array.astype(np.float32) * np.float32(factor)


def parts_of(value: object) -> list[Any]:
    """The arrays of one array, of a dict of them, or of None."""
    return [] if value is None else list(value.values()) if isinstance(value, dict) else [value]


def _rows(table: Table, rows: np.ndarray) -> Table:
    def cut(value: Any) -> Any:
        return {name: part[rows] for name, part in value.items()} if isinstance(value, dict) else value[rows]

    return Table(cut(table.x), cut(table.y), table.classes)
