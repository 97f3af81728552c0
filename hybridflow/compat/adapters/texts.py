"""Texts of Python beside tensors: ``tf.compat.as_bytes`` and its kin, tensors as bytes, options of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import as_dtype, operand
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.core.string_tensor import as_strings
from hybridflow.data.tf_example import delimited, fields, varint
from hybridflow.errors import ArgumentTypeError, DataError, InvalidArgumentError

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import DTypeLike


@tf_export("compat.as_bytes")
def as_bytes(bytes_or_text: object, encoding: str = "utf-8") -> bytes:
    """``tf.compat.as_bytes``.  Raises TypeError for what is no text."""
    if isinstance(bytes_or_text, hf.strings.StringTensor):
        bytes_or_text = bytes_or_text.numpy()
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise ArgumentTypeError("as_bytes", f"{bytes_or_text!r:.60} is no text and no bytes.")


@tf_export("compat.as_str", "compat.as_text")
def as_text(bytes_or_text: object, encoding: str = "utf-8") -> str:
    """``tf.compat.as_text`` and ``as_str``.  Raises TypeError for what is no text."""
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text).decode(encoding)
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    raise ArgumentTypeError("as_text", f"{bytes_or_text!r:.60} is no text and no bytes.")


@tf_export("compat.as_str_any")
def as_str_any(value: TensorLike, encoding: str = "utf-8") -> str:
    """``tf.compat.as_str_any``: of anything."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


@tf_export("compat.path_to_str")
def path_to_str(path: object) -> Any:
    """``tf.compat.path_to_str``."""
    return as_text(path.__fspath__()) if hasattr(path, "__fspath__") else path


@tf_export("io.serialize_tensor")
def serialize_tensor(tensor: TensorLike, name: str | None = None) -> Any:
    """``tf.io.serialize_tensor``: the bytes of a ``TensorProto``."""
    value = operand(tensor)
    if isinstance(value, hf.strings.StringTensor):
        texts = value.texts.ravel().tolist()
        dims = b"".join([delimited(2, _number(1, int(extent))) for extent in value.shape])
        held = b"".join([delimited(8, text) for text in texts])
        return hf.strings.constant(_number(1, 7) + delimited(2, dims) + held)
    shape = b"".join([delimited(2, _number(1, int(extent))) for extent in value.shape])
    content = np.ascontiguousarray(value.numpy()).tobytes()
    kind = as_dtype(value.dtype).as_datatype_enum
    return hf.strings.constant(_number(1, kind) + delimited(2, shape) + delimited(4, content))


@tf_export("io.parse_tensor")
def parse_tensor(serialized: object, out_type: DTypeLike, name: str | None = None) -> Any:
    """``tf.io.parse_tensor``: of what ``serialize_tensor`` gives.  Raises InvalidArgumentError for other bytes."""
    record = as_strings(serialized, "parse_tensor").numpy()
    try:
        parts = {number: value for number, _, value in fields(record)}
    except DataError:
        raise InvalidArgumentError(
            "parse_tensor", f"Could not parse `serialized` as TensorProto: {record!r:.40}."
        ) from None
    kind, content = parts.get(1), parts.get(4)
    dims = [dict(_pairs(dim)) for number, dim in _pairs(parts.get(2, b"")) if number == 2]
    extents = [int(dim.get(1, 0)) for dim in dims]
    wanted = as_dtype(out_type)
    if kind != wanted.as_datatype_enum:
        raise InvalidArgumentError("parse_tensor", f"the bytes are those of no tensor of {wanted.name}.")
    if wanted.as_datatype_enum == 7:
        texts = [value for number, _, value in fields(record) if number == 8]
        return hf.reshape(hf.strings.constant(texts), extents)
    if not isinstance(content, bytes) or len(content) != wanted.size * int(np.prod(extents, dtype=np.int64)):
        raise InvalidArgumentError(
            "parse_tensor", f"the bytes are not those of a tensor of the shape {tuple(extents)}."
        )
    return hf.asarray(np.frombuffer(content, wanted.dtype).reshape(extents).copy())


def _pairs(message: bytes) -> list[tuple[int, Any]]:
    return [(number, value) for number, _, value in fields(message)]


def _number(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


@tf_export("io.TFRecordOptions")
class TFRecordOptions:
    """``tf.io.TFRecordOptions``: of which only the compression means something here."""

    def __init__(self, compression_type: object = None, **options: object) -> None:
        self.compression_type = compression_type
