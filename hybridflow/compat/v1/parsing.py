"""Texts and records in graphs: they are read and parsed on the host, and numbers of them go into programs."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow import data
from hybridflow.array.creation import asarray
from hybridflow.compat.adapters.files import decode_raw as decoded_raw
from hybridflow.compat.v1.constants import convert_to_tensor, on_host
from hybridflow.compat.v1.dtype_names import STRING, kind_of
from hybridflow.compat.v1.errors import OutOfRangeError, UnimplementedError
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.graph_stack import is_recording
from hybridflow.compat.v1.nodes import Info, Tensor
from hybridflow.compat.v1.recording import is_symbolic
from hybridflow.compat.v1.strings import encoded
from hybridflow.core.tensor import Tensor as Value
from hybridflow.errors import InvalidArgumentError

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


def _hosted(
    type: str, name: str | None, inputs: Sequence[Any], infos: Sequence[Info], compute: Callable[..., Sequence[Any]]
) -> list[Any]:
    """The results as a list: tensors of an operation on the host, or values where nothing is recorded."""
    if any(map(is_symbolic, inputs)) or is_recording(True):
        outputs = on_host(type, name, inputs, infos, compute)
        return [outputs] if len(infos) == 1 else list(outputs)
    arrays = compute(*[x.numpy() if isinstance(x, Value) else encoded(x) for x in inputs])
    return [x if info.dtype == STRING else asarray(x) for x, info in zip(arrays, infos)]


def _bytes(value: Any) -> bytes:
    value = value.item() if isinstance(value, np.ndarray) else value
    return value.encode() if isinstance(value, str) else bytes(value)


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Any]:
    """The columns of a line, or of each of several: of the dtypes of the defaults, which stand for empty fields.

    Raises InvalidArgumentError for a line with another number of fields, and for an empty one without a default.
    """
    defaults = [constant_of(x) for x in record_defaults]
    quoting: Any = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    shape = records.info.shape if is_symbolic(records) else np.shape(records)

    def compute(texts: object) -> list[Any]:
        rows = np.asarray(texts, dtype=object)
        lines = [_bytes(x).decode() for x in rows.ravel()]
        try:
            table = [next(csv.reader([x], delimiter=field_delim, quoting=quoting, strict=True), [""]) for x in lines]
        except csv.Error as error:
            raise InvalidArgumentError("decode_csv", f"a record is no line of fields: {error}") from None
        if select_cols is not None:
            table = [[row[k] for k in select_cols] for row in table]
        for row in table:
            if len(row) != len(defaults):
                raise InvalidArgumentError("decode_csv", f"Expect {len(defaults)} fields but have {len(row)} in record")
        columns = [[_field(row[k], held, na_value, k) for row in table] for k, held in enumerate(defaults)]
        arrays = [np.array(c, d.dtype).reshape(rows.shape) for c, d in zip(columns, defaults)]
        return [a[()] if a.dtype == object and not a.ndim else a for a in arrays]

    return _hosted("DecodeCSV", name, [records], [Info(shape, d.dtype) for d in defaults], compute)


def constant_of(value: TensorLike) -> np.ndarray:
    """A default of a column: an array of one value, or of none where the column must not be empty."""
    if isinstance(value, Tensor):
        held = value.info.known[0] if value.info.known else np.zeros(0, kind_of(value.dtype))
        return np.atleast_1d(held)
    if isinstance(value, np.ndarray):
        return np.atleast_1d(value)
    if not isinstance(value, (list, tuple)):
        try:
            return np.zeros(0, kind_of(value))  # a dtype
        except Exception:
            value = [value]
    if any(isinstance(x, (str, bytes)) for x in value):
        return np.array([_bytes(x) for x in value], dtype=object)
    array = np.array(value)
    return array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))


def _field(text: str, held: np.ndarray, missing: str, column: int) -> Any:
    if text in ("", missing):
        if not held.size:
            raise InvalidArgumentError("decode_csv", f"Field {column} is required but missing in record!")
        return held[0]
    if held.dtype == object:
        return text.encode()
    try:
        return held.dtype.type(text)
    except ValueError:
        raise InvalidArgumentError(
            "decode_csv", f"Field {column} in record is not a valid {held.dtype}: {text}"
        ) from None


def decode_raw(
    bytes: TensorLike | None = None,
    out_type: object = None,
    little_endian: bool = True,
    name: str | None = None,
    **names: Any,
) -> Any:
    """The numbers that a text, or each of several, is made of."""
    texts = names.pop("input_bytes", bytes)
    kind = kind_of(out_type)
    shape = texts.info.shape if is_symbolic(texts) else np.shape(texts)

    def compute(held: object) -> list[Any]:
        rows = np.asarray(held, dtype=object)
        for x in rows.ravel():
            if len(_bytes(x)) % kind.itemsize:
                raise InvalidArgumentError(
                    "decode_raw", f"Input has length {len(_bytes(x))} that is not a multiple of {kind.itemsize}."
                )
        rows_decoded = [decoded_raw(_bytes(x), kind, little_endian).numpy() for x in rows.ravel()]
        return [np.stack(rows_decoded).reshape(*rows.shape, -1)]

    info = Info(None if shape is None else (*shape, None), kind)
    return _hosted("DecodeRaw", name, [texts], [info], compute)[0]


def parse_single_example(
    serialized: TensorLike, features: Mapping[str, Any], name: str | None = None, example_names: object = None
) -> Any:
    """The features of a serialized ``tf.train.Example``, as a dict of tensors."""
    return _parsed("ParseSingleExample", serialized, features, name, data.parse_single_example, ())


def parse_example(
    serialized: TensorLike, features: Mapping[str, Any], name: str | None = None, example_names: object = None
) -> Any:
    """The same of several."""

    def parse(texts: Any, kinds: Any) -> dict[str, Any]:
        return data.parse_example(list(np.ravel(texts)), kinds)

    return _parsed("ParseExample", serialized, features, name, parse, (None,))


def _parsed(
    type: str,
    serialized: TensorLike,
    features: Any,
    name: str | None,
    parse: Any,
    front: tuple[Any, ...],
) -> Any:
    kinds = {key: kind._replace(dtype=_feature_dtype(kind.dtype)) for key, kind in features.items()}
    for key, kind in kinds.items():
        if not isinstance(kind, (data.FixedLenFeature, data.FixedLenSequenceFeature)):
            raise UnimplementedError(
                "parse_example", f"{key!r} has any length: there are no sparse tensors; use tf.FixedLenSequenceFeature."
            )
    if not is_symbolic(serialized) and not is_recording(True):
        return parse(serialized.item() if isinstance(serialized, np.ndarray) else serialized, kinds)
    infos = []
    for kind in kinds.values():
        inner = tuple(kind.shape if isinstance(kind.shape, (list, tuple)) else [kind.shape])
        inner = inner if isinstance(kind, data.FixedLenFeature) else (None, *inner)
        infos.append(Info((*front, *inner), kind_of(kind.dtype)))

    def compute(texts: Any) -> list[Any]:
        features = parse(texts if front else _bytes(texts), kinds)
        return [encoded(v) if i.dtype == STRING else _plain(v) for v, i in zip((features[k] for k in kinds), infos)]

    return dict(zip(kinds, _hosted(type, name, [serialized], infos, compute)))


def _feature_dtype(dtype: DTypeLike) -> Any:
    """A feature's dtype as ``hf.data`` takes it: texts are ``bytes`` there."""
    kind = kind_of(dtype)
    return bytes if kind == STRING else kind


def _plain(value: object) -> Any:
    return value.numpy() if isinstance(value, Value) else np.asarray(value)


# ---- texts


def _each(type: str, name: str | None, inputs: Sequence[Any], dtype: DTypeLike, function: Callable[..., Any]) -> Any:
    """A function of single values, for each element of the inputs."""
    tensors = [x if is_symbolic(x) or not is_recording(True) else convert_to_tensor(x) for x in inputs]
    shapes = [x.info.shape if is_symbolic(x) else np.shape(x) for x in tensors]

    def compute(*arrays: object) -> list[Any]:
        rows = np.broadcast_arrays(
            *[np.asarray(x, None if np.asarray(x).dtype.kind in "fiub" else object) for x in arrays]
        )
        values_found = [function(*values) for values in zip(*[row.ravel() for row in rows])]
        array = np.array(values_found, kind_of(dtype)).reshape(rows[0].shape)
        return [array if array.ndim else array[()]]

    shape = None if None in shapes else max(shapes, key=len)
    return _hosted(type, name, tensors, [Info(shape, kind_of(dtype))], compute)[0]


def string_to_number(
    string_tensor: object = None,
    out_type: DTypeLike = np.float32,
    name: str | None = None,
    input: TensorLike | None = None,
) -> Any:
    """Texts as numbers."""
    kind = kind_of(out_type)

    def number(text: TensorLike) -> Any:
        try:
            return kind.type(text)
        except ValueError:
            raise InvalidArgumentError("string_to_number", f"{text!r} is not a valid {kind}.") from None

    return _each("StringToNumber", name, [string_tensor if input is None else input], kind, number)


def as_string(
    input: TensorLike,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Any:
    """Numbers as texts of at least ``width`` characters, filled up with spaces or ``"0"`` in front."""
    form = (fill + str(width) if width > 0 else "") + (f".{precision}" if precision >= 0 else "")
    kind = "e" if scientific else "g" if shortest else "f"

    def text(x: object) -> bytes:
        if isinstance(x, (float, np.floating)):
            return f"{x:{form}{kind}}".encode()
        if isinstance(x, (bool, np.bool_)):
            return f"{str(x).lower():>{max(width, 0)}}".encode()
        return f"{x:{form}d}".encode()

    return _each("AsString", name, [input], STRING, text)


def string_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Any:
    """Texts one behind the other."""
    return _each("StringJoin", name, list(inputs), STRING, lambda *x: separator.encode().join(map(_bytes, x)))


# ---- files


def tf_record_iterator(path: object, options: object = None) -> Iterator[bytes]:
    """The records of a file, each as bytes."""
    for record in data.TFRecordDataset(path):
        yield _bytes(record)


def _lines(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        for line in file:
            yield line.rstrip(b"\r\n")


def _whole(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield file.read()


class _Reader:
    """Takes names of files out of a queue, and gives what is in them, one part at each run."""

    parts: Callable[[str], Iterator[bytes]]

    def __init__(self, name: str | None = None, skip_header_lines: int = 0, **_: object) -> None:
        self._skip = skip_header_lines
        self._name = default_graph().unique_name(name or type(self).__name__)

    def read(self, queue: object, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next part: its name and itself.  Raises OutOfRangeError when there are no more files."""

        def compute(state: object, values: Sequence[Any]) -> list[Any]:
            return list(self._next(queue, state))

        op = default_graph().add("ReaderReadV2", name or "ReaderReadV2", [], [Info((), STRING)] * 2, compute)
        op.on_host, op.source = True, self
        return op.outputs[0], op.outputs[1]

    def _next(self, queue: Any, state: Any) -> tuple[bytes, bytes]:
        held = self._state_in(state)
        while True:
            record = next(held["rest"], None)
            if record is not None:
                held["count"] += 1
                return f"{held['path']}:{record[0]}".encode(), record[1]
            path = os.fsdecode(queue._state_in(state).take(1)[0][0].item())
            held.update(path=path, rest=self._numbered(path))

    def _state_in(self, state: Any) -> dict[str, Any]:
        result: dict[str, Any] = state.resource(self, lambda: {"rest": iter(()), "count": 0})
        return result

    def read_up_to(self, queue: object, num_records: ArrayLike, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next parts, so many, or those that are left."""

        def compute(state: object, values: Sequence[Any]) -> list[Any]:
            pairs: list[Any] = []
            with contextlib.suppress(OutOfRangeError):
                while len(pairs) < int(values[0]):
                    pairs.append(self._next(queue, state))
            if not pairs:
                pairs.append(self._next(queue, state))  # tells the end
            return [np.array(column, dtype=object) for column in zip(*pairs)]

        op = default_graph().add(
            "ReaderReadUpToV2",
            name or "ReaderReadUpToV2",
            [convert_to_tensor(num_records)],
            [Info((None,), STRING)] * 2,
            compute,
        )
        op.on_host, op.source = True, self
        return op.outputs[0], op.outputs[1]

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many parts it has given."""
        op = default_graph().add(
            "ReaderNumRecordsProducedV2",
            name or "ReaderNumRecordsProducedV2",
            [],
            [Info((), np.dtype("int64"))],
            lambda state, _: [np.int64(self._state_in(state)["count"])],
        )
        op.on_host, op.source = True, self
        return op.outputs[0]

    def _numbered(self, path: str) -> Iterator[tuple[int, bytes]]:
        for number, part in enumerate(type(self).parts(path), 1):
            if number > self._skip:
                yield number, part


class TextLineReader(_Reader):
    """Lines of text."""

    parts = staticmethod(_lines)


class TFRecordReader(_Reader):
    """Records of files of ``tf.python_io.TFRecordWriter``."""

    parts = staticmethod(tf_record_iterator)


class WholeFileReader(_Reader):
    """Whole files."""

    parts = staticmethod(_whole)


def read_file(filename: object, name: str | None = None) -> Any:
    """What is in a file."""
    return _each("ReadFile", name, [filename], STRING, lambda path: next(_whole(os.fsdecode(_bytes(path)))))


def write_graph(graph_or_graph_def: object, logdir: str, name: str, as_text: bool = True) -> str:
    """Write what ``str(graph.as_graph_def())`` shows, for people to read: what operations compute is not in it.

    Raises UnimplementedError for ``as_text=False``.
    """
    if not as_text:
        raise UnimplementedError(
            "write_graph",
            "graphs are not written as protocol buffers: their operations are Python's. Save variables by "
            "tf.train.Saver and build the graph again, or save a function by hybridflow.saved.save.",
        )
    graph_def = graph_or_graph_def.as_graph_def() if hasattr(graph_or_graph_def, "as_graph_def") else graph_or_graph_def
    os.makedirs(logdir, exist_ok=True)
    path = os.path.join(logdir, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{graph_def}\n")
    return path


NAMES: dict[str, Any] = {
    "decode_csv": decode_csv, "decode_raw": decode_raw, "parse_single_example": parse_single_example,
    "parse_example": parse_example, "read_file": read_file,
}  # fmt: skip
TOP_NAMES: dict[str, Any] = NAMES | {
    "TextLineReader": TextLineReader, "TFRecordReader": TFRecordReader, "WholeFileReader": WholeFileReader,
    "string_to_number": string_to_number, "as_string": as_string, "string_join": string_join,
}  # fmt: skip
STRINGS: dict[str, Any] = {"to_number": string_to_number, "as_string": as_string, "join": string_join}
__all__ = ["NAMES", "STRINGS", "TOP_NAMES", "tf_record_iterator", "write_graph"]
