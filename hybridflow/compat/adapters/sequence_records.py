"""``tf.train.SequenceExample``, records of lists of features, and the texts of sparse tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters import records
from hybridflow.compat.adapters.records import (
    Example,
    Feature,
    Features,
    FixedLenSequenceFeature,
    Message,
    VarLenFeature,
    block,
    example_of,
    made,
    parse_example,
    parse_single_example,
    parsed,
)
from hybridflow.compat.adapters.texts import parse_tensor, serialize_tensor
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.core.string_tensor import as_strings
from hybridflow.data.tf_example import delimited, fields
from hybridflow.errors import ArgumentError, DataError, InvalidArgumentError, ShapeError
from hybridflow.ragged import Ragged
from hybridflow.sparse import COO

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import DTypeLike

Kind: TypeAlias = "records.RaggedFeature | hf.data.VarLenFeature | hf.data.FixedLenSequenceFeature"


@tf_export("train.FeatureList")
class FeatureList(Message):
    """``tf.train.FeatureList``: a feature for each step."""

    def __init__(self, feature: Sequence[Feature] | None = None) -> None:
        self.feature = list(feature or ())

    def SerializeToString(self) -> bytes:
        """The bytes of the list alone."""
        return b"".join([delimited(1, one.SerializeToString()) for one in self.feature])

    def _lines(self) -> list[str]:
        return [line for one in self.feature for line in block("feature", one._lines())]


@tf_export("train.FeatureLists")
class FeatureLists(Message):
    """``tf.train.FeatureLists``: lists of features by name."""

    def __init__(self, feature_list: Mapping[str, FeatureList] | None = None) -> None:
        self.feature_list = records.Entries(FeatureList, feature_list or {})

    def _lines(self) -> list[str]:
        return records.entries("feature_list", self.feature_list)


@tf_export("train.SequenceExample")
class SequenceExample(Message):
    """``tf.train.SequenceExample``: the features of a record, and lists of them."""

    def __init__(self, context: Features | None = None, feature_lists: FeatureLists | None = None) -> None:
        self.context = context or Features()
        self.feature_lists = feature_lists or FeatureLists()

    def SerializeToString(self) -> bytes:
        """The bytes of the record."""
        context = Example(self.context).SerializeToString() if self.context.feature else b""
        lists = [
            delimited(1, delimited(1, name.encode()) + delimited(2, one.SerializeToString()))
            for name, one in self.feature_lists.feature_list.items()
        ]
        return context + (delimited(2, b"".join(lists)) if lists else b"")

    def ParseFromString(self, serialized: bytes | TensorLike) -> int:
        """Become the example of these bytes; returns their number.  Raises DataError for bytes that are none."""
        data = _bytes(serialized)
        self.context = Example.FromString(b"".join([delimited(1, part) for part in _of(data, 1)])).features
        lists: dict[str, FeatureList] = {}
        for part in _of(data, 2):
            for entry in _of(part, 1):
                name = b"".join(_of(entry, 1)).decode("utf-8", "replace")
                features = [one for value in _of(entry, 2) for one in _of(value, 1)]
                lists[name] = FeatureList([Feature.FromString(one) for one in features])
        self.feature_lists = FeatureLists(lists)
        return len(data)

    @staticmethod
    def FromString(serialized: bytes) -> SequenceExample:
        """The example of these bytes."""
        result = SequenceExample()
        result.ParseFromString(serialized)
        return result

    def _lines(self) -> list[str]:
        context = block("context", self.context._lines()) if self.context.feature else []
        lists = block("feature_lists", self.feature_lists._lines()) if self.feature_lists.feature_list else []
        return [*context, *lists]


def _bytes(serialized: bytes | TensorLike) -> bytes:
    return serialized if isinstance(serialized, bytes) else as_strings(serialized, "ParseFromString").numpy()


def _of(data: bytes, wanted: int) -> list[bytes]:
    """The fields of bytes that have a number."""
    return [part for number, _, part in fields(data) if number == wanted and isinstance(part, bytes)]


@tf_export("io.parse_single_sequence_example")
def parse_single_sequence_example(
    serialized: object,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: object = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """``tf.io.parse_single_sequence_example``."""
    texts = as_strings(serialized, "parse_single_sequence_example")
    if texts.ndim:
        raise ArgumentError("parse_single_sequence_example", f"serialized is {texts.type}. Expected one text.")
    example = _example(texts.numpy())
    context = parse_single_example(Example(example.context).SerializeToString(), dict(context_features or {}))
    lists = example.feature_lists.feature_list
    return context, {key: _steps(key, lists.get(key), kind) for key, kind in (sequence_features or {}).items()}


def _example(data: bytes) -> SequenceExample:
    try:
        return SequenceExample.FromString(data)
    except DataError as error:
        raise InvalidArgumentError("parse_sequence_example", str(error)) from None


def _steps(name: str, held: FeatureList | None, kind: Kind) -> Any:
    """The features of a list as the rows of one tensor."""
    steps = [] if held is None else held.feature
    if not isinstance(kind, hf.data.FixedLenSequenceFeature):
        rows = [parsed(example_of(one.SerializeToString()), {"": VarLenFeature(kind.dtype)}) for one in steps]
        return made("", kind, rows) if rows else _no_steps(kind)
    if held is None and not kind.allow_missing:
        raise InvalidArgumentError("parse_sequence_example", f"an example has no list {name!r}.")
    one_step = hf.data.FixedLenFeature(kind.shape, kind.dtype)
    if not steps:
        flat = parsed(b"", {"": FixedLenSequenceFeature(kind.shape, kind.dtype, allow_missing=True)})
        return records.as_texts(flat[""])
    rows = [parsed(example_of(one.SerializeToString()), {"": one_step}) for one in steps]
    return hf.stack([records.as_texts(row[""]) for row in rows])


def _no_steps(kind: Kind) -> Any:
    values = records.as_texts(parsed(b"", {"": VarLenFeature(kind.dtype)})[""])
    if isinstance(kind, records.RaggedFeature):
        return Ragged.from_row_lengths(values, np.zeros(0, np.int64))
    return COO(np.zeros((0, 2), np.int64), values, (0, 0))


@tf_export("io.parse_sequence_example")
def parse_sequence_example(
    serialized: object,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: object = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """``tf.io.parse_sequence_example``: lists of steps are padded, and their lengths are told."""
    texts = as_strings(serialized, "parse_sequence_example")
    examples = [_example(one) for one in texts.texts.ravel().tolist()]
    contexts = as_strings([Example(one.context).SerializeToString() for one in examples], "parse_sequence_example")
    context = parse_example(contexts, dict(context_features or {}))
    lists, lengths = {}, {}
    for key, kind in (sequence_features or {}).items():
        if not isinstance(kind, hf.data.FixedLenSequenceFeature):
            raise ArgumentError(
                "parse_sequence_example",
                f"{key} has other numbers of values in each step: use parse_single_sequence_example for each record.",
            )
        parts = [_steps(key, one.feature_lists.feature_list.get(key), kind) for one in examples]
        lists[key] = records.padded_rows(parts, kind)
        lengths[key] = hf.asarray(np.array([part.shape[0] for part in parts], np.int64))
    return context, lists, lengths


@tf_export("io.serialize_sparse")
def serialize_sparse(sp_input: COO, out_type: object = None, name: str | None = None) -> Any:
    """``tf.io.serialize_sparse``: the texts of the indices, the values and the shape."""
    return hf.stack([serialize_tensor(part) for part in (sp_input.indices, sp_input.values, _shape_of(sp_input))])


def _shape_of(sp_input: COO) -> Any:
    return hf.asarray(np.array(sp_input.shape, np.int64))


@tf_export("io.serialize_many_sparse")
def serialize_many_sparse(sp_input: COO, out_type: object = None, name: str | None = None) -> Any:
    """``tf.io.serialize_many_sparse``: the texts of each row."""
    dataset = hf.data.Dataset.from_tensor_slices(sp_input)
    return hf.stack([serialize_sparse(row) for row in dataset])


@tf_export("io.deserialize_many_sparse")
def deserialize_many_sparse(
    serialized_sparse: TensorLike, dtype: DTypeLike, rank: int | None = None, name: str | None = None
) -> Any:
    """``tf.io.deserialize_many_sparse``: the rows of one sparse tensor."""
    texts = as_strings(serialized_sparse, "deserialize_many_sparse")
    if texts.ndim != 2 or texts.shape[1] != 3:
        raise ShapeError("deserialize_many_sparse", f"the texts are {texts.type}. Expected three in each row.")
    rows = [
        (parse_tensor(at, hf.int64).numpy(), parse_tensor(values, dtype), parse_tensor(shape, hf.int64).numpy())
        for at, values, shape in texts.texts.tolist()
    ]
    numbered = [np.concatenate([np.full((len(at), 1), k, np.int64), at], axis=1) for k, (at, _, _) in enumerate(rows)]
    sizes = np.max([shape for _, _, shape in rows], axis=0).tolist()
    return COO(np.concatenate(numbered), hf.concat([v for _, v, _ in rows], axis=0), (len(rows), *sizes))
