"""``tf.keras.datasets``: read from files that are there, in the folder where Keras keeps them; nothing is downloaded.

The folder is ``datasets`` in ``$KERAS_HOME``, or in ``~/.keras``.  Files in which Python's objects are pickled are read
by a reader that makes lists, dicts, numbers, texts and arrays, and nothing else.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hybridflow.compat.export import tf_export

Split = tuple[tuple[Any, Any], tuple[Any, Any]]


def folder() -> Path:
    """Where the files are."""
    return Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "datasets"


def _first_file(path: str, *others: str) -> Path:
    """The first of the files that is there.  Raises FileNotFoundError that names where the first is looked for."""
    candidates = [Path(name) if os.path.isabs(name) else folder() / name for name in (path, *others)]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise FileNotFoundError(
        f"there is no {candidates[0]}, and nothing is downloaded. Put the file there, or set KERAS_HOME to the folder "
        f"in whose 'datasets' it is."
    )


class _Reader(pickle.Unpickler):
    """Reads pickled arrays and containers of Python; a file that wants anything else is refused."""

    _known: dict[str, Callable[..., Any]] = {
        "_reconstruct": np._core.multiarray._reconstruct,
        "scalar": np._core.multiarray.scalar,
        "ndarray": np.ndarray,
        "dtype": np.dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "numpy" and name in self._known:
            return self._known[name]
        if (module, name) == ("_codecs", "encode"):
            return lambda text, *_: text.encode("latin1")
        raise pickle.UnpicklingError(f"the file wants {module}.{name}, which is no array and no container")


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file."""
    result = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            try:
                array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
            except ValueError:
                array = _of_objects(io.BytesIO(data))
            result[name.removesuffix(".npy")] = array
    return result


def _of_objects(file: io.BytesIO) -> np.ndarray:
    """An array of lists, which NumPy pickles."""
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    header(file)
    return np.asarray(_Reader(file, encoding="latin1").load(), object)


@tf_export("keras.datasets.mnist.load_data")
def mnist(path: str = "mnist.npz") -> Split:
    """``tf.keras.datasets.mnist.load_data``: 60000 and 10000 pictures of 28x28, uint8, and their digits."""
    arrays = _arrays(_first_file(path))
    return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])


@tf_export("keras.datasets.fashion_mnist.load_data")
def fashion_mnist() -> Split:
    """``tf.keras.datasets.fashion_mnist.load_data``."""
    import gzip

    def read(name: str, start: int) -> np.ndarray:
        with gzip.open(_first_file(f"fashion-mnist/{name}.gz"), "rb") as file:
            return np.frombuffer(file.read(), np.uint8, offset=start)

    parts = [
        (read(f"{part}-images-idx3-ubyte", 16).reshape(-1, 28, 28), read(f"{part}-labels-idx1-ubyte", 8))
        for part in ("train", "t10k")
    ]
    return parts[0], parts[1]


def _batches(name: str, files: list[str]) -> list[dict[Any, Any]]:
    """The pickled dicts of a CIFAR folder, or of its archive."""
    archive = folder() / f"{name}.tar.gz"
    inside = _first_file(name, f"{name}-target/{name}", f"{name}.tar.gz")
    result = []
    for file in files:
        if inside == archive:
            with tarfile.open(archive) as tar:
                member = tar.extractfile(f"{name}/{file}")
                data = member.read() if member is not None else b""
        else:
            data = _first_file(str(inside / file)).read_bytes()
        result.append(_Reader(io.BytesIO(data), encoding="bytes").load())
    return result


def _pictures(batches: list[dict[Any, Any]], label: bytes) -> tuple[np.ndarray, np.ndarray]:
    data = np.concatenate([np.asarray(batch[b"data"]) for batch in batches]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([np.asarray(batch[label], np.uint8) for batch in batches])
    return np.ascontiguousarray(data.transpose(0, 2, 3, 1)), labels.reshape(-1, 1)


@tf_export("keras.datasets.cifar10.load_data")
def cifar10() -> Split:
    """``tf.keras.datasets.cifar10.load_data``: 50000 and 10000 pictures of 32x32x3, uint8, and their classes."""
    files = [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]
    batches = _batches("cifar-10-batches-py", files)
    return _pictures(batches[:5], b"labels"), _pictures(batches[5:], b"labels")


@tf_export("keras.datasets.cifar100.load_data")
def cifar100(label_mode: str = "fine") -> Split:
    """``tf.keras.datasets.cifar100.load_data``."""
    train, test = _batches("cifar-100-python", ["train", "test"])
    label = f"{label_mode}_labels".encode()
    return _pictures([train], label), _pictures([test], label)


def _texts(
    path: str, num_words: int | None, skip_top: int, maxlen: int | None, seed: int, start_char: int | None,
    oov_char: int | None, index_from: int, test_split: float | None,
) -> Split:  # fmt: skip
    """Numbers of words, as Keras makes them of a file: shuffled, shifted, and cut."""
    arrays = _arrays(_first_file(path))
    rng = np.random.RandomState(seed)

    def shuffled(x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        order = np.arange(len(x))
        rng.shuffle(order)
        return x[order], y[order]

    if test_split is None:
        train = shuffled(arrays["x_train"], arrays["y_train"])
        test = shuffled(arrays["x_test"], arrays["y_test"])
        xs, labels, cut = [*train[0], *test[0]], np.concatenate([train[1], test[1]]), len(train[0])
    else:
        x, labels = shuffled(arrays["x"], arrays["y"])
        xs, cut = list(x), int(len(x) * (1 - test_split))
    start = [] if start_char is None else [start_char]
    rows = [[*start, *(w + (index_from if start else index_from or 0) for w in row)] for row in xs]
    if maxlen:
        kept = [k for k, row in enumerate(rows) if len(row) < maxlen]
        cut = sum(k < cut for k in kept)
        rows, labels = [rows[k] for k in kept], labels[kept]
    top = num_words or max((max(row) for row in rows if row), default=0)  # so that the last is unknown, as with Keras
    if oov_char is not None:
        rows = [[w if skip_top <= w < top else oov_char for w in row] for row in rows]
    else:
        rows = [[w for w in row if skip_top <= w < top] for row in rows]
    texts = np.empty(len(rows), object)
    texts[:] = rows
    return (texts[:cut], labels[:cut]), (texts[cut:], labels[cut:])


@tf_export("keras.datasets.imdb.load_data")
def imdb(
    path: str = "imdb.npz", num_words: int | None = None, skip_top: int = 0, maxlen: int | None = None,
    seed: int = 113, start_char: int | None = 1, oov_char: int | None = 2, index_from: int = 3, **kwargs: object,
) -> Split:  # fmt: skip
    """``tf.keras.datasets.imdb.load_data``."""
    return _texts(path, num_words, skip_top, maxlen, seed, start_char, oov_char, index_from, None)


@tf_export("keras.datasets.reuters.load_data")
def reuters(
    path: str = "reuters.npz", num_words: int | None = None, skip_top: int = 0, maxlen: int | None = None,
    test_split: float = 0.2, seed: int = 113, start_char: int | None = 1, oov_char: int | None = 2,
    index_from: int = 3,
) -> Split:  # fmt: skip
    """``tf.keras.datasets.reuters.load_data``."""
    return _texts(path, num_words, skip_top, maxlen, seed, start_char, oov_char, index_from, test_split)


@tf_export("keras.datasets.imdb.get_word_index")
def imdb_words(path: str = "imdb_word_index.json") -> dict[str, int]:
    """``tf.keras.datasets.imdb.get_word_index``."""
    return json.loads(_first_file(path).read_text(encoding="utf-8"))


@tf_export("keras.datasets.reuters.get_word_index")
def reuters_words(path: str = "reuters_word_index.json") -> dict[str, int]:
    """``tf.keras.datasets.reuters.get_word_index``."""
    return json.loads(_first_file(path).read_text(encoding="utf-8"))


def _table(path: str, test_split: float, seed: int, rows: int | None = None) -> Split:
    """The first rows of a table, shuffled and cut."""
    arrays = _arrays(_first_file(path))
    order = np.arange(len(arrays["x"][:rows]))
    np.random.RandomState(seed).shuffle(order)
    x, y = arrays["x"][order], arrays["y"][order]
    cut = int(len(x) * (1 - test_split))
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


@tf_export("keras.datasets.boston_housing.load_data")
def boston_housing(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> Split:
    """``tf.keras.datasets.boston_housing.load_data``."""
    return _table(path, test_split, seed)


@tf_export("keras.datasets.california_housing.load_data")
def california_housing(
    version: str = "large", path: str = "california_housing.npz", test_split: float = 0.2, seed: int = 113
) -> Split:
    """``tf.keras.datasets.california_housing.load_data``."""
    if version not in ("small", "large"):
        raise ValueError(f"version is {version!r}; it must be 'small' or 'large'.")
    return _table(path, test_split, seed, 600 if version == "small" else None)
