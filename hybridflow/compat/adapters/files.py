"""Datasets, checkpoints and saved functions with TensorFlow's arguments."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.checkpoint.checkpoint import opened
from hybridflow.compat.adapters.settings import device_of
from hybridflow.compat.adapters.values import (
    DType,
    TensorShape,
    TensorSpec,
    as_dtype,
    as_texts,
    convert_to_tensor,
)
from hybridflow.compat.export import TensorLike, export, tf_export
from hybridflow.compat.facade import Facade
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import pytree
from hybridflow.core.context import now
from hybridflow.core.string_tensor import as_strings, is_string, string
from hybridflow.core.tensor import Tensor
from hybridflow.data.csv_files import column, dialect_of, fields_in
from hybridflow.errors import ArgumentError, DataError, InvalidArgumentError
from hybridflow.saved.loading import Loaded
from hybridflow.saved.saving import DEFAULT, functions_of, in_folder
from hybridflow.strings.host import of_each, step

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import DTypeLike


def _of_lists(tensors: object) -> Any:
    """A list of numbers is a tensor, as TensorFlow makes one; tuples and dicts are structures."""
    if isinstance(tensors, dict):
        return {key: _of_lists(value) for key, value in tensors.items()}
    if isinstance(tensors, tuple):
        return tuple([_of_lists(value) for value in tensors])
    if isinstance(tensors, (list, bool, int, float, str, bytes)):
        return convert_to_tensor(tensors)
    if isinstance(tensors, np.ndarray) or not hasattr(tensors, "__array__") or isinstance(tensors, hf.Tensor):
        return as_texts(tensors)
    outcome = np.asarray(tensors)  # a column of a table
    return as_texts(outcome) if outcome.dtype.kind in "USO" else tensors


@tf_export("experimental.Optional")
class Optional:
    """``tf.experimental.Optional``: an element, or that there is none."""

    def __init__(self, spec: object, values: tuple[Any, ...] = (), flag: object = None) -> None:
        self.element_spec, self._values = spec, values
        self._flag = hf.asarray(bool(values)) if flag is None else flag

    @staticmethod
    def from_value(value: TensorLike) -> Optional:
        """One that has that element."""
        components = _of_lists(value)
        return Optional(hf.tree.map(TensorSpec.from_tensor, components), (components,))

    @staticmethod
    def empty(element_spec: object) -> Optional:
        """One that has none."""
        return Optional(element_spec)

    def has_value(self, name: str | None = None) -> Any:
        """Whether there is an element, as a tensor."""
        return self._flag

    def get_value(self, name: str | None = None) -> Any:
        """The element.  Raises ArgumentError where there is none."""
        if now().trace is not None and self._values:
            hf.debugging.assert_equal(self._flag, True, message="Optional has no value.")
        elif not self._flag:
            raise ArgumentError("Optional", "has no value.")
        return self._values[0]


class UnknownSpec:
    """What is said of a tensor of which the dtype alone is known."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.shape, self.name = dtype, TensorShape(None), None

    def __repr__(self) -> str:
        return f"TensorSpec(shape=<unknown>, dtype={self.dtype!r}, name=None)"


def _typed(generator: Any, specs: Any, *args: Any) -> Any:
    """The elements of a generator, with tensors of the dtypes that ``specs`` say."""
    for element in generator(*args):
        yield _cast(specs, element)


def _cast(spec: Any, value: Any) -> Any:
    if isinstance(spec, (tuple, list)):
        return tuple(_cast(one, part) for one, part in zip(spec, value, strict=True))
    if isinstance(spec, dict):
        return {key: _cast(one, value[key]) for key, one in spec.items()}
    return value if spec.dtype.name == "string" else np.asarray(value, spec.dtype.dtype)


@tf_export("data.NumpyIterator", "data.Iterator")
class Elements(hf.data.Iterator):
    """``tf.data.Iterator``."""

    __slots__ = ()

    def next(self) -> Any:
        """The next element."""
        return next(self)

    def get_next_as_optional(self) -> Optional:
        """The next element, or that there is none."""
        flag, element = self._optional()
        return Optional(self.element_spec, (element,), flag)

    def load_state_dict(self, state_dict: Any) -> None:
        """Go on where a state was taken, though the iterator may have begun."""
        self.close()
        self._runner = self._node.runner()
        self._elements, self._next = None, self._begin
        super().load_state_dict(state_dict)


@tf_export("data.Dataset")
class Dataset(hf.data.Dataset):
    """``tf.data.Dataset``: lists of numbers are tensors, and a list that a function of ``map`` returns is an element's
    components, as a tuple is."""

    _run = Elements

    @staticmethod
    def _of(node: Any) -> Dataset:
        result = object.__new__(Dataset)
        result._made = node
        return result

    @classmethod
    def from_tensor_slices(cls, tensors: object, name: str | None = None) -> Any:
        return super().from_tensor_slices(_of_lists(tensors))

    @classmethod
    def from_tensors(cls, tensors: object, name: str | None = None) -> Any:
        return super().from_tensors(_of_lists(tensors))

    @classmethod
    def from_generator(
        cls, generator: Any, output_types: Any = None, output_shapes: Any = None, args: Sequence[Any] | None = None,
        output_signature: Any = None, name: str | None = None,
    ) -> Any:  # fmt: skip
        """What ``generator(*args)`` gives.  ``output_types`` without shapes are what elements are converted to."""
        if output_types is None or output_shapes is not None or output_signature is not None or not callable(generator):
            return super().from_generator(generator, output_types, output_shapes, args, output_signature)
        types, structure = pytree.flatten(output_types)
        specs = pytree.unflatten(structure, [UnknownSpec(as_dtype(one)) for one in types])
        dataset: Any = super().from_generator(partial(_typed, generator, specs), args=args)
        dataset._declared = specs
        return dataset

    @property
    def element_spec(self) -> Any:
        """The elements with a ``tf.TensorSpec`` for each tensor."""
        declared = getattr(self, "_declared", None)
        return super().element_spec if declared is None else declared

    @classmethod
    def list_files(cls, *args: Any, **kwargs: Any) -> Any:
        supplied = args[0] if args else kwargs.pop("file_pattern")
        pattern = (
            [p.decode() for p in supplied.texts.ravel()] if isinstance(supplied, hf.strings.StringTensor) else supplied
        )
        return super().list_files(pattern, *args[1:], **kwargs).map(as_texts)

    def reduce(self, initial_state: object, reduce_func: Callable[..., object], name: str | None = None) -> Any:
        return super().reduce(_of_lists(initial_state), reduce_func)

    def scan(self, initial_state: object, scan_func: Callable[..., Any], name: str | None = None) -> Any:
        return super().scan(_of_lists(initial_state), scan_func)

    def map(self, map_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return super().map(partial(_components, map_func) if callable(map_func) else map_func, *args, **kwargs)


def _with_texts(kind: type, base: type) -> None:
    """Methods of the class say what those of its base do, where they have no words of their own."""
    for name, method in vars(kind).items():
        method = getattr(method, "__func__", method)
        if callable(method) and not name.startswith("_") and method.__doc__ is None:
            method.__doc__ = getattr(getattr(base, name, None), "__doc__", None)


_with_texts(Dataset, hf.data.Dataset)


def _components(function: Callable[..., Any], *args: object) -> Any:
    outcome = function(*args)
    return as_texts(tuple(outcome) if type(outcome) is list else outcome)


def paths_of(filenames: object) -> Any:
    """Names of files, which may be a tensor of texts or a dataset of such."""
    if isinstance(filenames, hf.strings.StringTensor):
        return path_of(filenames) if not filenames.ndim else [text.decode() for text in filenames.texts.ravel()]
    if isinstance(filenames, hf.data.Dataset):
        return [path_of(name) for name in filenames]
    if isinstance(filenames, (list, tuple)):
        return [path_of(name) for name in filenames]
    return filenames


def path_of(filename: object) -> Any:
    """A path, of which programs of TensorFlow give a tensor of a text, too."""
    return filename.numpy().decode() if isinstance(filename, hf.strings.StringTensor) else filename


@tf_export("data.TextLineDataset")
class TextLineDataset(hf.data.TextLineDataset, Dataset):
    """``tf.data.TextLineDataset``: the elements are tensors of texts."""

    def __init__(self, filenames: TensorLike, *args: Any, **kwargs: Any) -> None:
        super().__init__(paths_of(filenames), *args, **kwargs)
        self._made = self.map(as_texts)._made


@tf_export("data.TFRecordDataset")
class TFRecordDataset(hf.data.TFRecordDataset, Dataset):
    """``tf.data.TFRecordDataset``: the elements are tensors of texts."""

    def __init__(self, filenames: TensorLike, *args: Any, **kwargs: Any) -> None:
        super().__init__(paths_of(filenames), *args, **kwargs)
        self._made = self.map(as_texts)._made


@tf_export("data.FixedLengthRecordDataset")
class FixedLengthRecordDataset(hf.data.FixedLengthRecordDataset, Dataset):
    """``tf.data.FixedLengthRecordDataset``: the same."""

    def __init__(self, filenames: TensorLike, *args: Any, **kwargs: Any) -> None:
        super().__init__(paths_of(filenames), *args, **kwargs)
        self._made = self.map(as_texts)._made


@tf_export("keras.utils.timeseries_dataset_from_array", "keras.preprocessing.timeseries_dataset_from_array")
def timeseries_dataset_from_array(
    data: TensorLike, targets: TensorLike, sequence_length: int, sequence_stride: int = 1, sampling_rate: int = 1,
    batch_size: int | None = 128, shuffle: bool = False, seed: int | None = None, start_index: int | None = None,
    end_index: int | None = None,
) -> Any:  # fmt: skip
    """``tf.keras.utils.timeseries_dataset_from_array``: windows of the rows, with the target of each one's first."""
    rows = _rows_of(data)
    first, last = start_index or 0, len(rows) if end_index is None else end_index
    if not 0 <= first < last <= len(rows) or min(sequence_length, sequence_stride, sampling_rate) < 1:
        raise ArgumentError(
            "timeseries_dataset_from_array", f"rows {first} to {last} of {len(rows)}, with lengths or steps below 1."
        )
    starts = np.arange(first, last - (sequence_length - 1) * sampling_rate, sequence_stride)
    wanted = None if targets is None else _rows_of(targets)
    if wanted is not None:
        starts = starts[starts < first + len(wanted)]
    dataset = Dataset.from_tensor_slices(starts)
    if shuffle:
        dataset = dataset.shuffle(max(len(starts), 1), seed)
    steps = np.arange(sequence_length) * sampling_rate

    def window(start: Tensor) -> Any:
        at = int(start)
        return rows[at + steps] if wanted is None else (rows[at + steps], wanted[at - first])

    dataset = dataset.map(window)
    return dataset if batch_size is None else dataset.batch(batch_size)


def _rows_of(data: TensorLike) -> np.ndarray:
    return convert_to_tensor(data).numpy() if isinstance(data, (list, tuple)) else np.asarray(data)


@tf_export("data.experimental.cardinality")
def cardinality(dataset: Any) -> Any:
    """``tf.data.experimental.cardinality``: a tensor."""
    return dataset.cardinality()


def _applied(method: str) -> Callable[..., Any]:
    """A function whose result ``Dataset.apply`` takes, of a method with the same arguments."""

    def transformation(*args: object, **kwargs: object) -> Callable[[Any], Any]:
        return lambda dataset: getattr(dataset, method)(*args, **kwargs)

    transformation.__name__ = transformation.__qualname__ = method
    transformation.__doc__ = f"``Dataset.{method}``, for ``Dataset.apply``."
    return transformation


assert_cardinality = _applied("assert_cardinality")
bucket_by_sequence_length = _applied("bucket_by_sequence_length")
enumerate_dataset = _applied("enumerate")
group_by_window = _applied("group_by_window")
ignore_errors = _applied("ignore_errors")
rejection_resample = _applied("rejection_resample")
scan = _applied("scan")
snapshot = _applied("snapshot")
take_while = _applied("take_while")
unbatch = _applied("unbatch")
unique = _applied("unique")


@tf_export("data.experimental.prefetch_to_device")
def prefetch_to_device(device: str, buffer_size: int | None = None) -> Callable[[Any], Any]:
    """``tf.data.experimental.prefetch_to_device``."""
    return lambda dataset: dataset.prefetch_to_device(device_of(device), buffer_size)


@tf_export("data.experimental.copy_to_device")
def copy_to_device(target_device: str, source_device: object = "/cpu:0") -> Callable[[Any], Any]:
    """``tf.data.experimental.copy_to_device``: elements come from where they are."""
    return lambda dataset: dataset.prefetch_to_device(device_of(target_device))


@tf_export("data.experimental.get_single_element")
def get_single_element(dataset: Any) -> Any:
    """``tf.data.experimental.get_single_element``."""
    return dataset.get_single_element()


@tf_export("data.experimental.shuffle_and_repeat")
def shuffle_and_repeat(buffer_size: int, count: int | None = None, seed: int | None = None) -> Callable[[Any], Any]:
    """``tf.data.experimental.shuffle_and_repeat``."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


@tf_export("data.experimental.map_and_batch")
def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: int,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Callable[[Any], Any]:
    """``tf.data.experimental.map_and_batch``: ``num_parallel_batches`` counts batches of calls."""
    calls = num_parallel_calls if num_parallel_batches is None else num_parallel_batches * batch_size
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


@tf_export("data.experimental.parallel_interleave")
def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool | None = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Callable[[Any], Any]:
    """``tf.data.experimental.parallel_interleave``; the buffers are as large as ``interleave`` makes them."""
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, hf.data.AUTOTUNE, deterministic=None if sloppy is None else not sloppy
    )


def _telling(name: str, kind: type) -> Any:
    """A method that changes a list or dict of a checkpoint, which looks then for what waits for it."""
    change = getattr(kind, name)

    def method(self: Any, *args: object, **kwargs: object) -> Any:
        result = change(self, *args, **kwargs)
        self._look()
        return result

    return method


class _List(list):
    """A list of a checkpoint."""

    _look: Callable[[], None]
    append, extend, insert = (_telling(name, list) for name in ("append", "extend", "insert"))
    __setitem__, __iadd__ = (_telling(name, list) for name in ("__setitem__", "__iadd__"))

    def __repr__(self) -> str:
        return f"ListWrapper({super().__repr__()})"


class _Dict(dict):
    """A dict of a checkpoint."""

    _look: Callable[[], None]
    __setitem__, update, setdefault = (_telling(name, dict) for name in ("__setitem__", "update", "setdefault"))

    def __repr__(self) -> str:
        return f"DictWrapper({super().__repr__()})"


@tf_export("train.Checkpoint")
class Checkpoint(hf.checkpoint.Checkpoint):
    """``tf.train.Checkpoint``: what the file and the objects both have is restored; what is returned says the rest.
    That waits for objects that are given later, in lists and dicts too."""

    _awaits_all = True

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) in (list, dict):
            kind = _List if type(value) is list else _Dict
            value = kind(value)
            value._look = self._look
        super().__setattr__(name, value)

    def _look(self) -> None:
        if self._waiting is not None:
            self._waiting.look()

    def restore(self, path: Any, options: Any = None, **how: Any) -> Any:
        return super().restore(path, **{"partial": True, **how})


@tf_export("train.latest_checkpoint")
def latest_checkpoint(checkpoint_dir: str | os.PathLike[str], latest_filename: object = None) -> str | None:
    """``tf.train.latest_checkpoint``: of any name, the newest."""
    paths = [path for path in Path(checkpoint_dir).glob("*-*.safetensors") if path.stem.rpartition("-")[2].isdigit()]
    return str(max(paths, key=_age)) if paths else None


def _age(path: Path) -> tuple[int, int]:
    return path.stat().st_mtime_ns, int(path.stem.rpartition("-")[2])


@tf_export("train.list_variables")
def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """``tf.train.list_variables``: names and shapes."""
    reader = load_checkpoint(ckpt_dir_or_file)
    return sorted((name, list(shape)) for name, shape in reader.get_variable_to_shape_map().items())


@tf_export("train.load_variable")
def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> np.ndarray:
    """``tf.train.load_variable``."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


@tf_export("train.load_checkpoint")
def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> CheckpointReader:
    """``tf.train.load_checkpoint``: of a file, or the latest of a folder.  Raises FileNotFoundError for none."""
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path):
        path = latest_checkpoint(path) or os.path.join(path, "no checkpoint")
    return CheckpointReader(path)


class CheckpointReader:
    """The arrays of a checkpoint by name."""

    def __init__(self, path: str) -> None:
        self._file = opened(path)[0]

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        return {name: list(self._file.shape(name)) for name in self._file.names}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        return {name: as_dtype(self._file.dtype(name)) for name in self._file.names}

    def has_tensor(self, name: str) -> bool:
        return name in self._file.names

    def get_tensor(self, name: str) -> np.ndarray:
        """One of the arrays.  Raises ArgumentError for a name that is not there."""
        if not self.has_tensor(name):
            raise ArgumentError("load_checkpoint", f"there is no {name}; there are {', '.join(self._file.names)}.")
        return self._file.tensor(name).numpy()


@tf_export("saved_model.save")
def save(obj: object, export_dir: object, signatures: object = None, options: object = None) -> None:
    """``tf.saved_model.save``: one file at that path, or in it where it is a folder."""
    path = in_folder(export_dir)
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    hf.saved.save(obj, path, _found_signatures(obj) if signatures is None else signatures, with_methods=True)


def _found_signatures(obj: Any) -> Any:
    """The signatures of an object for which none are given: the one function whose arguments are known; none of a model
    that was never called.  None for what has its own."""
    if getattr(obj, "_is_model", False):
        return None if obj.built or getattr(obj, "inputs", None) else {}
    if not isinstance(obj, hf.Module) or isinstance(obj, Loaded):
        return None
    known = [one for _, one in functions_of(obj) if one.input_signature is not None]
    return {DEFAULT: known[0]} if len(known) == 1 else {}


class Signature:
    """A signature of what was loaded: its results have names."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        (name, *more), arguments = self._function.__signature__.parameters, kwargs
        if not args and len(kwargs) == 1 and not more and name not in kwargs:  # by the name of a layer's input
            args, arguments = tuple(kwargs.values()), {}
        return _named(self._function(*args, **arguments))

    @property
    def structured_input_signature(self) -> tuple[tuple[()], dict[str, Any]]:
        first, specs = self._function.programs[0], self._function.specs[0]
        return (), {name: spec for (name, _), spec in zip(first.parameters, specs)}

    @property
    def structured_outputs(self) -> dict[str, Any]:
        return _named(self._function.structured_outputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_function"], name)


def _named(outputs: object) -> dict[str, Any]:
    if isinstance(outputs, dict):
        return outputs
    several = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return {f"output_{k}": one for k, one in enumerate(several)}


@tf_export("saved_model.load")
def load(export_dir: object, tags: object = None, options: object = None) -> Any:
    """``tf.saved_model.load``: signatures give dicts, functions what they gave before they were saved."""
    loaded = hf.saved.load(in_folder(export_dir))
    loaded.signatures = {name: Signature(one) for name, one in loaded.signatures.items()}
    return loaded


@tf_export("io.read_file")
def read_file(filename: object, name: str | None = None) -> Any:
    """``tf.io.read_file``: a text of the bytes."""
    outcome = as_strings(os.fspath(filename) if hasattr(filename, "__fspath__") else filename, "read_file")
    return step(
        lambda path: of_each(lambda one: Path(one.decode()).read_bytes(), path),
        [outcome],
        [TensorType((), string)],
        True,
    )[0]


@tf_export("io.write_file")
def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """``tf.io.write_file``; folders that are not there are made."""
    contents = contents.numpy() if isinstance(contents, hf.strings.StringTensor) else contents
    filename = path_of(filename)
    Path(filename).parent.mkdir(parents=True, exist_ok=True)
    Path(filename).write_bytes(contents.encode() if isinstance(contents, str) else contents)


@tf_export("io.gfile.glob")
def glob_files(pattern: str | os.PathLike[str]) -> list[str]:
    """``tf.io.gfile.glob``."""
    import glob

    patterns = [pattern] if isinstance(pattern, (str, os.PathLike)) else pattern
    return sorted(path for one in patterns for path in glob.glob(os.fspath(one)))


@tf_export("io.matching_files")
def matching_files(pattern: object, name: str | None = None) -> Any:
    """``tf.io.matching_files``: a tensor of texts."""
    return convert_to_tensor(glob_files(paths_of(pattern)), "string")


@tf_export("io.gfile.exists")
def exists(path: str | os.PathLike[str]) -> bool:
    """``tf.io.gfile.exists``."""
    return os.path.exists(path)


@tf_export("io.gfile.makedirs", "io.gfile.mkdir")
def makedirs(path: str | os.PathLike[str]) -> None:
    """``tf.io.gfile.makedirs``."""
    os.makedirs(path, exist_ok=True)


@tf_export("io.decode_raw")
def decode_raw(input_bytes: object, out_type: DTypeLike, little_endian: bool = True, name: str | None = None) -> Any:
    """``tf.io.decode_raw``: the numbers of which texts are the bytes."""
    order = as_dtype(out_type).dtype.newbyteorder("<" if little_endian else ">")
    texts = as_strings(input_bytes, "decode_raw").texts
    sizes = {len(text) for text in texts.ravel()}
    if len(sizes) > 1 or any(size % order.itemsize for size in sizes):
        raise ArgumentError("decode_raw", f"texts of {sorted(sizes)} bytes are no rows of {order}.")
    rows = [np.frombuffer(text, order).astype(order.newbyteorder("=")) for text in texts.ravel()]
    outcome = np.stack(rows) if rows else np.zeros((0, 0), order)
    return hf.asarray(outcome.reshape(*texts.shape, -1) if rows else outcome)


@tf_export("io.decode_csv")
def decode_csv(
    records: object, record_defaults: Iterable[object], field_delim: str = ",", use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None, name: str | None = None,
) -> list[Any]:  # fmt: skip
    """``tf.io.decode_csv``: the columns of each text."""
    dialect = dialect_of(field_delim, use_quote_delim, False, na_value)
    columns = [column(csv_default(default)) for default in record_defaults]
    lines = as_strings(records, "decode_csv")

    def run(texts: np.ndarray) -> Any:
        rows = [text.decode("utf-8", "surrogateescape") for text in texts.ravel()]
        try:
            outcome = fields_in(rows, columns, dialect, None if select_cols is None else list(select_cols))
        except DataError as error:
            raise InvalidArgumentError("decode_csv", str(error)) from None
        converted = []
        for one, values in zip(columns, outcome or [[] for _ in columns]):
            texts_or_numbers = [
                v.encode("utf-8", "surrogateescape") if one.dtype is None else v.numpy() for v in values
            ]
            out: Any = np.empty(len(values), object if one.dtype is None else one.dtype)
            out[:] = texts_or_numbers
            converted.append(out.reshape(texts.shape))
        return converted

    kinds = [TensorType(lines.shape, string if one.dtype is None else one.dtype) for one in columns]
    return step(run, [lines], kinds)


def csv_default(default: object) -> Any:
    """A default of a column as ``hf.data`` takes it."""
    if isinstance(default, hf.strings.StringTensor):
        return default.texts.ravel()[0].decode() if default.size else str
    if isinstance(default, (list, tuple)) and default and isinstance(default[0], bytes):
        return [default[0].decode()]
    if isinstance(default, bytes):
        return default.decode()
    return (
        str if isinstance(default, (DType, type(string))) and is_string(getattr(default, "dtype", default)) else default
    )


@tf_export("data.experimental.CsvDataset")
class CsvDataset(Dataset):
    """``tf.data.experimental.CsvDataset``."""

    def __init__(self, filenames: TensorLike, record_defaults: Iterable[Any], *args: Any, **kwargs: Any) -> None:
        defaults = [csv_default(default) for default in record_defaults]
        converted = hf.data.CsvDataset(paths_of(filenames), defaults, *args, **kwargs)
        self._made = Dataset._of(converted._node).map(lambda *fields: as_texts(fields))._made


@tf_export("data.experimental.make_csv_dataset")
def make_csv_dataset(file_pattern: TensorLike, *args: Any, **kwargs: Any) -> Any:
    """``tf.data.experimental.make_csv_dataset``."""
    if kwargs.get("column_defaults") is not None:
        kwargs["column_defaults"] = [csv_default(default) for default in kwargs["column_defaults"]]
    converted = hf.data.make_csv_dataset(paths_of(file_pattern), *args, **kwargs)
    return Dataset._of(converted._node).map(lambda *element: as_texts(element[0] if len(element) == 1 else element))


@tf_export("io.gfile.GFile")
def open_file(name: Any, mode: str = "r") -> Any:
    """``tf.io.gfile.GFile``."""
    return open(name, mode)


isdir, listdir, rmtree, remove = os.path.isdir, os.listdir, shutil.rmtree, os.remove


def _manager(
    checkpoint: Any,
    directory: str | os.PathLike[str],
    max_to_keep: int | None = 5,
    keep_checkpoint_every_n_hours: float | None = None,
    checkpoint_name: str = "ckpt",
    step_counter: object = None,
    checkpoint_interval: object = None,
    init_fn: Callable[[], Any] | None = None,
) -> Any:
    """``tf.train.CheckpointManager``."""
    return hf.checkpoint.CheckpointManager(
        checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours, checkpoint_name, init_fn
    )


CheckpointManager = Facade(hf.checkpoint.CheckpointManager, _manager)


@tf_export("data.experimental.dense_to_ragged_batch")
def ragged_batch(batch_size: object, drop_remainder: bool = False, row_splits_dtype: object = "int64") -> Any:
    """``tf.data.experimental.dense_to_ragged_batch``: what ``Dataset.apply`` takes."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


@tf_export("data.experimental.from_list")
def from_list(elements: Any, name: str | None = None) -> Any:
    """``tf.data.experimental.from_list``: the elements of a list, which have one structure."""
    return Dataset.from_tensor_slices(
        hf.tree.map(lambda *parts: hf.stack([convert_to_tensor(p) for p in parts]), *elements)
    )


@tf_export("data.experimental.at")
def at(dataset: Any, index: Any) -> Any:
    """``tf.data.experimental.at``.  Raises IndexError where there are fewer."""
    for element in dataset.skip(int(index)).take(1):
        return element
    raise IndexError(f"the dataset has no element {int(index)}")


@tf_export("data.experimental.Reducer")
class Reducer:
    """``tf.data.experimental.Reducer``."""

    def __init__(
        self, init_func: Callable[..., object], reduce_func: Callable[..., object], finalize_func: Callable[..., object]
    ) -> None:
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


@tf_export("data.experimental.group_by_reducer")
def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Callable[[Any], Any]:
    """``tf.data.experimental.group_by_reducer``: for each key, in their order, what its elements are folded to."""

    def transform(dataset: Any) -> Any:
        states: dict[int, Any] = {}
        for element in dataset:
            parts = element if isinstance(element, tuple) else (element,)
            key = int(key_func(*parts))
            before = states[key] if key in states else reducer.init_func(hf.asarray(key))
            states[key] = reducer.reduce_func(before, *parts)
        return from_list([reducer.finalize_func(states[key]) for key in sorted(states)])

    return transform


@tf_export("data.experimental.get_structure")
def get_structure(dataset_or_iterator: Any) -> Any:
    """``tf.data.experimental.get_structure``."""
    return dataset_or_iterator.element_spec


@tf_export("saved_model.contains_saved_model")
def contains_saved_model(export_dir: object) -> bool:
    """``tf.saved_model.contains_saved_model``."""
    return os.path.isfile(in_folder(export_dir))


class CheckpointState:
    """What ``tf.train.get_checkpoint_state`` returns."""

    def __init__(self, paths: list[str]) -> None:
        self.all_model_checkpoint_paths = paths
        self.model_checkpoint_path = paths[-1]


@tf_export("train.get_checkpoint_state")
def get_checkpoint_state(
    checkpoint_dir: str | os.PathLike[str], latest_filename: object = None
) -> CheckpointState | None:
    """``tf.train.get_checkpoint_state``: those in a folder, the oldest first; None where there are none."""
    paths = [path for path in Path(checkpoint_dir).glob("*-*.safetensors") if path.stem.rpartition("-")[2].isdigit()]
    return CheckpointState([str(path) for path in sorted(paths, key=_age)]) if paths else None


@tf_export("train.checkpoints_iterator")
def checkpoints_iterator(
    checkpoint_dir: str | os.PathLike[str],
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[..., object] | None = None,
) -> Iterator[str]:
    """``tf.train.checkpoints_iterator``: each new checkpoint of a folder, until there was none for ``timeout``."""
    seen, waited = None, 0.0
    while True:
        latest = latest_checkpoint(checkpoint_dir)
        if latest is not None and latest != seen:
            seen, waited = latest, 0.0
            yield latest
            time.sleep(min_interval_secs)
            continue
        if timeout is not None and waited >= timeout and (timeout_fn is None or timeout_fn()):
            return
        time.sleep(0.1)
        waited += 0.1


export(CheckpointManager, "train.CheckpointManager")
export(isdir, "io.gfile.isdir")
export(listdir, "io.gfile.listdir")
export(rmtree, "io.gfile.rmtree")
export(remove, "io.gfile.remove")
export(Dataset.counter, "data.experimental.Counter")
export(Dataset.random, "data.experimental.RandomDataset")
export(assert_cardinality, "data.experimental.assert_cardinality")
export(bucket_by_sequence_length, "data.experimental.bucket_by_sequence_length")
export(enumerate_dataset, "data.experimental.enumerate_dataset")
export(group_by_window, "data.experimental.group_by_window")
export(ignore_errors, "data.experimental.ignore_errors")
export(Dataset.load, "data.experimental.load")
export(rejection_resample, "data.experimental.rejection_resample")
export(Dataset.save, "data.experimental.save")
export(scan, "data.experimental.scan")
export(snapshot, "data.experimental.snapshot")
export(take_while, "data.experimental.take_while")
export(unbatch, "data.experimental.unbatch")
export(unique, "data.experimental.unique")
export(Dataset.sample_from_datasets, "data.experimental.sample_from_datasets")
export(Dataset.choose_from_datasets, "data.experimental.choose_from_datasets")
