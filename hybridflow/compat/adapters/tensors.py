"""What tensors, variables, symbols and layers answer to programs of TensorFlow: words, shapes, dtypes and devices.

The attributes are those of the package's own classes, which answer in TensorFlow's dialect: see ``context.Dialect``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import Reference, TensorShape, as_dtype, convert_to_tensor, operand
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import dialect
from hybridflow.core.donated_tensor import DonatedTensor
from hybridflow.core.layer_context import mask_of
from hybridflow.core.lazy_tensor import LazyTensor
from hybridflow.core.shape import Shape
from hybridflow.core.string_tensor import StringTensor
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.data.map_filter import Filter, Interleave
from hybridflow.data.pipeline import TableNode
from hybridflow.errors import ArgumentError
from hybridflow.layers.keras_tensor import Symbol
from hybridflow.models.model import Model
from hybridflow.models.trainer import Trainer
from hybridflow.ragged import Ragged
from hybridflow.sparse import COO
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike
    from hybridflow.core.variable import Variable


def install() -> None:
    """Let tensors and variables have ``ref``, and tensors ``_keras_mask``, the mask that a layer gave them or None; and
    speak TensorFlow's dialect from here on."""
    setattr(hf.Tensor, "_keras_mask", property(mask_of))  # noqa: B010
    setattr(Symbol, "_keras_mask", property(_mask_of_symbol))  # noqa: B010
    setattr(COO, "__init__", _with_tensors(COO.__init__, 2))  # noqa: B010
    for name, maker in _MORE_MAKERS.items():
        setattr(Ragged, name, classmethod(maker))
    for name, reader in (("row_starts", _row_starts), ("row_limits", _row_limits)):
        setattr(Ragged, name, reader)
    for name in [name for name in vars(Ragged) if name.startswith("from_")]:
        setattr(Ragged, name, classmethod(_with_tensors(getattr(Ragged, name).__func__, 1)))
    setattr(Ragged, "to_sparse", _rows_as_sparse)  # noqa: B010
    for rows_kind in (Ragged, COO):
        setattr(rows_kind, "value_type", property(type))  # noqa: B010  # of their specs
    setattr(Ragged, "from_sparse", classmethod(_rows_of_sparse))  # noqa: B010
    for kind in (hf.Tensor, hf.Variable):
        setattr(kind, "ref", _ref)  # noqa: B010
    setattr(hf.layers.Layer, "add_variable", _add_variable)  # noqa: B010
    _install_answers()
    dialect.is_tensorflow = True


def _with_tensors(make: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A maker to which programs give lists as values: tensors of TensorFlow's dtypes are made of these."""

    @functools.wraps(make)
    def call(*args: object, **kwargs: object) -> Any:
        if dialect.is_spoken_to(sys._getframe(1)):
            args = tuple([_tensor_of(x) if k == place else x for k, x in enumerate(args)])
            kwargs = {name: _tensor_of(x) if name in _VALUES else x for name, x in kwargs.items()}
        return make(*args, **kwargs)

    return call


_VALUES = "values", "flat_values", "tensor"


def _tensor_of(value: object) -> object:
    return convert_to_tensor(value) if isinstance(value, (list, tuple)) else value


def _mask_of_symbol(x: Symbol) -> Any:
    return None if x.mask_type is None else hf.layers.Lambda(mask_of)(x)


def _add_variable(layer: hf.layers.Layer, name: Any = None, shape: Any = (), *args: Any, **kwargs: Any) -> Any:
    """``add_weight`` under its old name: the name of the variable comes first."""
    if name is not None and not isinstance(name, str):  # of today: the shape comes first
        return layer.add_weight(name, *(() if shape == () else (shape,)), *args, **kwargs)
    return layer.add_weight(shape, name=name, **dict(zip(("dtype", "initializer"), args)), **kwargs)


def _rows_as_sparse(x: Ragged, name: str | None = None) -> COO:
    """The sparse tensor of all values of a ragged one."""
    shape = x.bounding_shape().numpy().tolist()
    rows = x.value_rowids()
    if isinstance(x.values, Ragged):
        inner = _rows_as_sparse(x.values)
        element = inner.indices[:, 0]
        first, behind = hf.take(rows, element, axis=0), inner.indices[:, 1:]
        starts = hf.take(x.row_splits, first, axis=0)
        return COO(hf.concat([hf.stack([first, element - starts], axis=1), behind], axis=1), inner.values, shape)
    starts = hf.take(x.row_splits, rows, axis=0)
    places = hf.arange(x.values.shape[0]) - starts
    return COO(hf.stack([rows, places], axis=1), x.values, shape)


def _from_row_starts(
    kind: type[Ragged], values: TensorLike, row_starts: ArrayLike, name: str | None = None, validate: bool = True
) -> Any:
    count = values.nrows() if isinstance(values, Ragged) else operand(values).shape[0]
    starts = hf.asarray(row_starts)
    return kind.from_row_splits(values, hf.concat([starts, hf.reshape(hf.asarray(count, starts.dtype), (1,))]))


def _from_row_limits(
    kind: type[Ragged], values: TensorLike, row_limits: ArrayLike, name: str | None = None, validate: bool = True
) -> Any:
    limits = hf.asarray(row_limits)
    return kind.from_row_splits(values, hf.concat([hf.zeros((1,), limits.dtype), limits]))


def _from_nested_value_rowids(
    kind: type[Ragged], flat_values: TensorLike, nested_value_rowids: Sequence[TensorLike],
    nested_nrows: Sequence[int] | None = None, name: str | None = None,
    validate: bool = True,
) -> Any:  # fmt: skip
    counts = [None] * len(nested_value_rowids) if nested_nrows is None else nested_nrows
    for rowids, count in reversed(list(zip(nested_value_rowids, counts))):
        flat_values = kind.from_value_rowids(flat_values, rowids, count)
    return flat_values


_MORE_MAKERS: dict[str, Callable[..., Any]] = {
    "from_row_starts": _from_row_starts,
    "from_row_limits": _from_row_limits,
    "from_nested_value_rowids": _from_nested_value_rowids,
}


def _row_starts(x: Ragged, name: str | None = None) -> Any:
    """Where each row begins."""
    return x.row_splits[:-1]


def _row_limits(x: Ragged, name: str | None = None) -> Any:
    """Where each row ends."""
    return x.row_splits[1:]


def _rows_of_sparse(kind: type, st_input: COO, name: str | None = None) -> Ragged:
    """The rows of a sparse matrix whose entries are at the beginning of each."""
    at = st_input.indices.numpy()
    rows, columns = at[:, 0], at[:, 1]
    lengths = np.bincount(rows, minlength=int(st_input.shape[0])).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    if (columns != np.arange(len(rows)) - starts[rows]).any() or (np.diff(rows) < 0).any():
        raise ArgumentError("RaggedTensor.from_sparse", "SparseTensor is not right-ragged")
    return Ragged.from_row_lengths(st_input.values, lengths)


def _extents_as_tensor(sizes: Iterable[object]) -> Any:
    """What ``dense_shape`` of a sparse tensor is."""
    return hf.asarray(np.array(sizes, np.int64)) if all(type(n) is int for n in sizes) else sizes


def _ref(x: object) -> Reference:
    return Reference(x)


@functools.cache
def _install_answers() -> None:
    """Let attributes and methods of the package's classes have answers in TensorFlow's dialect, too."""
    tensors: tuple[type, ...] = (hf.Tensor, LazyTensor, DonatedTensor, SymbolicTensor, StringTensor, hf.Variable)
    for kind in (*tensors, Symbol):
        _convert_property(kind, "shape", Shape if kind is Symbol else _shape)
        if kind is not hf.Variable:
            _convert_property(kind, "dtype", _name if kind is Symbol else as_dtype)
        if "device" in vars(kind):
            _convert_property(kind, "device", _device)
    _convert_property(hf.Variable, "dtype", _dtype_of_variable, of_owner=True)
    _convert_property(hf.layers.Layer, "dtype", _name)
    _convert_property(hf.layers.Layer, "compute_dtype", _name)
    _convert_property(hf.layers.Layer, "variable_dtype", _name)
    _convert_property(Ragged, "shape", _shape)
    _convert_property(Ragged, "dtype", as_dtype)
    _convert_property(COO, "shape", _shape)
    _convert_property(COO, "dtype", as_dtype)
    _convert_property(COO, "dense_shape", _extents_as_tensor)
    _convert_property(hf.IndexedSlices, "dtype", as_dtype)
    _convert_property(Trainer, "metrics_names", _metric_names, of_owner=True)
    _convert_property(hf.Model, "output_shape", _single)
    _convert_property(hf.Model, "input_shape", _single)
    _convert_property(hf.TensorSpec, "dtype", as_dtype)
    for table in (hf.lookup.StaticHashTable, hf.lookup.MutableHashTable, hf.lookup.StaticVocabularyTable):
        _convert_property(table, "key_dtype", as_dtype)
        _convert_property(table, "value_dtype", as_dtype)
    for schedule_kind in _own_kinds(hf.optimizers.schedules.LearningRateSchedule):
        _replace_method(schedule_kind, "__call__", _rate)
    for layer_kind in _own_kinds(hf.layers.Layer):
        _convert_config(layer_kind)
    for kind, name, replacement in (
        (hf.Tensor, "numpy", _numpy),
        (hf.Tensor, "get_shape", _get_shape),
        (hf.Variable, "numpy", _numpy),
        (hf.Variable, "get_shape", _get_shape),
        (hf.Variable, "__format__", _format_of_variable),
        (hf.Variable, "__str__", _repr_of_variable),
        (hf.TensorSpec, "__str__", _repr_of_spec),
        (Ragged, "__repr__", _repr_of_ragged),
        (Ragged, "numpy", _numpy_of_ragged),
        (COO, "__repr__", _repr_of_coo),
        (hf.IndexedSlices, "__str__", _repr_of_slices),
        (hf.Tensor, "__repr__", _repr),
        (hf.Tensor, "__str__", _str),
        (hf.Tensor, "__format__", _format),
        (hf.Variable, "__repr__", _repr_of_variable),
        (StringTensor, "__repr__", _repr_of_texts),
        (StringTensor, "__str__", _str_of_texts),
        (StringTensor, "__format__", _format_of_texts),
        (SymbolicTensor, "__repr__", _repr_of_symbolic),
        (Symbol, "__repr__", _repr_of_symbol),
        (hf.layers.Layer, "__repr__", _repr_of_layer),
        (hf.metrics.Metric, "__repr__", _repr_of_metric),
        (hf.TensorSpec, "__repr__", _repr_of_spec),
        (hf.data.Dataset, "__repr__", _repr_of_dataset),
    ):
        _replace_method(kind, name, replacement)


def _convert_property(kind: type, name: str, convert: Callable[..., Any], of_owner: bool = False) -> None:
    """Let programs have the value of a property as ``convert`` makes it."""
    inner = next((vars(owner)[name] for owner in kind.__mro__ if name in vars(owner)), None)
    if not isinstance(inner, property) or inner.fget is None:
        return
    read = inner.fget

    def get(self: object) -> Any:
        value = read(self)
        if not dialect.is_spoken_to(sys._getframe(1)):
            return value
        return convert(self, value) if of_owner else convert(value)

    setattr(kind, name, property(get, inner.fset, doc=inner.__doc__))


def _replace_method(kind: type, name: str, replacement: Callable[..., Any]) -> None:
    """Let a method be ``replacement`` in TensorFlow's dialect."""
    inner = getattr(kind, name)
    takes_inner = replacement in _WRAPPERS

    @functools.wraps(inner)
    def call(self: Any, *args: object, **kwargs: object) -> Any:
        if not dialect.is_tensorflow:
            return inner(self, *args, **kwargs)
        return replacement(inner, self, *args, **kwargs) if takes_inner else replacement(self, *args)

    setattr(kind, name, call)


def _shape(value: Any) -> TensorShape:
    return value if isinstance(value, TensorShape) else tuple.__new__(TensorShape, value)


def _name(dtype: DTypeLike) -> Any:
    return dtype if dtype is None or isinstance(dtype, str) else np.dtype(dtype).name


def _device(value: str) -> str:
    kind, _, number = value.partition(":")
    return f"/job:localhost/replica:0/task:0/device:{kind.upper()}:{number or 0}"


def _dtype_of_variable(variable: Variable, dtype: DTypeLike) -> Any:
    return np.dtype(dtype).name if _is_keras_variable(variable) else as_dtype(dtype)


def _is_keras_variable(variable: Variable) -> bool:
    """Whether it is a weight of a layer, or a metric's: no tf.Variable."""
    return bool(variable._makers)


def _metric_names(model: Model, names: object) -> list[str]:
    return [metric.name for metric in model.metrics]


def _single(shape: object) -> Any:
    if isinstance(shape, Shape):
        return tuple(shape)
    return shape[0] if isinstance(shape, list) and len(shape) == 1 else shape


def _own_kinds(base: type) -> list[type]:
    """The classes of this package that are derived from one, and that one."""
    result = [base] if base.__module__.startswith("hybridflow.") else []
    kind: type
    for kind in base.__subclasses__():
        result += _own_kinds(kind)
    return result


# ---- methods, each with the one that it is around first


def _numpy(inner: Any, self: Any) -> Any:
    """A scalar is NumPy's scalar, and arrays may be written to."""
    result = inner(self)
    if not dialect.is_spoken_to(sys._getframe(2)):
        return result
    return result.copy() if result.ndim else result[()]


def _get_shape(inner: Any, self: Any) -> Any:
    return _shape(inner(self))


def _rate(inner: Callable[..., Any], self: object, step: object) -> Any:
    """Rates are calculated in float64, and shown in float32."""
    result = inner(self, step)
    return hf.astype(result, hf.float32) if dialect.is_spoken_to(sys._getframe(2)) else result


def _numpy_of_ragged(inner: Any, self: Any) -> Any:
    return _rows(self) if dialect.is_spoken_to(sys._getframe(2)) else inner(self)


_WRAPPERS: tuple[Any, ...] = (_numpy, _get_shape, _numpy_of_ragged, _rate)


def _convert_config(kind: type) -> None:
    """Let programs have what ``get_config`` of a class gives as Keras writes it."""
    inner = vars(kind).get("get_config")
    if inner is None:
        return

    @functools.wraps(inner)
    def get_config(self: object) -> Any:
        config = inner(self)
        return _keras_config(config) if dialect.is_spoken_to(sys._getframe(1)) else config

    setattr(kind, "get_config", get_config)  # noqa: B010


def _keras_config(config: Any) -> Any:
    """A configuration with its policy, and what else is described in it, as Keras writes these."""
    result = dict(config)
    if isinstance(result.get("dtype"), str):
        policy = {"name": result["dtype"]}
        result["dtype"] = {"module": "keras", "class_name": "DTypePolicy", "config": policy, "registered_name": None}
    return {key: keras_description(value) for key, value in result.items()}


def keras_description(value: object) -> Any:
    """What describes an object, as Keras writes it: with the module of its class."""
    if isinstance(value, (list, tuple)):
        return type(value)([keras_description(one) for one in value]) if type(value) in (list, tuple) else value
    if not isinstance(value, dict) or "class_name" not in value or "config" not in value:
        return value
    if "registered_name" in value:
        return value
    name, config = value["class_name"], value["config"]
    module = value.get("module") or next((f"keras.{room}" for room in _ROOMS if _is_in(room, name)), None)
    if module == "keras.layers" and isinstance(config, dict):
        config = _keras_config(config)
    return {"module": module, "class_name": name, "config": config, "registered_name": None}


_ROOMS = "layers", "initializers", "regularizers", "constraints", "optimizers", "losses", "metrics"


def _is_in(room: str, name: str) -> bool:
    return name in getattr(hf, room).__all__


# ---- words


def _shape_text(shape: Any) -> str:
    return str(TensorShape([None if isinstance(extent, Dim) else extent for extent in shape]))


def _numpy_text(x: Any, how: Callable[[Any], str]) -> str:
    array = x.numpy()
    text = str(array[()]) if array.ndim == 0 else how(array)
    return f"\n{text}" if "\n" in text else text


def _repr(x: Any) -> str:
    return f"<tf.Tensor: shape={_shape_text(x.shape)}, dtype={x.dtype.name}, numpy={_numpy_text(x, repr)}>"


def _str(x: Any) -> str:
    return f"tf.Tensor({_numpy_text(x, str)}, shape={_shape_text(x.shape)}, dtype={x.dtype.name})"


def _repr_of_texts(x: StringTensor) -> str:
    return f"<tf.Tensor: shape={_shape_text(x.shape)}, dtype=string, numpy={_text_of_texts(x, repr)}>"


def _str_of_texts(x: StringTensor) -> str:
    return f"tf.Tensor({_text_of_texts(x, str)}, shape={_shape_text(x.shape)}, dtype=string)"


def _format_of_texts(x: StringTensor, spec: str) -> str:
    return format(x.numpy(), spec) if x.is_known else _str_of_texts(x)


def _text_of_texts(x: Any, how: Callable[[Any], str]) -> str:
    if not x.is_known:
        return "..."
    value = x.numpy()
    text = how(value)
    return f"\n{text}" if "\n" in text else text


def _format(x: Any, spec: str) -> str:
    if isinstance(x, SymbolicTensor):
        return repr(x)
    array = x.numpy()
    return format(array[()] if array.ndim == 0 else array, spec)


def _repr_of_variable(v: Any) -> str:
    value = v._current()
    if isinstance(value, SymbolicTensor):
        return f"<tf.Variable {v.name!r} shape={_shape_text(v.shape)} dtype={v.dtype.name}>"
    if _is_keras_variable(v):
        text = str(value.numpy())
        return f"<Variable path={v.path}, shape={_shape_text(v.shape)}, dtype={v.dtype.name}, value={text}>"
    return (
        f"<tf.Variable {v.name!r} shape={_shape_text(v.shape)} dtype={v.dtype.name}, numpy={_numpy_text(value, repr)}>"
    )


def _repr_of_symbolic(x: Any) -> str:
    node = x._node
    name = node.attrs.get("name", node.op.name) if hasattr(node, "attrs") else node.op.name
    return f'Tensor("{name}:0", shape={_shape_text(node.type.shape)}, dtype={node.type.dtype.name})'


def _repr_of_symbol(x: Any) -> str:
    return (
        f"<KerasTensor shape={_shape_text(x.shape)}, dtype={x.type.dtype.name}, "
        f"sparse=False, ragged=False, name={x.name}>"
    )


def _repr_of_layer(layer: Any) -> str:
    return f"<{type(layer).__name__} name={layer.name}, built={layer.built}>"


def _repr_of_metric(metric: Any) -> str:
    return f"<{type(metric).__name__} name={metric.name}>"


def _repr_of_spec(spec: Any) -> str:
    shape = _shape_text([None if isinstance(extent, str) else extent for extent in spec.shape])
    return f"TensorSpec(shape={shape}, dtype={as_dtype(spec.dtype)!r}, name={spec.name!r})"


def _repr_of_dataset(dataset: Any) -> str:
    return f"<{_class_of_dataset(dataset)} element_spec={dataset.element_spec!r}>"


def _class_of_dataset(dataset: hf.data.Dataset) -> str:
    """TensorFlow's class of a dataset, by the node or the table that it is made of."""
    class_name = type(dataset).__name__.lstrip("_")
    node: object = dataset._node
    if class_name != "Dataset":
        return f"{class_name}V2" if class_name in _OF_FILES else f"_{class_name}"
    kind = type(node.rows.table if isinstance(node, TableNode) and node.rows is not None else node).__name__
    if kind == "Cache" or kind == "FileCache":
        return "CacheDataset"
    if isinstance(node, Filter) and node.ends:
        return "_TakeWhileDataset"
    if isinstance(node, Interleave):
        return "_FlatMapDataset" if node.cycle == 1 else f"_{'Parallel' if node.ahead else ''}InterleaveDataset"
    return f"_{_NODES.get(kind, kind)}Dataset"


_OF_FILES = "TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset", "CsvDataset"
_NODES = {
    "ArrayTable": "TensorSlice", "ColumnTable": "TensorSlice", "OneRow": "Tensor", "NumberTable": "Range",
    "ZippedTables": "Zip", "RaggedBatch": "Batch", "Buckets": "GroupByWindow", "Windows": "GroupByWindow",
    "Optioned": "Options", "Counted": "AssertCardinality", "Generated": "FlatMap", "Ignored": "IgnoreErrors",
    "Mix": "DirectedInterleave", "Resampled": "DirectedInterleave", "RandomNumbers": "Random", "Counter": "Scan",
    "ProcessMap": "ParallelMap", "Snapshot": "Map", "ToDevice": "Prefetch",
}  # fmt: skip


def _format_of_variable(v: Any, spec: str) -> str:
    return _repr_of_variable(v) if not spec else format(v.numpy(), spec)


def _repr_of_ragged(x: Ragged) -> str:
    if isinstance(x.row_splits, hf.TensorSpec):
        return _repr_of_ragged_spec(x)
    with np.printoptions(formatter={"all": _text_of_rows}):
        return f"<tf.RaggedTensor {_text_of_rows(_rows(x))}>"


def _repr_of_ragged_spec(x: Ragged) -> str:
    count = x.row_splits.shape[0]
    sizes, rank, splits = [None if count is None else count - 1], 0, as_dtype(x.row_splits.dtype)
    inside: object = x
    while isinstance(inside, Ragged):
        inside, rank = inside.values, rank + 1
        sizes.append(None)
    assert isinstance(inside, hf.TensorSpec)
    shape = TensorShape([*sizes, *inside.shape[1:]])
    return f"RaggedTensorSpec({shape!r}, {as_dtype(inside.dtype)!r}, {rank}, {splits!r})"


def _text_of_rows(x: object) -> str:
    """Arrays with commas; empty ones with the brackets of all their axes."""
    if not isinstance(x, np.ndarray):
        return str(x)
    return np.array2string(x, separator=", ") if x.size else repr(x.tolist())


def _rows(x: Ragged) -> np.ndarray:
    """One array where rows are as long as each other, an array of arrays where not."""
    values = _rows(x.values) if isinstance(x.values, Ragged) else x.values.numpy()
    splits = x.row_splits.numpy()
    if len(splits) == 1:
        return np.array([], values.dtype)
    rows = np.split(values, splits[1:-1])
    return np.array(rows, object if any(len(row) != len(rows[0]) for row in rows) else None)


def _repr_of_coo(x: Any) -> str:
    if isinstance(x.values, hf.TensorSpec):
        return f"SparseTensorSpec({TensorShape(x.outline.shape[:-1])!r}, {as_dtype(x.values.dtype)!r})"
    return f"SparseTensor(indices={x.indices!s}, values={x.values!s}, dense_shape={_str(hf.asarray(x.shape))})"


def _repr_of_slices(x: Any) -> str:
    shape = "" if x.dense_shape is None else f", dense_shape={x.dense_shape}"
    return f"IndexedSlices(indices={x.indices}, values={x.values}{shape})"
