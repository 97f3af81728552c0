"""``tf.train.Example`` and what it is made of, over ``hf.data.encode_example``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import as_texts, string
from hybridflow.compat.export import export, tf_export
from hybridflow.compat.facade import Facade
from hybridflow.core.string_tensor import as_strings
from hybridflow.data.tf_example import decoded, delimited, encoded
from hybridflow.errors import ArgumentError, DataError, InvalidArgumentError


class _Values:
    """A list of values of one kind."""

    dtype: Any = object

    def __init__(self, value: Sequence[Any] = ()) -> None:
        self.value = [one.numpy() if hasattr(one, "numpy") else one for one in value]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


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
class Feature:
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
        self._kind = lists[0] if lists else None
        self.bytes_list = bytes_list or BytesList()
        self.float_list = float_list or FloatList()
        self.int64_list = int64_list or Int64List()

    def WhichOneof(self, group: str) -> str | None:
        """Which of the lists it is."""
        return self._kind

    def __repr__(self) -> str:
        return f"Feature({'' if self._kind is None else f'{self._kind}={getattr(self, self._kind)!r}'})"

    def _array(self) -> np.ndarray:
        held = getattr(self, self._kind or "int64_list")
        return np.array(held.value, held.dtype)

    def SerializeToString(self) -> bytes:
        """The bytes of the feature alone."""
        return encoded("", self._array()) if self._kind else b""

    def ParseFromString(self, serialized: bytes) -> int:
        """Become the feature of these bytes; returns their number.  Raises DataError for bytes that are none."""
        example = Example.FromString(_example_of(bytes(serialized))) if serialized else Example()
        feature = example.features.feature.get("", Feature())
        self.__dict__.update(feature.__dict__)
        return len(serialized)

    @staticmethod
    def FromString(serialized: bytes) -> Feature:
        """The feature of these bytes."""
        result = Feature()
        result.ParseFromString(serialized)
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Feature) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]


def _example_of(feature: bytes) -> bytes:
    """The bytes of an example whose only feature, called "", has these."""
    entry = delimited(1, b"") + delimited(2, feature)
    return delimited(1, delimited(1, entry))


_LISTS = {"bytes_list": BytesList, "float_list": FloatList, "int64_list": Int64List}


@tf_export("train.Features")
class Features:
    """``tf.train.Features``: features by name."""

    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self.feature = dict(feature or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.feature == other.feature

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Features(feature={self.feature!r})"


@tf_export("train.Example")
class Example:
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Example) and self.features == other.features

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Example(features={self.features!r})"


def _kind(dtype: Any) -> Any:
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


@tf_export("io.parse_single_example")
def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """``tf.io.parse_single_example``."""
    texts = as_strings(serialized, "parse_single_example")
    if texts.ndim:
        raise ArgumentError("parse_single_example", f"serialized is {texts.type}. Expected one text.")
    outcome = _parsed(texts.numpy(), features)
    return {key: _single(as_texts(value), features[key]) for key, value in outcome.items()}


def _parsed(record: bytes, features: Any) -> dict[str, Any]:
    """The features of a record.  Raises InvalidArgumentError for other bytes, as TensorFlow does."""
    try:
        return hf.data.parse_single_example(record, features)
    except DataError as error:
        raise InvalidArgumentError("parse_example", str(error)) from None


def _single(value: Any, feature: Any) -> Any:
    if not isinstance(feature, hf.data.VarLenFeature):
        return value
    count = value.shape[0]
    return hf.sparse.COO(np.arange(count)[:, None].astype(np.int64), value, (count,))


@tf_export("io.parse_example")
def parse_example(serialized: Any, features: Any, example_names: Any = None, name: str | None = None) -> Any:
    """``tf.io.parse_example``."""
    records = as_strings(serialized, "parse_example")
    if not records.ndim:
        return parse_single_example(records, features)
    rows = [_parsed(one, features) for one in records.texts.ravel().tolist()]
    return {key: _together([as_texts(row[key]) for row in rows], feature) for key, feature in features.items()}


def _together(rows: list[Any], feature: Any) -> Any:
    if isinstance(feature, hf.data.FixedLenFeature):
        return hf.stack(rows)
    counts = [int(row.shape[0]) for row in rows]
    width = max(counts, default=0)
    if isinstance(feature, hf.data.VarLenFeature):
        places = [(k, n) for k, count in enumerate(counts) for n in range(count)]
        values = hf.concat(rows, axis=0)
        return hf.sparse.COO(np.array(places, np.int64).reshape(-1, 2), values, (len(rows), width))
    padded = []
    for row, count in zip(rows, counts):
        wanted = (width - count, *row.shape[1:])
        filling = "" if isinstance(row, hf.strings.StringTensor) else feature.default_value or 0
        fill = (
            hf.broadcast_to(hf.strings.constant(filling), wanted)
            if isinstance(row, hf.strings.StringTensor)
            else hf.full(wanted, filling, dtype=row.dtype)
        )
        padded.append(hf.concat([row, fill], axis=0))
    return hf.stack(padded)


export(FixedLenFeature, "io.FixedLenFeature")
export(FixedLenSequenceFeature, "io.FixedLenSequenceFeature")
export(VarLenFeature, "io.VarLenFeature")
