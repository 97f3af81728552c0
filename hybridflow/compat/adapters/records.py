"""``tf.train.Example`` and what it is made of, over ``hf.data.encode_example``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import as_dtype, as_texts, string
from hybridflow.compat.export import export, tf_export
from hybridflow.compat.facade import Facade
from hybridflow.compiler.ir import dtypes
from hybridflow.core.string_tensor import as_strings
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.data.tf_example import decoded, delimited, encoded
from hybridflow.errors import ArgumentError, DataError, InvalidArgumentError
from hybridflow.ragged import Ragged


class Message:
    """Equal to others that hold the same, and shown in the text form of protocol buffers."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]

    def _lines(self) -> list[str]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())


def block(name: str, lines: Iterable[str]) -> list[str]:
    """The lines of a message in another one."""
    return [f"{name} {{", *(f"  {line}" for line in lines), "}"]


def entries(name: str, values: Mapping[str, Any]) -> list[str]:
    """The lines of messages by name."""
    keyed = [[f"key: {_text(key)}", *block("value", one._lines())] for key, one in values.items()]
    return [line for entry in keyed for line in block(name, entry)]


class Entries(dict[str, Any]):
    """Messages by name; one that is asked for is there."""

    def __init__(self, kind: Callable[[], Any], values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._new = kind

    def __missing__(self, key: str) -> Any:
        value = self[key] = self._new()
        return value


class _Values(Message):
    """A list of values of one kind."""

    dtype: DTypeLike = object

    def __init__(self, value: Sequence[Any] = ()) -> None:
        self.value = [one.numpy() if hasattr(one, "numpy") else one for one in value]

    def _lines(self) -> list[str]:
        return [f"value: {_text(one)}" for one in self.value]


def _text(value: str | bytes | float | np.number) -> str:
    """A value as the text form has it: bytes in quotes, floats of as few digits as tell them."""
    if isinstance(value, (str, bytes)):
        data = value.encode() if isinstance(value, str) else value
        escaped = [_ESCAPES.get(one) or (chr(one) if 32 <= one < 127 else f"\\{one:03o}") for one in data]
        return f'"{"".join(escaped)}"'
    if not isinstance(value, (float, np.floating)):
        return str(int(value))
    short = f"{value:.6g}"
    return short if np.float32(short) == np.float32(value) else f"{value:.9g}"


_ESCAPES = {ord(key): f"\\{name}" for key, name in zip("\n\r\t\"'\\", "nrt\"'\\")}


@tf_export("train.BytesList")
class BytesList(_Values):
    """``tf.train.BytesList``."""


@tf_export("train.FloatList")
class FloatList(_Values):
    """``tf.train.FloatList``."""

    dtype = np.float32


@tf_export("train.Int64List")
class Int64List(_Values):
    """``tf.train.Int64List``."""

    dtype = np.int64


@tf_export("train.Feature")
class Feature(Message):
    """``tf.train.Feature``: one of three lists; the others are empty."""

    def __init__(
        self,
        bytes_list: BytesList | None = None,
        float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ) -> None:
        lists = [name for name, part in zip(_LISTS, (bytes_list, float_list, int64_list)) if part is not None]
        if len(lists) > 1:
            raise ArgumentError("train.Feature", f"{' and '.join(lists)} are given; a feature is one of them.")
        self._given = lists[0] if lists else None
        self.bytes_list = bytes_list or BytesList()
        self.float_list = float_list or FloatList()
        self.int64_list = int64_list or Int64List()

    @property
    def _kind(self) -> str | None:
        """Which list it is: the one that was given, or that has values."""
        return self._given or next((name for name in _LISTS if getattr(self, name).value), None)

    def WhichOneof(self, group: str) -> str | None:
        """Which of the lists it is."""
        return self._kind

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Feature) or self._kind != other._kind:
            return False
        return self._array().tolist() == other._array().tolist()

    __hash__ = None

    def _lines(self) -> list[str]:
        return [] if self._kind is None else block(self._kind, getattr(self, self._kind)._lines())

    def _array(self) -> np.ndarray:
        held = getattr(self, self._kind or "int64_list")
        return np.array(held.value, held.dtype)

    def SerializeToString(self) -> bytes:
        """The bytes of the feature alone."""
        return encoded("", self._array()) if self._kind else b""

    def ParseFromString(self, serialized: bytes) -> int:
        """Become the feature of these bytes; returns their number.  Raises DataError for bytes that are none."""
        example = Example.FromString(example_of(bytes(serialized))) if serialized else Example()
        feature = example.features.feature.get("", Feature())
        self.__dict__.update(feature.__dict__)
        return len(serialized)

    @staticmethod
    def FromString(serialized: bytes) -> Feature:
        """The feature of these bytes."""
        result = Feature()
        result.ParseFromString(serialized)
        return result


def example_of(feature: bytes) -> bytes:
    """The bytes of an example whose only feature, called "", has these."""
    entry = delimited(1, b"") + delimited(2, feature)
    return delimited(1, delimited(1, entry))


_LISTS = {"bytes_list": BytesList, "float_list": FloatList, "int64_list": Int64List}


@tf_export("train.Features")
class Features(Message):
    """``tf.train.Features``: features by name."""

    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self.feature = Entries(Feature, feature or {})

    def _lines(self) -> list[str]:
        return entries("feature", self.feature)


@tf_export("train.Example")
class Example(Message):
    """``tf.train.Example``: the features of a record, and its bytes."""

    def __init__(self, features: Features | None = None) -> None:
        self.features = features or Features()

    def SerializeToString(self) -> bytes:
        """The bytes of the record."""
        return hf.data.encode_example({name: feature._array() for name, feature in self.features.feature.items()})

    def ParseFromString(self, serialized: Any) -> int:
        """Become the example of these bytes; returns their number.  Raises DataError for bytes that are none."""
        serialized = serialized.numpy() if hasattr(serialized, "numpy") else serialized
        features = {}
        for name, (number, values) in decoded(bytes(serialized)).items():
            key = list(_LISTS)[number - 1]
            parts: dict[str, Any] = {key: _LISTS[key](values if number == 1 else values.tolist())}
            features[name] = Feature(**parts)
        self.features = Features(features)
        return len(serialized)

    @staticmethod
    def FromString(serialized: bytes) -> Example:
        """The example of these bytes."""
        result = Example()
        result.ParseFromString(serialized)
        return result

    def _lines(self) -> list[str]:
        return block("features", self.features._lines())


def _kind(dtype: DTypeLike) -> Any:
    return bytes if dtype is string else dtype


def _fixed(shape: Any, dtype: Any, default_value: Any = None) -> Any:
    """``tf.io.FixedLenFeature``."""
    return hf.data.FixedLenFeature(shape, _kind(dtype), default_value)


def _sequence(shape: Any, dtype: Any, allow_missing: bool = False, default_value: Any = None) -> Any:
    """``tf.io.FixedLenSequenceFeature``."""
    return hf.data.FixedLenSequenceFeature(shape, _kind(dtype), allow_missing, default_value)


FixedLenFeature = Facade(hf.data.FixedLenFeature, _fixed)
FixedLenSequenceFeature = Facade(hf.data.FixedLenSequenceFeature, _sequence)
VarLenFeature = Facade(hf.data.VarLenFeature, lambda dtype: hf.data.VarLenFeature(_kind(dtype)))


class _Partition(NamedTuple):
    """How one more axis of rows is told: by the ints of another feature."""

    key: str

    def lengths(self, told: np.ndarray, count: int) -> np.ndarray:
        """The lengths of the rows of ``count`` values."""
        raise NotImplementedError


class RowSplits(_Partition):
    """``tf.io.RaggedFeature.RowSplits``: where rows begin and the last one ends."""

    def lengths(self, told: np.ndarray, count: int) -> np.ndarray:
        return np.diff(told)


class RowLengths(_Partition):
    """``tf.io.RaggedFeature.RowLengths``."""

    def lengths(self, told: np.ndarray, count: int) -> np.ndarray:
        return told


class RowStarts(_Partition):
    """``tf.io.RaggedFeature.RowStarts``."""

    def lengths(self, told: np.ndarray, count: int) -> np.ndarray:
        return np.diff(told, append=count)


class RowLimits(_Partition):
    """``tf.io.RaggedFeature.RowLimits``: where rows end."""

    def lengths(self, told: np.ndarray, count: int) -> np.ndarray:
        return np.diff(told, prepend=0)


class ValueRowIds(_Partition):
    """``tf.io.RaggedFeature.ValueRowIds``: the row of each value."""

    def lengths(self, told: np.ndarray, count: int) -> np.ndarray:
        return np.bincount(told)


class UniformRowLength(NamedTuple):
    """``tf.io.RaggedFeature.UniformRowLength``: all rows are as long."""

    length: int

    def lengths(self, told: np.ndarray, count: int) -> np.ndarray:
        """The lengths of the rows of ``count`` values."""
        return np.full(count // self.length, self.length)


@tf_export("io.RaggedFeature")
class RaggedFeature(NamedTuple):
    """``tf.io.RaggedFeature``: any number of values, in rows that other features tell.

    Several examples are rows of rows.
    """

    dtype: DTypeLike
    value_key: str | None = None
    partitions: Any = ()
    row_splits_dtype: object = dtypes.int32
    validate: bool = False

    @property
    def parts(self) -> list[str]:
        """The names of the features that tell rows."""
        return [partition.key for partition in self.partitions if isinstance(partition, _Partition)]


for _kind_of_rows in (RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds, UniformRowLength):
    setattr(RaggedFeature, _kind_of_rows.__name__, _kind_of_rows)


@tf_export("io.SparseFeature")
class SparseFeature(NamedTuple):
    """``tf.io.SparseFeature``: a sparse tensor whose places and values are features of their own."""

    index_key: Any
    value_key: str
    dtype: DTypeLike
    size: Any
    already_sorted: bool = False

    @property
    def parts(self) -> list[str]:
        """The names of the features that tell places."""
        return [self.index_key] if isinstance(self.index_key, str) else list(self.index_key)

    @property
    def sizes(self) -> list[int]:
        """The extents of an example."""
        return [int(size) for size in (self.size if isinstance(self.size, (list, tuple)) else [self.size])]


def _plain(features: Any) -> dict[str, Any]:
    """The features whose values others are made of, beside the rest."""
    result = {}
    for name, feature in features.items():
        if not isinstance(feature, (RaggedFeature, SparseFeature)):
            result[name] = feature
            continue
        result[feature.value_key or name] = VarLenFeature(feature.dtype)
        result.update({key: VarLenFeature(dtypes.int64) for key in feature.parts})
    return result


def _values_of(name: str, feature: Any, row: Any) -> tuple[Any, list[np.ndarray]]:
    """The values of a ragged or sparse feature of an example, and what tells their rows or places."""
    return as_texts(row[feature.value_key or name]), [row[key].numpy() for key in feature.parts]


def _ragged(name: str, feature: RaggedFeature, rows: list[Any], is_single: bool) -> Any:
    """The values of examples as rows, and rows of rows."""
    parts = [_values_of(name, feature, row) for row in rows]
    result: Any = hf.concat([values for values, _ in parts], axis=0)
    counts = [int(values.shape[0]) for values, _ in parts]
    others = [list(told) for _, told in parts]
    splits = as_dtype(feature.row_splits_dtype).as_numpy_dtype
    for partition in reversed(feature.partitions):
        if isinstance(partition, UniformRowLength) and not isinstance(result, Ragged):
            if any(count % partition.length for count in counts):
                raise InvalidArgumentError("parse_example", f"{name}: the rows do not hold its values.")
            result = hf.reshape(result, (-1, partition.length, *result.shape[1:]))
            counts = [count // partition.length for count in counts]
            continue
        lengths = [
            np.asarray(partition.lengths(one.pop() if isinstance(partition, _Partition) else np.empty(0), count))
            for one, count in zip(others, counts, strict=True)
        ]
        if any(int(one.sum()) != count for one, count in zip(lengths, counts, strict=True)):
            raise InvalidArgumentError("parse_example", f"{name}: the rows do not hold its values.")
        result = Ragged.from_row_lengths(result, np.concatenate(lengths).astype(splits))
        counts = [len(one) for one in lengths]
    if is_single:
        return result
    return Ragged.from_row_lengths(result, np.array(counts, splits))


def _sparse(name: str, feature: SparseFeature, rows: list[Any], is_single: bool) -> Any:
    """A sparse tensor of the places and values of examples."""
    places, kept = [], []
    for number, row in enumerate(rows):
        values, axes = _values_of(name, feature, row)
        at = np.stack([np.full_like(axes[0], number), *axes], axis=1).astype(np.int64)
        if len(at) != values.shape[0]:
            raise InvalidArgumentError("parse_example", f"{name} has {values.shape[0]} values at {len(at)} places.")
        order = np.arange(len(at)) if feature.already_sorted else np.lexsort(at.T[::-1])
        places.append(at[order])
        kept.append(hf.take(values, order, axis=0))
    at, values = np.concatenate(places), hf.concat(kept, axis=0)
    if is_single:
        return hf.sparse.COO(at[:, 1:], values, tuple(feature.sizes))
    return hf.sparse.COO(at, values, (len(rows), *feature.sizes))


@tf_export("io.parse_single_example")
def parse_single_example(
    serialized: object, features: Any, example_names: object = None, name: str | None = None
) -> dict[str, Any]:
    """``tf.io.parse_single_example``."""
    texts = as_strings(serialized, "parse_single_example")
    if texts.ndim:
        raise ArgumentError("parse_single_example", f"serialized is {texts.type}. Expected one text.")
    row = parsed(texts.numpy(), _plain(features))
    return {key: made(key, feature, [row], True) for key, feature in features.items()}


def made(name: str, feature: object, rows: list[Any], is_single: bool = False) -> Any:
    """A feature of the examples."""
    if isinstance(feature, RaggedFeature):
        return _ragged(name, feature, rows, is_single)
    if isinstance(feature, SparseFeature):
        return _sparse(name, feature, rows, is_single)
    values = [as_texts(row[name]) for row in rows]
    return _single(values[0], feature) if is_single else _together(values, feature)


def parsed(record: bytes, features: Any) -> dict[str, Any]:
    """The features of a record.  Raises InvalidArgumentError for other bytes, as TensorFlow does."""
    try:
        return hf.data.parse_single_example(record, features)
    except DataError as error:
        raise InvalidArgumentError("parse_example", str(error)) from None


def _single(value: Any, feature: object) -> Any:
    if not isinstance(feature, hf.data.VarLenFeature):
        return value
    count = value.shape[0]
    return hf.sparse.COO(np.arange(count)[:, None].astype(np.int64), value, (count,))


@tf_export("io.parse_example")
def parse_example(serialized: object, features: Any, example_names: object = None, name: str | None = None) -> Any:
    """``tf.io.parse_example``."""
    records = as_strings(serialized, "parse_example")
    if not records.ndim:
        return parse_single_example(records, features)
    plain = _plain(features)
    rows = [parsed(one, plain) for one in records.texts.ravel().tolist()]
    return {key: made(key, feature, rows) for key, feature in features.items()}


def _together(rows: list[Any], feature: Any) -> Any:
    if isinstance(feature, hf.data.FixedLenFeature):
        return hf.stack(rows)
    if isinstance(feature, hf.data.VarLenFeature):
        counts = [int(row.shape[0]) for row in rows]
        width = max(counts, default=0)
        places = [(k, n) for k, count in enumerate(counts) for n in range(count)]
        values = hf.concat(rows, axis=0)
        return hf.sparse.COO(np.array(places, np.int64).reshape(-1, 2), values, (len(rows), width))
    return padded_rows(rows, feature)


def padded_rows(rows: list[Any], feature: hf.data.FixedLenSequenceFeature) -> Any:
    """Rows of other lengths as one tensor, filled up with the default value of a feature."""
    counts = [int(row.shape[0]) for row in rows]
    width = max(counts, default=0)
    padded = []
    for row, count in zip(rows, counts):
        wanted = (width - count, *row.shape[1:])
        filling = feature.default_value or 0
        fill = (
            hf.broadcast_to(hf.strings.constant(""), wanted)
            if isinstance(row, hf.strings.StringTensor)
            else hf.full(wanted, filling, dtype=row.dtype)
        )
        padded.append(hf.concat([row, fill], axis=0))
    return hf.stack(padded)


export(FixedLenFeature, "io.FixedLenFeature")
export(FixedLenSequenceFeature, "io.FixedLenSequenceFeature")
export(VarLenFeature, "io.VarLenFeature")
