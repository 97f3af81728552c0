"""Records that hold named lists of bytes, floats or ints: TensorFlow's ``tf.train.Example``, as bytes and as tensors.

The bytes are those of protocol buffers: an example is a map of names to features, and a feature is one of three lists.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import to_dtype
from hybridflow.core.string_tensor import StringTensor
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.data.strings import KINDS
from hybridflow.errors import ArgumentError, ArgumentTypeError, DataError

_STAGE = "parse_example"
_BYTES, _FLOATS, _INTS = 1, 2, 3  # the numbers of the lists
_VARINT, _DOUBLE, _LENGTH, _SINGLE = 0, 1, 2, 5  # wire types
_NAMES = {_BYTES: "bytes", _FLOATS: "floats", _INTS: "ints"}


class FixedLenFeature(NamedTuple):
    """A feature of as many values as ``shape`` has; ``dtype`` is float32, int64, ``bytes`` or ``str``.

    Records without it are errors, or have ``default_value``.

    >>> record = hf.data.encode_example({"x": [1.0, 2.0]})
    >>> hf.data.parse_single_example(record, {"x": hf.data.FixedLenFeature((2,), "float32")})
    {'x': <Tensor f32[2] cpu> [1. 2.]}
    """

    shape: Sequence[int | None]
    dtype: Any
    default_value: object = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values, none of which may be there: a tensor of one axis.

    >>> record = hf.data.encode_example({"x": [1, 2, 3]})
    >>> hf.data.parse_single_example(record, {"x": hf.data.VarLenFeature("int64")})
    {'x': <Tensor i64[3] cpu> [1 2 3]}
    """

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of rows of ``shape``.

    >>> record = hf.data.encode_example({"x": [1, 2, 3, 4]})
    >>> hf.data.parse_single_example(record, {"x": hf.data.FixedLenSequenceFeature((2,), "int64")})["x"].shape
    (2, 2)
    """

    shape: Sequence[int | None]
    dtype: Any
    allow_missing: bool = True
    default_value: object = None


def encode_example(features: Mapping[str, Any]) -> bytes:
    """Serialise an example (a ``tf.train.Example``).

    Arrays are stored flat. Floats are kept in 32 bits, ints in 64.

    Args:
        features: texts, floats or ints (bools too) by name, alone, in lists or in arrays.

    Returns:
        The bytes.

    Raises:
        ArgumentTypeError: for a value that is neither texts nor numbers.

    >>> hf.data.encode_example({"x": 1}).hex()
    '0a0c0a0a0a017812051a030a0101'
    """
    entries = []
    for name, value in features.items():
        key = delimited(1, name.encode())
        entries.append(delimited(1, key + delimited(2, encoded(name, value))))
    return delimited(1, b"".join(entries))


def encoded(name: str, value: object) -> bytes:
    """A feature's bytes.  Raises ArgumentTypeError, which has its name, for a value of neither texts nor numbers."""
    if isinstance(value, (str, bytes)):
        value = [value]
    array = value.numpy() if isinstance(value, Tensor) else None
    if array is None:
        values = value if isinstance(value, np.ndarray) else np.asarray(value)
        if values.dtype.kind in "USO":
            texts = np.array(value, object).ravel().tolist()
            if not all(isinstance(text, (str, bytes)) for text in texts):
                raise ArgumentTypeError("encode_example", f"{name} is {value!r:.60}: neither texts nor numbers.")
            parts = [text.encode() if isinstance(text, str) else text for text in texts]
            return delimited(_BYTES, b"".join([delimited(1, part) for part in parts]))
        array = values
    if array.dtype.kind in "bui":
        if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
            raise ArgumentError("encode_example", f"{name} holds {array.max()}, which int64 does not.")
        packed = b"".join([varint(number & 0xFFFFFFFFFFFFFFFF) for number in array.ravel().tolist()])
        return delimited(_INTS, delimited(1, packed))
    try:
        floats = array.ravel().astype("<f4", casting="same_kind")
    except TypeError:
        raise ArgumentTypeError("encode_example", f"{name} is of dtype {array.dtype}.") from None
    return delimited(_FLOATS, delimited(1, floats.tobytes()))


def delimited(number: int, data: bytes) -> bytes:
    """A field of bytes."""
    return varint(number << 3 | _LENGTH) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """A number's bytes."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def parse_single_example(serialized: bytes, features: Mapping[str, Any]) -> dict[str, Any]:
    """Parse one serialised example.

    Args:
        serialized: its bytes.
        features: an ``hf.data.FixedLenFeature``, ``VarLenFeature`` or ``FixedLenSequenceFeature`` by name.

    Returns:
        A dict of tensors, or texts, by name, with the shapes and dtypes that ``features`` says.

    Raises:
        DataError: for bytes that are no example, or whose features are missing or others.

    >>> record = hf.data.encode_example({"x": 3, "name": "three"})
    >>> hf.data.parse_single_example(record, {"name": hf.data.FixedLenFeature((), str)})
    {'name': 'three'}
    """
    if isinstance(serialized, StringTensor):
        serialized = serialized.numpy()
    if not isinstance(serialized, (bytes, bytearray)):
        raise ArgumentTypeError(_STAGE, f"an example is bytes, got {type(serialized).__name__}.")
    held = decoded(bytes(serialized))
    return {name: _tensor(name, held.get(name), kind) for name, kind in features.items()}


def parse_example(serialized: Sequence[bytes], features: Mapping[str, Any]) -> dict[str, Any]:
    """Parse a batch of serialised examples, whose features are stacked.

    Args:
        serialized: the bytes of examples, whose features have equal numbers of values.
        features: an ``hf.data.FixedLenFeature``, ``VarLenFeature`` or ``FixedLenSequenceFeature`` by name.

    Returns:
        A dict of tensors ``[examples, *shape]``, or lists of texts, by name.

    Raises:
        DataError: for bytes that are no example, or whose features are missing or others.

    >>> records = [hf.data.encode_example({"x": [i, i]}) for i in range(3)]
    >>> hf.data.parse_example(records, {"x": hf.data.FixedLenFeature((2,), "int64")})["x"].tolist()
    [[0, 0], [1, 1], [2, 2]]
    """
    from hybridflow.data.elements import batched

    for name, kind in features.items():
        if not isinstance(kind, FixedLenFeature):
            raise ArgumentError(
                _STAGE,
                f"{name} may have other numbers of values in each example, which one tensor cannot hold: use "
                "parse_single_example, then padded_batch.",
            )
    records = serialized.texts if isinstance(serialized, StringTensor) else serialized
    some = [parse_single_example(one, features) for one in records]
    if not some:
        raise ArgumentError(_STAGE, "there is no example.")
    return batched(some, _STAGE)


def _tensor(name: str, held: tuple[int, Any] | None, kind: object) -> Any:
    if not isinstance(kind, (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature)):
        raise ArgumentTypeError(_STAGE, f"{name} is {kind!r}; give a FixedLenFeature or VarLenFeature.")
    text = KINDS.get(getattr(kind.dtype, "__name__", kind.dtype))
    dtype = np.dtype(object) if text is not None else to_dtype(kind.dtype, _STAGE)
    wanted = _BYTES if text is not None else _FLOATS if dtype.kind in "fV" else _INTS
    if held is None or (not len(held[1]) and isinstance(kind, FixedLenFeature) and 0 not in _shape(kind)):
        return _default_of(name, kind, dtype)
    number, values = held
    if number != wanted and len(values):
        raise DataError(_STAGE, f"{name} holds {_NAMES[number]} where {_NAMES[wanted]} are wanted.")
    if not len(values):
        values = np.empty(0, dtype)
    if text is str:
        values = [_text(name, value) for value in values]
    array = np.array(values, object) if text is not None else _of_dtype(name, values, dtype)
    return _leaf(_shaped(name, array, kind))


def _of_dtype(name: str, values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Raises DataError for ints that the dtype does not have."""
    if dtype.kind in "iu" and values.size:
        limits = np.iinfo(dtype)
        for value in (int(values.min()), int(values.max())):
            if not limits.min <= value <= limits.max:
                raise DataError(_STAGE, f"{name} holds {value}, which {dtype} does not.")
    return values.astype(dtype, copy=False)


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise DataError(_STAGE, f"{name}: {error}. Say bytes instead of str.") from None


def _default_of(name: str, kind: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(kind, FixedLenFeature):
        if kind.default_value is None:
            raise DataError(_STAGE, f"an example has no {name}, and there is no default_value.")
        value = np.asarray(kind.default_value, dtype)
        return _leaf(np.broadcast_to(value, _shape(kind)) if not value.ndim else _shaped(name, value.ravel(), kind))
    return _leaf(_shaped(name, np.empty(0, dtype), kind))


def _shape(kind: FixedLenFeature | FixedLenSequenceFeature) -> tuple[int, ...]:
    shape = kind.shape if hasattr(kind.shape, "__iter__") else (kind.shape,)
    return tuple([int(extent) for extent in type_rules.shape(_STAGE, shape)])


def _shaped(
    name: str, array: np.ndarray, kind: FixedLenFeature | FixedLenSequenceFeature | VarLenFeature
) -> np.ndarray:
    if isinstance(kind, VarLenFeature):
        return array
    shape = _shape(kind)
    size = int(np.prod(shape))
    if isinstance(kind, FixedLenSequenceFeature):
        if size and array.size % size == 0:
            return array.reshape(-1, *shape)
    elif array.size == size:
        return array.reshape(shape)
    raise DataError(_STAGE, f"{name} has {array.size} values, which the shape {shape} does not hold.")


def _leaf(array: np.ndarray) -> Any:
    if not array.dtype.hasobject:
        return wrap(np.ascontiguousarray(array).reshape(array.shape))
    return array if array.ndim else array.item()


# Reading


def decoded(data: bytes) -> dict[str, tuple[int, Any]]:
    """Which list each feature of an example is, and its values.  Raises DataError for bytes that are no example."""
    result: dict[str, tuple[int, Any]] = {}
    for features in _parts(data, 1):
        for entry in _parts(features, 1):
            name, value = b"", b""
            for number, wire, part in fields(entry):
                if wire == _LENGTH and number == 1:
                    name = part
                elif wire == _LENGTH and number == 2:
                    value = part
            result[name.decode("utf-8", "replace")] = _list(value)
    return result


def _parts(data: bytes, wanted: int) -> Iterator[bytes]:
    for number, wire, part in fields(data):
        if number == wanted and wire == _LENGTH:
            yield part


def _list(feature: bytes) -> tuple[int, Any]:
    """The values of a feature, and which of the three lists they are: the last one that is there."""
    kind, content = _INTS, b""
    for number, wire, part in fields(feature):
        if number in _NAMES and wire == _LENGTH:
            kind, content = number, part
    if kind == _BYTES:
        return kind, list(_parts(content, 1))
    pieces = [
        (_floats if kind == _FLOATS else _ints)(part, wire) for number, wire, part in fields(content) if number == 1
    ]
    return kind, np.concatenate(pieces) if pieces else np.empty(0, "<f4" if kind == _FLOATS else np.int64)


def _floats(part: Any, wire: int) -> np.ndarray:
    if wire not in (_LENGTH, _SINGLE) or len(part) % 4:
        raise _damaged()
    return np.frombuffer(part, "<f4").astype(np.float32)


def _ints(part: Any, wire: int) -> np.ndarray:
    """The ints of bytes in which all but the last byte of each have their highest bit set."""
    if wire == _VARINT:
        return np.array([part], np.uint64).view(np.int64)
    data = np.frombuffer(part, np.uint8) if wire == _LENGTH else None
    if data is None or (data.size and data[-1] > 127):
        raise _damaged()
    if not data.size:
        return np.empty(0, np.int64)
    lasts = np.flatnonzero(data < 128)
    firsts = np.concatenate([[0], lasts[:-1] + 1])
    lengths = lasts - firsts + 1
    if int(lengths.max()) > 10:
        raise _damaged()
    shifts = (np.arange(data.size) - np.repeat(firsts, lengths)).astype(np.uint64) * np.uint64(7)
    values = (data & 127).astype(np.uint64) << shifts
    return np.bitwise_or.reduceat(values, firsts).view(np.int64)


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, wire type, and bytes or an int.  Raises DataError where it is not whole."""
    place, stop = 0, len(data)
    while place < stop:
        tag, place = _number(data, place)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, place = _number(data, place)
            yield number, wire, value
            continue
        if wire == _LENGTH:
            size, place = _number(data, place)
        elif wire in (_SINGLE, _DOUBLE):
            size = struct.calcsize("<f" if wire == _SINGLE else "<d")
        else:
            raise _damaged()
        if size > stop - place:
            raise _damaged()
        yield number, wire, data[place : place + size]
        place += size


def _number(data: bytes, place: int) -> tuple[int, int]:
    """An int at a place, and the place after it."""
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise _damaged()
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, place
        shift += 7


def _damaged() -> DataError:
    return DataError(_STAGE, "the bytes are no example, or not all of one.")
