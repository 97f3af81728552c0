"""Tables that map keys to values, texts or numbers: ``hf.lookup``, with the names of ``tf.lookup``.

Tables lie on the host.  Compiled functions look up when they run; what they insert, remove and look up in mutable
tables happens in program order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir.dtypes import int64
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.context import current
from hybridflow.core.promotion import to_dtype
from hybridflow.core.string_tensor import (
    StringTensor,
    as_strings,
    holds_texts,
    is_string,
    names_strings,
    string,
)
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, entered
from hybridflow.ragged import Ragged
from hybridflow.sparse import COO
from hybridflow.strings import hashing
from hybridflow.strings.host import step

__all__ = [
    "DenseHashTable",
    "KeyValueTensorInitializer",
    "MutableHashTable",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)


def _dtype(dtype: object, stage: str) -> np.dtype[Any]:
    return string if names_strings(dtype) or _is_text_kind(dtype) else to_dtype(getattr(dtype, "dtype", dtype), stage)


def _is_text_kind(dtype: object) -> bool:
    return dtype in (str, bytes) or is_string(getattr(dtype, "dtype", dtype))


def _elements(value: object, dtype: np.dtype[Any] | None, stage: str) -> np.ndarray:
    """A value as an array of keys or values."""
    if holds_texts(value) or (dtype is not None and is_string(dtype)):
        if dtype is not None and not is_string(dtype):
            raise DTypeError(stage, f"texts were given where {dtype} is expected.")
        return as_strings(value, stage).texts
    outcome = as_tensor(value, stage, None if isinstance(value, (Tensor, np.ndarray)) else dtype)
    array = outcome.numpy()
    return array if dtype is None else array.astype(dtype)


class KeyValueTensorInitializer:
    """The content of a table: keys, and the value of each.

    Args:
        keys: texts or integers, one axis.
        values: as many texts or numbers.
        key_dtype: the dtype of the keys; their own unless given.
        value_dtype: the dtype of the values; their own unless given.
        name: ignored.

    Raises:
        ShapeError: where there are not as many values as keys.

    Example:
        >>> content = hf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
        >>> hf.lookup.StaticHashTable(content, -1).lookup(["b", "c"])
        <Tensor i64[2] cpu> [ 2 -1]
    """

    @entered
    def __init__(
        self,
        keys: object,
        values: object,
        key_dtype: object = None,
        value_dtype: object = None,
        name: str | None = None,
    ) -> None:
        stage = "lookup"
        self.keys = _elements(keys, None if key_dtype is None else _dtype(key_dtype, stage), stage)
        self.values = _elements(values, None if value_dtype is None else _dtype(value_dtype, stage), stage)
        self.key_dtype: object = string if self.keys.dtype.hasobject else self.keys.dtype
        self.value_dtype: object = string if self.values.dtype.hasobject else self.values.dtype
        if self.keys.shape != self.values.shape:
            raise ShapeError(stage, f"keys are {self.keys.shape}, values {self.values.shape}. Expected equal shapes.")

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        """Each key with its value.

        Returns:
            An iterable of pairs.
        """
        return zip(self.keys.ravel().tolist(), self.values.ravel().tolist())


class TextFileIndex:
    """What of a line of a file is a key or a value: its number, or the whole of it; other numbers are of columns.

    Args:
        *args: none; the class is not called.

    Raises:
        ArgumentTypeError: whenever the class is called.

    Example:
        >>> hf.lookup.TextFileIndex.WHOLE_LINE, hf.lookup.TextFileIndex.LINE_NUMBER
        (-2, -1)
    """

    WHOLE_LINE = -2
    LINE_NUMBER = -1

    def __init__(self, *args: object) -> None:
        raise ArgumentTypeError("TextFileIndex", "is not called; use TextFileIndex.WHOLE_LINE and LINE_NUMBER.")


class TextFileInitializer:
    """The content of a table: keys and values in the lines of a file.

    Args:
        filename: the file.
        key_dtype: the dtype of the keys.
        key_index: a column, or what of ``TextFileIndex`` is the key.
        value_dtype: the dtype of the values.
        value_index: a column, or what of ``TextFileIndex`` is the value.
        vocab_size: how many lines are read; all unless given.
        delimiter: what is between columns.
        name: ignored.
        value_index_offset: what is added to the number of a line.

    Raises:
        ArgumentError: for a column that a line has not, a text that is no number, and fewer lines than ``vocab_size``.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "words.txt")
        ...     _ = open(path, "w").write("red\\ngreen\\n")
        ...     content = hf.lookup.TextFileInitializer(path, "string", -2, "int64", -1)
        >>> hf.lookup.StaticHashTable(content, -1)["green"].item()
        1
    """

    @entered
    def __init__(
        self,
        filename: str | os.PathLike[str],
        key_dtype: object,
        key_index: int,
        value_dtype: object,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        stage = "TextFileInitializer"
        self.key_dtype, self.value_dtype = _dtype(key_dtype, stage), _dtype(value_dtype, stage)
        for index, dtype, what in ((key_index, self.key_dtype, "key"), (value_index, self.value_dtype, "value")):
            if index == TextFileIndex.LINE_NUMBER and dtype.kind not in "iu":
                raise ArgumentError(stage, f"Signature mismatch. The {what} is a line number, so it is no {dtype}.")
            if index == TextFileIndex.WHOLE_LINE and not is_string(dtype):
                raise ArgumentError(stage, f"Signature mismatch. The {what} is a line, so it is no {dtype}.")
            if index < -2:
                raise ArgumentError(stage, f"Invalid {what} index {index}.")
        path = filename.numpy().decode() if isinstance(filename, StringTensor) else os.fspath(filename)
        lines = Path(path).read_bytes().split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        if vocab_size is not None:
            if len(lines) < vocab_size:
                raise ArgumentError(stage, f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}")
            lines = lines[:vocab_size]
        between = delimiter.encode()

        def part(line: bytes, number: int, index: int, dtype: np.dtype[Any]) -> Any:
            if index == TextFileIndex.LINE_NUMBER:
                return number + value_index_offset
            if index == TextFileIndex.WHOLE_LINE:
                return line
            columns = line.split(between)
            if index >= len(columns):
                raise ArgumentError(stage, f"Invalid number of columns in {path} line {number} ({line!r:.60})")
            if is_string(dtype):
                return columns[index]
            try:
                return int(columns[index]) if dtype.kind in "iu" else float(columns[index])
            except ValueError:
                raise ArgumentError(
                    stage, f"Field {columns[index]!r:.60} in line {number} is not a valid {dtype}."
                ) from None

        self._pairs = [
            (part(line, k, key_index, self.key_dtype), part(line, k, value_index, self.value_dtype))
            for k, line in enumerate(lines)
        ]

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        """Each key with its value.

        Returns:
            An iterable of pairs.
        """
        return self._pairs


class _Table:
    """What tables have in common: a dict of Python's, dtypes, and lookups."""

    _in_order = False

    def __init__(self, key_dtype: object, value_dtype: object, default_value: object, stage: str) -> None:
        self._stage = stage
        self._key_dtype, self._value_dtype = _dtype(key_dtype, stage), _dtype(value_dtype, stage)
        self._content: dict[Any, Any] = {}
        default = _elements(default_value, self._value_dtype, stage)
        self._value_shape = default.shape
        self._default = default.item() if not default.shape else default

    @property
    def key_dtype(self) -> Any:
        """The dtype of keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> Any:
        """The dtype of values."""
        return self._value_dtype

    @property
    def default_value(self) -> Any:
        """What is found for unknown keys."""
        return self._tensor(self._column([self._default], ()), self._value_dtype)

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries.

        Args:
            name: ignored.

        Returns:
            An int64 scalar.
        """
        return step(lambda: np.int64(len(self._content)), [], [TensorType((), int64)], self._in_order)[0]

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and all values.

        Args:
            name: ignored.

        Returns:
            A pair of tensors, in the order in which entries came.
        """
        keys, values = list(self._content), list(self._content.values())
        outcome = self._tensor(self._array(keys, (len(keys),), self._key_dtype), self._key_dtype)
        return outcome, self._tensor(self._column(values, (len(values),)), self._value_dtype)

    def __getitem__(self, keys: object) -> Any:
        return self.lookup(keys)

    @entered
    def lookup(self, keys: object, name: str | None = None) -> Any:
        """The values of keys; the default for unknown ones.

        Args:
            keys: a tensor of keys, or a ragged or sparse one.
            name: ignored.

        Returns:
            A tensor of shape ``keys.shape + value.shape``; ragged or sparse as the keys are.

        >>> words = hf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
        >>> hf.lookup.StaticHashTable(words, -1).lookup(["b", "c"]).tolist()
        [2, -1]
        """
        if isinstance(keys, Ragged):
            return keys.with_values(self.lookup(keys.values))
        if isinstance(keys, COO):
            return COO(keys.indices, self.lookup(keys.values), keys.dense_shape)
        x = self._keys(keys)
        kind = TensorType((*x.shape, *self._value_shape), self._value_dtype)
        return step(self._lookup_array, [x], [kind], self._in_order)[0]

    def _keys(self, keys: object) -> Tensor:
        if is_string(self._key_dtype):
            return as_strings(keys, self._stage)
        if holds_texts(keys) or isinstance(keys, StringTensor):
            raise DTypeError(self._stage, f"keys are texts where {self._key_dtype} is expected.")
        x = as_tensor(keys, self._stage, None if isinstance(keys, (Tensor, np.ndarray)) else self._key_dtype)
        if x.dtype != self._key_dtype:
            if x.dtype.kind != self._key_dtype.kind:
                raise DTypeError(self._stage, f"keys are {x.type} where {self._key_dtype} is expected.")
            x = cast(x, self._key_dtype)
        return x

    def _lookup_array(self, keys: np.ndarray) -> Any:
        content, default = self._content, self._default
        return self._column([content.get(key, default) for key in keys.ravel().tolist()], keys.shape)

    def _column(self, values: list[Any], shape: tuple[int, ...]) -> np.ndarray:
        return self._array(values, (*shape, *self._value_shape), self._value_dtype)

    @staticmethod
    def _array(values: list[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        if is_string(dtype):
            flat = values if not values or isinstance(values[0], bytes) else [v for row in values for v in row.ravel()]
            result: Any = np.empty(len(flat), object)
            result[:] = flat
            return result.reshape(shape)
        return np.array(values, dtype).reshape(shape)

    @staticmethod
    def _tensor(array: np.ndarray, dtype: np.dtype[Any]) -> Tensor:
        return (
            as_strings(array, "lookup") if is_string(dtype) else wrap(np.ascontiguousarray(array).reshape(array.shape))
        )


class StaticHashTable(_Table):
    """A table whose content is given once.

    Args:
        initializer: its content.
        default_value: what is found for unknown keys.
        name: ignored.
        experimental_is_anonymous: ignored.

    Raises:
        ArgumentError: for a key that has two values.

    Example:
        >>> content = hf.lookup.KeyValueTensorInitializer([1, 2], ["one", "two"])
        >>> hf.lookup.StaticHashTable(content, "many").lookup([2, 3])
        <Tensor string[2] cpu> [b'two' b'many']
    """

    @entered
    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        stage = "StaticHashTable"
        if not hasattr(initializer, "pairs"):
            raise ArgumentTypeError(stage, f"initializer is {initializer!r:.60}. Expected the content of a table.")
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value, stage)
        self._name = name or "hash_table"
        for key, value in initializer.pairs():
            if self._content.setdefault(key, value) != value:
                raise ArgumentError(
                    stage,
                    f"HashTable has different value for same key. Key {key!r} has {self._content[key]!r} and trying to "
                    f"add value {value!r}",
                )

    @property
    def name(self) -> str:
        """Its name."""
        return self._name


class StaticVocabularyTable:
    """A table from words to numbers, in which unknown words have numbers of their own: by their hashes.

    Args:
        initializer: the words and their numbers, from 0 on; None for hashes alone.
        num_oov_buckets: how many numbers there are for unknown words.
        lookup_key_dtype: the dtype of the words; that of the initializer unless given.
        name: ignored.
        experimental_is_anonymous: ignored.

    Raises:
        ArgumentError: where there is no number for unknown words.

    Example:
        >>> words = hf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1])
        >>> hf.lookup.StaticVocabularyTable(words, 1).lookup(["b", "z"])
        <Tensor i64[2] cpu> [1 2]
    """

    @entered
    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: object = None, name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        stage = "StaticVocabularyTable"
        if num_oov_buckets <= 0:
            raise ArgumentError(stage, f"oov_buckets must be > 0. Received: {num_oov_buckets}")
        if initializer is None and lookup_key_dtype is None:
            raise ArgumentError(stage, "lookup_key_dtype is required where there is no initializer.")
        if initializer is not None and _dtype(initializer.value_dtype, stage) != int64:
            raise DTypeError(stage, f"Invalid `value_dtype`: expected int64 but got {initializer.value_dtype}.")
        self._table = None if initializer is None else StaticHashTable(initializer, -1)
        chosen = string if self._table is None else self._table.key_dtype
        self._key_dtype = chosen if lookup_key_dtype is None else _dtype(lookup_key_dtype, stage)
        self.num_oov_buckets = int(num_oov_buckets)

    @property
    def key_dtype(self) -> Any:
        """The dtype of keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> Any:
        """int64."""
        return int64

    def size(self, name: str | None = None) -> Tensor:
        """The number of words, and of numbers for unknown ones.

        Args:
            name: ignored.

        Returns:
            An int64 scalar.
        """
        return wrap(np.array(self._known() + self.num_oov_buckets, np.int64))

    def _known(self) -> int:
        return 0 if self._table is None else len(self._table._content)

    def __getitem__(self, keys: ArrayLike) -> Any:
        return self.lookup(keys)

    @entered
    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of words.

        Args:
            keys: a tensor of words, or a ragged or sparse one.
            name: ignored.

        Returns:
            An int64 tensor of the same shape; ragged or sparse as the words are.
        """
        if isinstance(keys, Ragged):
            return keys.with_values(self.lookup(keys.values))
        if isinstance(keys, COO):
            return COO(keys.indices, self.lookup(keys.values), keys.dense_shape)
        if self._table is not None:
            x = self._table._keys(keys)
        else:
            x = as_strings(keys, "lookup") if is_string(self._key_dtype) else as_tensor(keys, "lookup", self._key_dtype)
        content = {} if self._table is None else self._table._content
        start, count = self._known(), self.num_oov_buckets

        def one(key: Any) -> int:
            outcome = content.get(key)
            if outcome is not None:
                return int(outcome)
            return start + hashing.fingerprint64(key if isinstance(key, bytes) else b"%d" % key) % count

        def run(array: np.ndarray) -> Any:
            return np.array(list(map(one, array.ravel().tolist())), np.int64).reshape(array.shape)

        return step(run, [x], [TensorType(x.shape, int64)])[0]


class MutableHashTable(_Table):
    """A table whose entries come and go.

    Args:
        key_dtype: the dtype of keys.
        value_dtype: the dtype of values.
        default_value: what is found for unknown keys; its shape is that of all values.
        name: ignored.
        checkpoint: ignored.
        experimental_is_anonymous: ignored.

    Raises:
        DTypeError: for other keys or values.

    Example:
        >>> table = hf.lookup.MutableHashTable("string", "int64", 0)
        >>> table.insert(["a", "b"], [1, 2])
        >>> table.lookup(["b", "c"]).tolist(), table.size().item()
        ([2, 0], 2)
    """

    _in_order = True

    @entered
    def __init__(
        self,
        key_dtype: object,
        value_dtype: object,
        default_value: object,
        name: str | None = None,
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, "MutableHashTable")

    @entered
    def lookup(  # type: ignore[override]
        self, keys: object, dynamic_default_values: object = None, name: str | None = None
    ) -> Any:
        """The values of keys; for unknown ones the default, or a value of their own.

        Args:
            keys: a tensor of keys.
            dynamic_default_values: a value for each key, or None.
            name: ignored.

        Returns:
            A tensor of shape ``keys.shape + value.shape``.
        """
        if dynamic_default_values is None:
            return super().lookup(keys)
        x, defaults = self._keys(keys), self._values(dynamic_default_values)

        def run(array: np.ndarray, others: np.ndarray) -> Any:
            rows = others.reshape(-1, *self._value_shape)
            outcome = [self._content.get(k, rows[n]) for n, k in enumerate(array.ravel().tolist())]
            return self._column(outcome, array.shape)

        kind = TensorType((*x.shape, *self._value_shape), self._value_dtype)
        return step(run, [x, defaults], [kind], True)[0]

    def _values(self, values: object) -> Tensor:
        if is_string(self._value_dtype):
            return as_strings(values, self._stage)
        x = as_tensor(values, self._stage, None if isinstance(values, (Tensor, np.ndarray)) else self._value_dtype)
        if x.dtype != self._value_dtype:
            if x.dtype.kind == "O" or x.dtype.kind != self._value_dtype.kind:
                raise DTypeError(self._stage, f"values are {x.type} where {self._value_dtype} is expected.")
            x = cast(x, self._value_dtype)
        return x

    @entered
    def insert(self, keys: object, values: object, name: str | None = None) -> None:
        """Put entries in, in the place of those with the same keys.

        Args:
            keys: a tensor of keys.
            values: a value for each key.
            name: ignored.

        Raises:
            ShapeError: where values do not fit.
        """
        x, y = self._keys(keys), self._values(values)
        if len(y.shape) != len(x.shape) + len(self._value_shape):
            raise ShapeError(self._stage, f"values are {y.type} for the keys {x.type}.")

        def run(array: np.ndarray, new: np.ndarray) -> Any:
            rows = new.reshape(-1, *self._value_shape)
            for key, row in zip(array.ravel().tolist(), rows if self._value_shape else rows.tolist()):
                self._content[key] = row
            return ()

        step(run, [x, y], [], True)

    @entered
    def remove(self, keys: object, name: str | None = None) -> None:
        """Take entries out; keys that are not there do not matter.

        Args:
            keys: a tensor of keys.
            name: ignored.
        """

        def run(array: np.ndarray) -> Any:
            for key in array.ravel().tolist():
                self._content.pop(key, None)
            return ()

        step(run, [self._keys(keys)], [], True)

    erase = remove


class DenseHashTable(MutableHashTable):
    """A table whose entries come and go, with two keys that are never used.

    Args:
        key_dtype: the dtype of keys.
        value_dtype: the dtype of values.
        default_value: what is found for unknown keys.
        empty_key: a key that is no key of an entry.
        deleted_key: another one.
        initial_num_buckets: ignored.
        name: ignored.
        checkpoint: ignored.
        experimental_is_anonymous: ignored.

    Raises:
        ArgumentError: where the two keys are equal, or used.

    Example:
        >>> table = hf.lookup.DenseHashTable("int64", "int64", -1, empty_key=0, deleted_key=-1)
        >>> table.insert([5], [50])
        >>> table.lookup([5, 6]).tolist()
        [50, -1]
    """

    @entered
    def __init__(
        self, key_dtype: object, value_dtype: object, default_value: object, empty_key: object, deleted_key: object,
        initial_num_buckets: int | None = None, name: str | None = None, checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(key_dtype, value_dtype, default_value)
        chosen = [_elements(key, self._key_dtype, "DenseHashTable").item() for key in (empty_key, deleted_key)]
        if chosen[0] == chosen[1]:
            raise ArgumentError("DenseHashTable", "Empty and deleted keys cannot be equal.")
        self._unused = chosen

    def _keys(self, keys: object) -> Tensor:
        x = super()._keys(keys)
        known = None if current.trace is not None else x.texts if isinstance(x, StringTensor) else x.numpy()
        if known is not None and any(key in self._unused for key in known.ravel().tolist()):
            raise ArgumentError("DenseHashTable", "Using the empty_key or deleted_key as a table key is not allowed.")
        return x
