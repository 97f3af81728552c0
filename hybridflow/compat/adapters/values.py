"""Values as TensorFlow makes them: dtypes as objects, Python's ints as int32, shapes that say None."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import hybridflow as hf
from hybridflow.autodiff.sparse_gradient import traced_rows
from hybridflow.code_traits import declare
from hybridflow.compat.adapters.ragged_shapes import DynamicRaggedShape
from hybridflow.compat.export import RowsGiven, TensorLike, convert_by, export, tf_export
from hybridflow.compat.facade import Facade
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import now
from hybridflow.core.lazy_tensor import parts_of
from hybridflow.core.shape import Shape
from hybridflow.core.string_tensor import as_strings, holds_texts, is_string, string as strings
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.type_aliases import ShapeLike
from hybridflow.errors import ArgumentError, DTypeError, TraceError
from hybridflow.ragged import Ragged
from hybridflow.sparse import COO

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


UNSET: object = object()  # an argument that was not given, where None is a value


_NUMPY_ATTRIBUTES = frozenset(("alignment", "byteorder", "char", "itemsize", "kind", "num", "str", "type"))


@tf_export("dtypes.DType", "DType")
class DType:
    """A dtype with TensorFlow's attributes; equal to NumPy's, and taken wherever that is."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)

    @property
    def name(self) -> str:
        return self.dtype.name

    @property
    def as_numpy_dtype(self) -> type:
        return self.dtype.type

    def __getattr__(self, name: str) -> Any:
        if name not in _NUMPY_ATTRIBUTES:
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return getattr(self.dtype, name)

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def real_dtype(self) -> DType:
        return _BY_DTYPE[dtypes.part_dtype(self.dtype)]

    @property
    def as_datatype_enum(self) -> int:
        """The number of the dtype in messages of TensorFlow."""
        return _NUMBERS.get(self.name, 0)

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def is_floating(self) -> bool:
        return dtypes.is_float(self.dtype)

    @property
    def is_integer(self) -> bool:
        return dtypes.is_integer(self.dtype)

    @property
    def is_bool(self) -> bool:
        return dtypes.is_bool(self.dtype)

    @property
    def is_unsigned(self) -> bool:
        return dtypes.is_unsigned(self.dtype)

    @property
    def is_complex(self) -> bool:
        return dtypes.is_complex(self.dtype)

    def _limits(self) -> Any:
        if self.is_bool:
            raise TypeError("bool has no min and max")
        part = dtypes.part_dtype(self.dtype)
        return ml_dtypes.finfo(part) if dtypes.is_float(part) else np.iinfo(part)

    @property
    def min(self) -> Any:
        return self._limits().min

    @property
    def max(self) -> Any:
        return self._limits().max

    @property
    def limits(self) -> tuple[Any, Any]:
        return self.min, self.max

    def is_compatible_with(self, other: object) -> bool:
        return self == other

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.dtype == other.dtype
        try:
            return other is not None and self.dtype == np.dtype(other)  # type: ignore[call-overload]
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"


class _Text(DType):
    """``tf.string``."""

    @property
    def name(self) -> str:
        return "string"

    @property
    def is_floating(self) -> bool:
        return False

    is_integer = is_bool = is_unsigned = is_floating


string = _Text(strings)
_BY_DTYPE = {dtype: DType(dtype) for dtype in (*dtypes.REAL, *dtypes.COMPLEX)}
bool_, float16, bfloat16 = (_BY_DTYPE[d] for d in (dtypes.bool_, dtypes.float16, dtypes.bfloat16))
float32, float64 = _BY_DTYPE[dtypes.float32], _BY_DTYPE[dtypes.float64]
complex64, complex128 = (_BY_DTYPE[d] for d in dtypes.COMPLEX)
int8, int16, int32, int64 = (_BY_DTYPE[d] for d in dtypes.SIGNED)
uint8, uint16, uint32, uint64 = (_BY_DTYPE[d] for d in dtypes.UNSIGNED)
_BY_NAME = {"float": float32, "half": float16, "double": float64, "string": string}
_NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9,
    "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip
_BY_NUMBER = {number: string if name == "string" else _BY_DTYPE[np.dtype(name)] for name, number in _NUMBERS.items()}


@tf_export("dtypes.as_dtype", "as_dtype")
def as_dtype(type_value: Any) -> DType:
    """``tf.as_dtype``.  Raises DTypeError for what is none here."""
    if isinstance(type_value, str) and type_value in _BY_NAME:
        return _BY_NAME[type_value]
    if type(type_value) is int and type_value in _BY_NUMBER:
        return _BY_NUMBER[type_value]
    if type_value is string or type_value in (str, bytes) or is_string(getattr(type_value, "dtype", type_value)):
        return string
    try:
        return _BY_DTYPE[
            np.dtype(type_value if isinstance(type_value, type) else getattr(type_value, "dtype", type_value))
        ]
    except (TypeError, KeyError):
        raise DTypeError("as_dtype", f"{type_value!r} is not a dtype here.") from None


@tf_export("constant", op_type="Const")
@declare("makes tensors")
def constant(value: ArrayLike, dtype: Any = None, shape: object = None, name: str | None = None) -> Any:
    """``tf.constant``: Python's ints become int32, or int64 where they do not fit, and NumPy's values keep their
    dtype."""
    dtype = None if dtype is None else as_dtype(dtype)
    value = _of_column(value)
    if dtype is string or (dtype is None and holds_texts(value)):
        return text_constant(value, None if shape is None else extents(shape))
    tensor = hf.constant(value, dtype, None if shape is None else extents(shape))
    return tensor if dtype is not None else _as_made(tensor, value)


@tf_export("convert_to_tensor")
def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: TensorLike | None = None, name: str | None = None
) -> Any:
    """``tf.convert_to_tensor``."""
    if dtype is None and isinstance(value, (bool, int, float, list, tuple)):
        dtype = dtype_hint
    if isinstance(value, hf.IndexedSlices):
        value = value._whole()
    if isinstance(value, hf.Tensor) and dtype is None:
        return value
    value = _of_column(value)
    if holds_texts(value) or (dtype is not None and as_dtype(dtype) is string):
        if dtype is not None and as_dtype(dtype) is not string:
            raise ArgumentError("convert_to_tensor", f"{value!r:.60} holds texts, no {as_dtype(dtype).name}.")
        return as_strings(value, "convert_to_tensor")
    tensor = hf.asarray(value, dtype)
    return tensor if dtype is not None else _as_made(tensor, value)


def _of_column(value: TensorLike) -> Any:
    """A column of objects, as tables of pandas have, as NumPy's array; another value as it is."""
    is_column = hasattr(value, "__array__") and not isinstance(value, (Operators, np.ndarray, np.generic))
    return np.asarray(value) if is_column and getattr(getattr(value, "dtype", None), "kind", "") == "O" else value


def text_constant(value: TensorLike, shape: ShapeLike | None = None) -> Any:
    """A tensor of texts of a shape, which a single text fills."""
    converted = as_strings(value, "constant")
    if shape is None:
        return converted
    return hf.broadcast_to(hf.reshape(converted, ()), shape) if converted.size == 1 else hf.reshape(converted, shape)


def _as_made(tensor: Tensor, value: object) -> Any:
    """A tensor of ``value`` in the dtype that TensorFlow gives it."""
    if tensor.dtype == dtypes.complex64 and not isinstance(value, (Operators, np.ndarray, np.generic)):
        array = np.asarray(value)
        return hf.constant(array) if array.dtype == dtypes.complex128 else tensor
    if tensor.dtype != dtypes.int64 or not _is_of_ints(value):
        return tensor
    if type(value) is int or not isinstance(value, Sequence):
        fits = not isinstance(value, int) or -(2**31) <= value < 2**31
    else:
        array = np.asarray(value, object)
        fits = all(isinstance(v, Operators | Dim) or -(2**31) <= v < 2**31 for v in array.flat)
    return hf.astype(tensor, dtypes.int32) if fits else tensor


def _is_of_ints(value: object) -> bool:
    """Whether its numbers are Python's ints."""
    while isinstance(value, (list, tuple, range)) and value:
        value = value[0]
    return (type(value) is int or isinstance(value, Dim)) and not isinstance(value, np.generic)


def operand(value: TensorLike) -> Any:
    """What a function of one tensor works with."""
    if isinstance(value, Operators):
        return value
    if isinstance(value, Ragged):
        raise RowsGiven
    return convert_to_tensor(value)


def operands(args: Sequence[Any], places: Iterable[int]) -> list[Any]:
    """The arguments, with those at ``places`` as a function of several tensors works with them: lists and arrays take
    the dtype of a tensor that is there, if it holds their kind, and Python's numbers stay what they are beside one."""
    result = list(args)
    if any(isinstance(args[k], Ragged) for k in places):
        raise RowsGiven
    known = [args[k] for k in places if isinstance(args[k], Operators)]
    if not known:
        arrays = any(isinstance(args[k], (np.ndarray, np.generic)) for k in places)
        for k in places:
            if not arrays or isinstance(args[k], (list, tuple, np.ndarray)):
                result[k] = convert_to_tensor(args[k])
        return result
    dtype = known[0].dtype
    for k in places:
        if isinstance(args[k], (list, tuple, np.ndarray)):
            tensor = convert_to_tensor(args[k])
            holds = dtypes.is_float(dtype) or (dtypes.is_integer(dtype) and dtypes.is_integer(tensor.dtype))
            result[k] = hf.astype(tensor, dtype) if holds else tensor
    return result


@tf_export("dtypes.cast", "keras.backend.cast", "keras.ops.cast", "cast")
def cast(x: ArrayLike, dtype: DTypeLike, name: str | None = None) -> Any:
    """``tf.cast``."""
    if isinstance(x, Ragged):
        return x.map(lambda flat: cast(flat, dtype))
    return hf.astype(operand(x), as_dtype(dtype).dtype)


@tf_export("dtypes.saturate_cast", "saturate_cast")
def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Any:
    """``tf.saturate_cast``: what is out of range becomes the nearest value in it."""
    x, to = operand(value), as_dtype(dtype)
    if not to.is_floating or (as_dtype(x.dtype).is_floating and as_dtype(x.dtype).size > to.size):
        return hf.astype(hf.clip(x, *_within(as_dtype(x.dtype), to)), dtype)
    return hf.astype(x, dtype)


def _within(source: DType, target: DType) -> tuple[Any, Any]:
    """The limits of ``target`` as numbers of ``source``."""
    low, high = target.min, target.max
    if source.is_floating:
        numbers = np.asarray([low, high]).astype(source.dtype)
        if float(numbers[1]) > float(high):
            numbers[1] = np.nextafter(numbers[1], numbers.dtype.type(0))
        return float(numbers[0]), float(numbers[1])
    return max(int(low), int(source.min)), min(int(high), int(source.max))


def _extent(d: object) -> Any:
    return int(d) if isinstance(d, np.generic) or type(d) is hf.Tensor else getattr(d, "value", d)


@tf_export("TensorShape")
class TensorShape(Shape):
    """``tf.TensorShape``: a tuple of extents, None where one is not known."""

    __slots__ = ()

    def __new__(cls, dims: Any = ()) -> TensorShape:
        if dims is None:
            return tuple.__new__(_UnknownShape)
        parts = (dims,) if isinstance(dims, int) else dims
        return tuple.__new__(cls, [None if d is None or (type(d) is int and d == -1) else _extent(d) for d in parts])

    def concatenate(self, other: object) -> TensorShape:
        return TensorShape((*self, *TensorShape(other)))

    def merge_with(self, other: Any) -> TensorShape:
        """What both say.  Raises ArgumentError where they differ."""
        self.assert_is_compatible_with(other)
        return TensorShape([b if a is None else a for a, b in zip(self, TensorShape(other))])

    def __getitem__(self, key: Any) -> Any:
        extents = tuple.__getitem__(self, key)
        return TensorShape(extents) if isinstance(key, slice) else extents

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, (list, tuple)) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __add__(self, other: object) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: object) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"

    def __str__(self) -> str:
        return f"({', '.join(map(str, self))}{',' * (len(self) == 1)})"


class _UnknownShape(TensorShape):
    """``tf.TensorShape(None)``: not even the number of axes is known."""

    __slots__ = ()

    @property
    def rank(self) -> None:  # type: ignore[override]
        """The number of axes, which nobody knows."""
        return None

    ndims = dims = rank  # type: ignore[assignment]

    def num_elements(self) -> None:
        return None

    def is_fully_defined(self) -> bool:
        return False

    def is_compatible_with(self, other: object) -> bool:
        return True

    def assert_has_rank(self, rank: int) -> None:
        return None

    def with_rank(self, rank: int) -> TensorShape:
        return TensorShape([None] * rank)

    def merge_with(self, other: object) -> TensorShape:
        return TensorShape(other)

    def concatenate(self, other: object) -> TensorShape:
        return self

    def as_list(self) -> list[Any]:
        raise ArgumentError("TensorShape", "the number of axes is not known: there is no list of extents.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _UnknownShape)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_UnknownShape)

    def __repr__(self) -> str:
        return "TensorShape(None)"

    def __str__(self) -> str:
        return "<unknown>"


class Extents(tuple):
    """What ``tf.shape(x)`` is in a traced function: extents, so that shapes can be made of them. It becomes a tensor
    where one is needed, and as a result."""

    kind: DTypeLike = dtypes.int32

    @property
    def tensor(self) -> Any:
        return hf.asarray(list(self), self.kind)

    def as_result(self) -> Any:
        """What a compiled function returns for it."""
        return self.tensor

    def of_kind(self, kind: DTypeLike) -> Extents:
        self.kind = kind
        return self

    @property
    def dtype(self) -> Any:
        """That of the tensor, as programs see it."""
        return as_dtype(self.kind)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.tensor, name)

    def __getitem__(self, key: object) -> Any:
        if not isinstance(key, (slice, int)):
            return self.tensor[key]
        extents = tuple.__getitem__(self, key)
        return Extents(extents).of_kind(self.kind) if isinstance(key, slice) else extents

    def __add__(self, other: object) -> Any:
        return self.tensor + _number_or_tensor(other)

    def __mul__(self, other: object) -> Any:
        return self.tensor * _number_or_tensor(other)

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: object) -> Any:
        return self.tensor - _number_or_tensor(other)

    def __rsub__(self, other: object) -> Any:
        return _number_or_tensor(other) - self.tensor

    def __floordiv__(self, other: object) -> Any:
        return self.tensor // _number_or_tensor(other)

    def __truediv__(self, other: object) -> Any:
        return self.tensor / _number_or_tensor(other)

    def __mod__(self, other: object) -> Any:
        return self.tensor % _number_or_tensor(other)

    def __rfloordiv__(self, other: object) -> Any:
        return _number_or_tensor(other) // self.tensor

    def __rtruediv__(self, other: object) -> Any:
        return _number_or_tensor(other) / self.tensor

    def __rmod__(self, other: object) -> Any:
        return _number_or_tensor(other) % self.tensor

    def __pow__(self, other: object) -> Any:
        return self.tensor ** _number_or_tensor(other)

    def __rpow__(self, other: object) -> Any:
        return _number_or_tensor(other) ** self.tensor

    def __neg__(self) -> Any:
        return -self.tensor

    def __abs__(self) -> Any:
        return abs(self.tensor)

    def __eq__(self, other: object) -> Any:
        return self.tensor == _number_or_tensor(other)

    def __ne__(self, other: object) -> Any:
        return self.tensor != _number_or_tensor(other)

    def __lt__(self, other: object) -> Any:
        return self.tensor < _number_or_tensor(other)

    def __le__(self, other: object) -> Any:
        return self.tensor <= _number_or_tensor(other)

    def __gt__(self, other: object) -> Any:
        return self.tensor > _number_or_tensor(other)

    def __ge__(self, other: object) -> Any:
        return self.tensor >= _number_or_tensor(other)

    __hash__ = tuple.__hash__


def _number_or_tensor(value: object) -> Any:
    return value.tensor if isinstance(value, Extents) else value


@tf_export("shape")
def shape(input: TensorLike, out_type: DTypeLike = dtypes.int32, name: str | None = None) -> Any:
    """``tf.shape``: an int32 tensor; in a traced function the extents themselves, until they are returned."""
    if isinstance(input, Ragged):
        return DynamicRaggedShape.from_tensor(input, out_type)
    extents = operand(input).shape
    if now().trace is not None:
        return Extents(extents).of_kind(out_type)
    return hf.asarray(np.asarray(extents, np.int64), out_type)


@tf_export("shape_n")
def shape_n(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> list[Any]:
    """``tf.shape_n``."""
    return [shape(x, out_type) for x in input]


@tf_export("size")
def size(input: TensorLike, out_type: DTypeLike = dtypes.int32, name: str | None = None) -> Any:
    """``tf.size``: a scalar tensor."""
    return hf.asarray(operand(input).size, out_type)


@tf_export("rank")
def rank(input: TensorLike, name: str | None = None) -> Any:
    """``tf.rank``: a scalar tensor."""
    return hf.asarray(operand(input).ndim, dtypes.int32)


def array_of(value: TensorLike) -> np.ndarray:
    """The values of a tensor, a list or an array.  Raises TraceError while there are none."""
    if isinstance(value, hf.strings.StringTensor):
        return value.texts
    return np.asarray(value.numpy() if isinstance(value, (hf.Tensor, hf.Variable)) else value)


def extent_by(x: TensorLike, how: Callable[[Any, Any], Any], stage: str, remedy: str) -> Any:
    """The extent that ``how(namespace, values)`` makes of values, with NumPy's functions or ours.  Raises TraceError,
    with a remedy, where a traced function has none yet, and calls cannot find it."""
    known = operand(x)._known() if isinstance(x, Operators) else np.asarray(x)
    if known is not None:
        return int(how(np, known))
    return how(hf, operand(x))._to_extent(
        lambda: TraceError(
            stage,
            f"the result's size depends on the values of {x!r}, which do not exist while tracing. {remedy}, or call it "
            "outside of the traced function.",
        )
    )


def as_extent(value: Any) -> Any:
    """An integer as an extent, of a tensor in a traced function one that calls find."""
    if isinstance(value, Operators):
        return operand(value)._to_extent()
    return value if type(value) is Dim else operator.index(value)


def as_extents(values: Iterable[Any]) -> list[Any]:
    """Several integers, which may be one tensor, as extents."""
    return [as_extent(value) for value in (list(operand(values)) if isinstance(values, Operators) else values)]


def _up_to(xp: Any, values: Tensor) -> Any:
    return xp.max(values) + 1 if values.size != 0 else xp.asarray(0)


def count_up_to(x: TensorLike, stage: str, remedy: str) -> Any:
    """How many numbers there are from 0 to the largest, see ``extent_by``; none where there are none."""
    return extent_by(x, _up_to, stage, remedy)


def extents(shape: object) -> Any:
    """A shape as the functions here take it: TensorFlow's may be a tensor, a list with tensors in it, or one number."""
    if isinstance(shape, (Shape, Extents)):
        return tuple(shape)
    if isinstance(shape, (list, tuple)):
        return tuple([int(s) if isinstance(s, np.generic) else s for s in shape])
    return shape


def axes(axis: object) -> Any:
    """An axis, or several, that TensorFlow also takes as a tensor or a list."""
    if isinstance(axis, (Operators, np.ndarray)):
        numbers = array_of(axis).tolist()
        return tuple(numbers) if isinstance(numbers, list) else numbers
    return tuple(axis) if isinstance(axis, list) else axis


def _dtype_of(value: object) -> Any:
    return None if value is None else as_dtype(value).dtype


def _perhaps(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


convert_by(
    operands,
    {
        "Operand": operand,
        "Operand | None": _perhaps(operand),
        "Axis": axes,
        "ShapeArg": _perhaps(extents),
        "DTypeArg": _dtype_of,
    },
)


def check_channels_last(stage: str, data_format: str) -> None:
    """Raise ArgumentError for images whose channels do not come last."""
    if data_format != "NHWC":
        raise ArgumentError(stage, f"data_format is {data_format!r}; channels come last: transpose before.")


def _variable(
    initial_value: TensorLike | None = None,
    trainable: bool | None = None,
    validate_shape: bool = True,
    caching_device: object = None,
    name: str | None = None,
    variable_def: object = None,
    dtype: Any = None,
    import_scope: object = None,
    constraint: object = None,
    synchronization: object = None,
    aggregation: object = None,
    shape: object = None,
    experimental_enable_variable_lifting: bool = True,
) -> Any:
    """``tf.Variable``, whose name ends with ``:0``."""
    value = initial_value() if callable(initial_value) else initial_value
    if value is None:
        raise ArgumentError("Variable", "there is no initial_value.")
    variable = hf.Variable(convert_to_tensor(value, dtype), trainable is not False, None, f"{name or 'Variable'}:0")
    return variable if constraint is None else variable._rule(None, constraint)


Variable = Facade(hf.Variable, _variable)


def _keras_variable(
    initializer: Any,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    trainable: bool = True,
    autocast: bool = True,
    aggregation: object = None,
    synchronization: object = None,
    name: str | None = None,
    **options: object,
) -> Any:
    """``tf.keras.Variable``."""
    value = initializer(tuple(shape or ()), dtype or dtypes.float32) if callable(initializer) else initializer
    return hf.Variable(convert_to_tensor(value, dtype), trainable, None, name or "variable")


KerasVariable = Facade(hf.Variable, _keras_variable)


def _tensor_spec(shape: ShapeLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Any:
    """``tf.TensorSpec``."""
    return hf.TensorSpec(tuple(TensorShape(shape)), dtype, name)


def _spec_from_tensor(tensor: Tensor, name: str | None = None) -> Any:
    return hf.TensorSpec(tuple(tensor.shape), tensor.dtype, name)


TensorSpec = Facade(
    hf.TensorSpec,
    _tensor_spec,
    {"from_tensor": _spec_from_tensor, "from_spec": lambda spec, name=None: _tensor_spec(spec.shape, spec.dtype, name)},
)


def _indexed_slices(values: TensorLike, indices: TensorLike, dense_shape: object = None) -> Any:
    """``tf.IndexedSlices``."""
    shape = None if dense_shape is None else tuple(extents(axes(dense_shape)))
    return hf.IndexedSlices(operand(values), operand(indices), shape)


class _Slices(Facade):
    """Gradients of look-ups are such, too, until somebody looks at the whole."""

    def __instancecheck__(self, instance: object) -> bool:
        return super().__instancecheck__(instance) or (
            isinstance(instance, hf.Tensor) and (parts_of(instance) is not None or traced_rows(instance) is not None)
        )


IndexedSlices = _Slices(hf.IndexedSlices, _indexed_slices)


class Reference:
    """What ``x.ref()`` gives: equal where it is of the same object, so that tensors may be keys of dicts."""

    __slots__ = ("_held",)

    def __init__(self, held: object) -> None:
        self._held = held

    def deref(self) -> Any:
        """The tensor or variable."""
        return self._held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._held is other._held

    def __hash__(self) -> int:
        return id(self._held)


@tf_export("keras.ops.is_tensor", "is_tensor")
def is_tensor(x: TensorLike) -> bool:
    """``tf.is_tensor``: of variables, and of ragged and sparse tensors too."""
    return isinstance(x, (Operators, Ragged, COO, hf.IndexedSlices))


def as_texts(element: Any) -> Any:
    """An element of a dataset with tensors in the place of Python's texts and arrays of them."""
    kind = type(element)
    if kind is hf.Tensor:
        return element
    if kind is tuple:
        return tuple([as_texts(part) for part in element])
    if kind is dict:
        return {key: as_texts(part) for key, part in element.items()}
    if isinstance(element, (str, bytes)) or (kind is np.ndarray and element.dtype.kind in "USO"):
        return as_strings(element, "Dataset")
    return element


@tf_export("get_static_value")
def get_static_value(tensor: TensorLike, partial: bool = False) -> Any:
    """``tf.get_static_value``: the value as a NumPy array, None while tracing."""
    if isinstance(tensor, Operators):
        if isinstance(tensor, hf.strings.StringTensor):
            return tensor.numpy() if tensor.is_known else None
        return array_of(tensor)[()] if type(tensor) in (hf.Tensor, hf.Variable) else None
    return np.asarray(tensor)


export(Variable, "Variable")
export(TensorSpec, "TensorSpec")
export(IndexedSlices, "IndexedSlices")
export(string, "dtypes.string", "string")
export(bool_, "dtypes.bool", "bool")
export(int8, "dtypes.int8", "int8")
export(int16, "dtypes.int16", "int16")
export(int32, "dtypes.int32", "int32")
export(int64, "dtypes.int64", "int64")
export(uint8, "dtypes.uint8", "uint8")
export(uint16, "dtypes.uint16", "uint16")
export(uint32, "dtypes.uint32", "uint32")
export(uint64, "dtypes.uint64", "uint64")
export(float16, "dtypes.half", "dtypes.float16", "half", "float16")
export(bfloat16, "dtypes.bfloat16", "bfloat16")
export(float32, "dtypes.float32", "float32")
export(float64, "dtypes.double", "dtypes.float64", "double", "float64")
export(complex64, "dtypes.complex64", "complex64")
export(complex128, "dtypes.complex128", "complex128")
export(KerasVariable, "keras.Variable")
