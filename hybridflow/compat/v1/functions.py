"""TensorFlow 1's functions of tensors, with its arguments, over hybridflow's: each records where a graph is built."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.array.indexing import getitem
from hybridflow.compat.adapters import arrays, linear, maths
from hybridflow.compat.v1.graph import Info, Operation, Tensor, default_graph
from hybridflow.compat.v1.kinds import STRING, kind_of
from hybridflow.compat.v1.recording import Recorded, Sizes, as_graph_tensor, is_symbolic
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import Tensor as Value
from hybridflow.optimizers import clipping

UNSET: Any = object()
TABLE: dict[str, Any] = {}


def op(
    type: str, *names: str, default: str | None = None, draws: bool = False, of_sizes: Any = None
) -> Callable[[Callable[..., Any]], Recorded]:
    """Enter a function into the table under names, its own if there are none, as operations of the type."""

    def enter(function: Callable[..., Any]) -> Recorded:
        recorded = Recorded(function, type, default, draws, of_sizes)
        for name in names or (function.__name__.rstrip("_"),):
            TABLE[name] = recorded
        return recorded

    return enter


def _extents(shape: Any) -> Any:
    """A shape as hybridflow takes it: from a list, a tensor whose value is known, extents of another."""
    if isinstance(shape, Value):
        known = shape._known()
        return tuple(np.atleast_1d(shape.numpy() if known is None else known).tolist())
    if hasattr(shape, "as_list"):
        return tuple(shape.as_list())
    if isinstance(shape, np.ndarray):
        return tuple(np.atleast_1d(shape).tolist())
    if isinstance(shape, (list, tuple)):
        return tuple([_extent(x) for x in shape])
    return (_extent(shape),)


def _extent(value: Any) -> Any:
    if isinstance(value, Value):
        known = value._known()
        return int(value.numpy() if known is None else known)
    return value if isinstance(value, Dim) else int(value)


def _static(value: Any) -> Any:
    """An axis or a permutation, which must be known, as Python's ints."""
    if isinstance(value, Value):
        known = value._known()
        return (value.numpy() if known is None else known).tolist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_static(x) for x in value]
    return None if value is None else int(value)


def _int32(x: Any) -> Any:
    return hf.astype(x, hf.int32)


# ---- constants and shapes


def _literal(value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """A value as TensorFlow makes it: Python's ints are int32 where they fit."""
    if isinstance(value, (Value, Sizes, Dim)):
        found = hf.asarray(value)
        return found if dtype is None else hf.astype(found, kind_of(dtype))
    array = np.asarray(value, dtype=None if dtype is None else kind_of(dtype))
    if dtype is None and not isinstance(value, (np.ndarray, np.generic)):
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        elif array.dtype == np.int64 and np.all((array >= -(2**31)) & (array < 2**31)) and not _has_numpy(value):
            array = array.astype(np.int32)
    if shape is not None:
        extents = _extents(shape)
        array = np.full(extents, array) if array.size == 1 else array.reshape(extents)
    return hf.constant(array)


def _has_numpy(value: Any) -> bool:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (np.ndarray, np.generic))


_constant = Recorded(_literal, "Const")


def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str | None = None, verify_shape: bool = False
) -> Any:
    """A tensor of a value; texts stay in Python."""
    if is_text(value, dtype):
        return _text(value, name)
    if isinstance(value, (list, tuple)) and _holds_tensors(value):
        return stack(list(value), name=name)
    return _constant(value, dtype, shape, name=name)


TABLE["constant"] = constant


def _holds_tensors(value: Any) -> bool:
    return any(is_symbolic(x) or (isinstance(x, (list, tuple)) and _holds_tensors(x)) for x in value)


def is_text(value: Any, dtype: Any = None) -> bool:
    """Whether a value is a text, bytes, or a list of them."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "SUO"
    return isinstance(value, (str, bytes)) or (dtype is not None and kind_of(dtype) == STRING)


def encoded(value: Any) -> Any:
    """A text as bytes, or an array of them."""
    if isinstance(value, (str, bytes)):
        return value.encode() if isinstance(value, str) else value
    array = np.asarray(value, dtype=object)
    return np.array([encoded(x) for x in array.ravel()], dtype=object).reshape(array.shape)


def _text(value: Any, name: str | None) -> Any:
    held = encoded(value)
    return on_host(
        "Const", name, [], [Info(np.shape(held) if not isinstance(held, bytes) else (), STRING)], lambda *_: [held]
    )


def on_host(
    type: str, name: str | None, inputs: Sequence[Any], infos: Sequence[Info], compute: Callable[..., Sequence[Any]]
) -> Any:
    """An operation that is computed in Python, of arrays, before or after the compiled program; its tensor or tensors,
    or where it has none itself."""
    graph = default_graph()
    tensors = [as_graph_tensor(x) if is_symbolic(x) else constant(x) for x in inputs]
    node = graph.add(type, name, tensors, infos, lambda state, values: compute(*values))
    node.on_host = True
    return node if not infos else node.outputs[0] if len(infos) == 1 else node.outputs


def convert_to_tensor(
    value: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None, dtype_hint: Any = None
) -> Any:
    if is_symbolic(value):
        return as_graph_tensor(value)
    return constant(value, dtype, name=name)


TABLE["convert_to_tensor"] = convert_to_tensor


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """What is fed when a session runs; ``shape`` has None where any extent will do, and is None for any rank."""
    from hybridflow.compat.v1.shapes import TensorShape

    known = TensorShape(shape)
    extents = None if known.ndims is None else tuple(known.as_list())
    kind = kind_of(dtype)
    node = default_graph().add("Placeholder", name, [], [Info(extents, kind)], _not_fed, {"shape": known})
    node.on_host = kind == STRING
    return node.outputs[0]


def _not_fed(run: Any, values: Any) -> Any:
    raise AssertionError("sessions check what is fed")


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """The input, unless something else is fed."""
    from hybridflow.compat.v1.shapes import TensorShape

    start = convert_to_tensor(input)
    known = TensorShape(shape)
    info = Info(None if known.ndims is None else tuple(known.as_list()), start.dtype)
    node = default_graph().add("PlaceholderWithDefault", name, [start], [info], lambda run, values: values)
    return node.outputs[0]


def no_op(name: str | None = None) -> Operation:
    """Does nothing, after what ``control_dependencies`` says."""
    return default_graph().add("NoOp", name, [], [], lambda run, values: [])


def group(*inputs: Any, name: str | None = None, **_: Any) -> Operation:
    """An operation that is done when all of these are."""
    graph = default_graph()
    flat: list[Any] = []
    for x in inputs:
        flat += x if isinstance(x, (list, tuple)) else [x]
    with graph.control_dependencies(flat):
        return no_op(name or "group_deps")


def tuple_(tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The tensors, each of which waits for all of them."""
    graph = default_graph()
    with graph.control_dependencies([*[t for t in tensors if t is not None], *(control_inputs or ())]):
        return [None if t is None else identity(t) for t in tensors]


op("Shape", "shape", of_sizes=lambda input, out_type=None: Sizes((len(input),)))(
    lambda input, out_type=None: Sizes(input.shape if hasattr(input, "shape") else np.shape(input))
)


@op("Size")
def size(input: Any, out_type: Any = None) -> Any:
    return math.prod(input.shape)


@op("Rank")
def rank(input: Any) -> Any:
    return len(input.shape)


@op("Identity", of_sizes=lambda input: input)
def identity(input: Any) -> Any:
    return hf.asarray(input)


def _sizes_reshaped(tensor: Any, shape: Any) -> Any:
    if isinstance(tensor, Sizes) and shape in ([-1], (-1,), -1):
        return tensor
    return NotImplemented


@op("Reshape", of_sizes=_sizes_reshaped)
def reshape(tensor: Any, shape: Any) -> Any:
    return hf.reshape(tensor, _extents(shape))


@op("ZerosLike")
def zeros_like(tensor: Any, dtype: Any = None, optimize: bool = True) -> Any:
    return hf.zeros_like(tensor, dtype=None if dtype is None else kind_of(dtype))


@op("OnesLike")
def ones_like(tensor: Any, dtype: Any = None, optimize: bool = True) -> Any:
    return hf.ones_like(tensor, dtype=None if dtype is None else kind_of(dtype))


@op("Fill", "zeros", default="zeros")
def zeros(shape: Any, dtype: Any = dtypes.float32) -> Any:
    return hf.zeros(_extents(shape), dtype=kind_of(dtype))


@op("Fill", "ones", default="ones")
def ones(shape: Any, dtype: Any = dtypes.float32) -> Any:
    return hf.ones(_extents(shape), dtype=kind_of(dtype))


@op("Fill")
def fill(dims: Any, value: Any) -> Any:
    return hf.broadcast_to(_literal(value), _extents(dims))


@op("Range")
def range_(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Any:
    if limit is None:
        start, limit = 0, start
    values: list[Any] = [_number(x) for x in (start, limit, delta)]
    is_whole = all(isinstance(x, (int, Dim, np.integer)) for x in values)
    return hf.arange(values[0], values[1], values[2], dtype=kind_of(dtype or (hf.int32 if is_whole else hf.float32)))


def _number(x: Any) -> Any:
    """The number that a tensor is known to be, or the value."""
    if not isinstance(x, Value):
        return x
    known = x._known()
    return (x.numpy() if known is None else known).item()


@op("LinSpace", "linspace", "lin_space")
def linspace(start: Any, stop: Any, num: Any) -> Any:
    return hf.linspace(start, stop, int(num))


@op("Eye")
def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = dtypes.float32) -> Any:
    found = hf.eye(num_rows, num_columns, dtype=kind_of(dtype))
    return found if batch_shape is None else hf.broadcast_to(found, (*_extents(batch_shape), *found.shape))


@op("OneHot")
def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None
) -> Any:
    found = hf.one_hot(indices, int(_extent(depth)), dtype=dtypes.float32 if dtype is None else kind_of(dtype))
    if on_value is not None or off_value is not None:
        on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
        found = found * on + (1 - found) * off
    return found if axis in (None, -1) else hf.moveaxis(found, -1, axis)


@op("MatrixDiag", "diag", "matrix_diag")
def diag(diagonal: Any) -> Any:
    return hf.expand_dims(diagonal, -1) * hf.eye(diagonal.shape[-1], dtype=diagonal.dtype)


def _sizes_cast(x: Any, dtype: Any) -> Any:
    return x if dtypes.is_integer(kind_of(dtype)) else NotImplemented


@op("Cast", of_sizes=_sizes_cast)
def cast(x: Any, dtype: Any) -> Any:
    return hf.astype(hf.asarray(x), kind_of(dtype))


for _name, _dtype in {"to_float": "float32", "to_double": "float64", "to_int32": "int32", "to_int64": "int64"}.items():

    def _to(x: Any, name: str | None = None, dtype: str = _dtype, default: str = _name) -> Any:
        return cast(x, np.dtype(dtype), name=name)

    TABLE[_name] = _to


# ---- putting together and taking apart


def _sizes_stacked(values: Any, axis: int = 0) -> Any:
    if axis != 0 or not all(isinstance(x, (int, Dim)) or _is_whole(x) for x in values):
        return NotImplemented
    return Sizes([_extent(x) for x in values])


def _is_whole(x: Any) -> bool:
    return (
        isinstance(x, Value)
        and not x.shape
        and dtypes.is_integer(x.dtype)
        and (type(x) is Value or x._known() is not None)
    )


@op("Pack", "stack", "pack", default="stack", of_sizes=_sizes_stacked)
def stack(values: Any, axis: int = 0) -> Any:
    return hf.stack(
        [_literal(x) if not isinstance(x, Value) else x for x in values]
        if isinstance(values, (list, tuple))
        else values,
        axis=axis,
    )


def _sizes_joined(values: Any, axis: Any = 0) -> Any:
    parts: list[Any] = []
    for x in values:
        if isinstance(x, Sizes):
            parts += x
        elif isinstance(x, (list, tuple)):
            parts += [_extent(y) for y in x]
        elif isinstance(x, Value) and len(x.shape) == 1 and (type(x) is Value or x._known() is not None):
            parts += _extents(x)
        else:
            return NotImplemented
    return Sizes(parts)


@op("ConcatV2", "concat", default="concat", of_sizes=_sizes_joined)
def concat(values: Any, axis: Any) -> Any:
    if isinstance(values, int):  # the order of before TensorFlow 1.0
        values, axis = axis, values
    return hf.concat([x if isinstance(x, Value) else _literal(x) for x in values], axis=_static(axis))


@op("Unpack", "unstack", "unpack", default="unstack")
def unstack(value: Any, num: int | None = None, axis: int = 0) -> Any:
    return list(hf.unstack(value, axis=axis))


@op("Split", default="split")
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None) -> Any:
    if isinstance(num_or_size_splits, int):
        return list(hf.split(value, num_or_size_splits, axis=_static(axis)))
    sizes = list(_extents(num_or_size_splits))
    starts, found, begin = _static(axis), [], 0
    total = value.shape[starts]
    sizes = [total - sum(x for x in sizes if x != -1) if x == -1 else x for x in sizes]
    for count in sizes:
        key = [slice(None)] * len(value.shape)
        key[starts] = slice(begin, begin + count)
        found.append(value[tuple(key)])
        begin += count
    return found


def _sliced(x: Any, leaves: Any) -> Any:
    return getitem(hf.asarray(x), _key(leaves))


def _key(parts: Any) -> Any:
    found: list[Any] = []
    for part in parts:
        if isinstance(part, tuple) and part and part[0] == "slice":
            found.append(slice(*[None if x is None else _index(x) for x in part[1:]]))
        else:
            found.append(Ellipsis if part == "..." else _newaxis(part))
    return tuple(found)


def _newaxis(part: Any) -> Any:
    return None if isinstance(part, str) and part == "new" else part


def _index(x: Any) -> Any:
    known = x._known() if isinstance(x, Value) else None
    return x if known is None else known.item()


def _sizes_sliced(x: Any, parts: Any) -> Any:
    key = _key(parts)
    if not isinstance(x, Sizes) or len(key) != 1:
        return NotImplemented
    found = tuple(x)[_index(key[0])] if not isinstance(key[0], slice) else Sizes(tuple(x)[key[0]])
    return found


_strided = Recorded(_sliced, "StridedSlice", "strided_slice", of_sizes=_sizes_sliced)


def _getitem(x: Any, key: Any) -> Any:
    """``x[key]``, whose key may have tensors in it."""
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, slice):
            parts.append(("slice", part.start, part.stop, part.step))
        else:
            parts.append("..." if part is Ellipsis else "new" if part is None else part)
    return _strided(x, tuple(parts))


@op("Slice", "slice", default="Slice")
def slice_(input_: Any, begin: Any, size: Any) -> Any:
    starts, counts = _extents(begin), _extents(size)
    key = tuple([slice(b, None if isinstance(c, int) and c == -1 else b + c) for b, c in zip(starts, counts)])
    return input_[key]


@op("Transpose", default="transpose")
def transpose(a: Any, perm: Any = None, conjugate: bool = False) -> Any:
    axes = list(reversed(range(len(a.shape)))) if perm is None else _static(perm)
    return hf.permute_dims(a, tuple(axes))


@op("Transpose", "matrix_transpose", "transpose_matrix", default="matrix_transpose")
def matrix_transpose(a: Any) -> Any:
    return hf.matrix_transpose(a)


@op("Squeeze")
def squeeze(input: Any, axis: Any = None, squeeze_dims: Any = None) -> Any:
    axis = _static(squeeze_dims if axis is None else axis)
    if axis is None or axis == []:
        axis = [k for k, extent in enumerate(input.shape) if isinstance(extent, int) and extent == 1]
    return hf.squeeze(input, tuple(axis) if isinstance(axis, list) else axis)


@op("ExpandDims")
def expand_dims(input: Any, axis: Any = None, dim: Any = None) -> Any:
    return hf.expand_dims(
        input if isinstance(input, Value) else _literal(input), _static(dim if axis is None else axis)
    )


@op("GatherV2", "gather", default="GatherV2")
def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = 0, batch_dims: int = 0) -> Any:
    return (
        hf.gather(params, indices, axis=_static(axis), batch_dims=batch_dims)
        if batch_dims
        else hf.take(params, indices, axis=_static(axis))
    )


@op("GatherNd")
def gather_nd(params: Any, indices: Any) -> Any:
    return hf.gather_nd(params, indices)


@op("Tile")
def tile(input: Any, multiples: Any) -> Any:
    return hf.tile(input, _extents(multiples))


@op("Pad")
def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0) -> Any:
    widths = _static(paddings)
    if mode.upper() == "CONSTANT":
        return hf.pad(tensor, widths, constant_values=constant_values)
    return hf.pad(tensor, widths, mode=mode.lower())


@op("ReverseV2", "reverse", default="ReverseV2")
def reverse(tensor: Any, axis: Any) -> Any:
    axes = _static(axis)
    return hf.flip(tensor, axis=tuple(axes) if isinstance(axes, list) else axes)


@op("Select", "where")
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        return hf.stack(list(hf.nonzero(condition)), axis=-1)
    if len(condition.shape) == 1 and hasattr(x, "shape") and len(x.shape) > 1:
        condition = hf.reshape(condition, (*condition.shape, *[1] * (len(x.shape) - 1)))
    return hf.where(condition, x, y)


@op("OneShotScatter", "scatter_nd")
def scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    return arrays.scatter_nd(indices, updates if isinstance(updates, Value) else _literal(updates), _extents(shape))


# ---- arithmetic


def _aligned(x: Any, y: Any) -> tuple[Any, Any]:
    """Operands; an array takes the dtype of the tensor that it meets, as TensorFlow converts it."""
    if isinstance(x, np.ndarray) and isinstance(y, Value):
        x = x.astype(y.dtype)
    elif isinstance(y, np.ndarray) and isinstance(x, Value):
        y = y.astype(x.dtype)
    return (list(x) if isinstance(x, Sizes) else x), (list(y) if isinstance(y, Sizes) else y)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(x: Any, y: Any) -> Any:
        return function(*_aligned(x, y))

    apply.__doc__ = function.__doc__
    return apply


def _of_numbers(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(x: Any, y: Any) -> Any:
        pair = [_extent(v) if _is_whole(v) else v for v in (x, y)]
        if all(isinstance(v, (int, Dim)) for v in pair):
            return function(*pair)
        return NotImplemented

    return apply


def _truediv(x: Any, y: Any) -> Any:
    if all((hasattr(v, "dtype") and dtypes.is_integer(v.dtype)) or isinstance(v, int) for v in (x, y)):
        return hf.divide(hf.astype(hf.asarray(x), hf.float64), hf.astype(hf.asarray(y), hf.float64))
    return hf.divide(x, y)


def _div(x: Any, y: Any) -> Any:
    """Python 2's division: of integers it is whole."""
    if all((hasattr(v, "dtype") and not dtypes.is_float(v.dtype)) or isinstance(v, int) for v in (x, y)):
        return hf.floor_divide(x, y)
    return hf.divide(x, y)


_BINARY: dict[str, tuple[str, Callable[[Any, Any], Any], Any]] = {
    "add": ("Add", hf.add, lambda a, b: a + b),
    "subtract": ("Sub", hf.subtract, lambda a, b: a - b),
    "multiply": ("Mul", hf.multiply, lambda a, b: a * b),
    "divide": ("RealDiv", _truediv, None),
    "truediv": ("RealDiv", _truediv, None),
    "realdiv": ("RealDiv", _truediv, None),
    "div": ("RealDiv", _div, lambda a, b: a // b),
    "floordiv": ("FloorDiv", hf.floor_divide, lambda a, b: a // b),
    "floor_div": ("FloorDiv", hf.floor_divide, lambda a, b: a // b),
    "mod": ("FloorMod", hf.remainder, lambda a, b: a % b),
    "floormod": ("FloorMod", hf.remainder, lambda a, b: a % b),
    "pow": ("Pow", hf.pow, None),
    "maximum": ("Maximum", hf.maximum, None),
    "minimum": ("Minimum", hf.minimum, None),
    "atan2": ("Atan2", hf.atan2, None),
    "equal": ("Equal", hf.equal, None),
    "not_equal": ("NotEqual", hf.not_equal, None),
    "less": ("Less", hf.less, None),
    "less_equal": ("LessEqual", hf.less_equal, None),
    "greater": ("Greater", hf.greater, None),
    "greater_equal": ("GreaterEqual", hf.greater_equal, None),
    "logical_and": ("LogicalAnd", hf.logical_and, None),
    "logical_or": ("LogicalOr", hf.logical_or, None),
    "logical_xor": ("LogicalXor", hf.logical_xor, None),
    "squared_difference": ("SquaredDifference", lambda x, y: hf.square(x - y), None),
    "div_no_nan": ("DivNoNan", maths.divide_no_nan, None),
}
for _name, (_type, _function, _sizes) in _BINARY.items():
    TABLE[_name] = Recorded(_binary(_function), _type, of_sizes=_of_numbers(_sizes) if _sizes else None)

_UNARY = {
    "abs": "Abs", "negative": "Neg", "sign": "Sign", "square": "Square", "sqrt": "Sqrt", "rsqrt": "Rsqrt",
    "reciprocal": "Reciprocal", "exp": "Exp", "expm1": "Expm1", "log": "Log", "log1p": "Log1p", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "round": "Round",
    "logical_not": "LogicalNot", "is_nan:isnan": "IsNan", "is_inf:isinf": "IsInf", "is_finite:isfinite": "IsFinite",
    "stop_gradient": "StopGradient",
}  # fmt: skip


def _unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return function(x if isinstance(x, Value) else _literal(x))

    apply.__doc__ = function.__doc__
    return apply


for _name, _type in _UNARY.items():
    _own, _, _ours = _name.partition(":")
    TABLE[_own] = Recorded(_unary(getattr(hf, _ours or _own)), _type)
TABLE["neg"] = TABLE["negative"]


@op("AddN")
def add_n(inputs: Any) -> Any:
    total = hf.asarray(inputs[0])
    for x in inputs[1:]:
        total = total + x
    return total


@op("AddN", "accumulate_n", default="AccumulateN")
def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None) -> Any:
    return add_n.function(inputs)


@op("MatMul", "matmul")
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
) -> Any:
    a, b = _aligned(a, b)
    a = hf.matrix_transpose(hf.asarray(a)) if transpose_a or adjoint_a else a
    b = hf.matrix_transpose(hf.asarray(b)) if transpose_b or adjoint_b else b
    return hf.matmul(a, b)


TABLE["batch_matmul"] = matmul


@op("TensorDot", default="Tensordot")
def tensordot(a: Any, b: Any, axes: Any) -> Any:
    return hf.tensordot(a, b, axes)


@op("Einsum", default="einsum")
def einsum(equation: str, *inputs: Any) -> Any:
    return hf.einsum(equation, *inputs)


@op("ClipByValue", default="clip_by_value")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    return hf.minimum(hf.maximum(t, clip_value_min), clip_value_max)


@op("ClipByNorm", default="clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None) -> Any:
    return clipping.clip_by_norm(t, clip_norm) if axes is None else clipping.clip_by_norm(t, clip_norm, axes)


_global_norm = Recorded(lambda tensors: clipping.global_norm(tensors), "GlobalNorm", "global_norm")
_clip_all = Recorded(
    lambda tensors, norm, own: list(clipping.clip_by_global_norm(tensors, norm, own)[0]),
    "ClipByGlobalNorm",
    "clip_by_global_norm",
)


def global_norm(t_list: Any, name: str | None = None) -> Any:
    return _global_norm([t for t in t_list if t is not None], name=name)


def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None) -> Any:
    """The tensors, scaled so that the norm of all together is at most this, and the norm that it was, or is said to be
    by ``use_norm``."""
    present = [t for t in t_list if t is not None]
    norm = _global_norm(present) if use_norm is None else convert_to_tensor(use_norm)
    clipped = iter(_clip_all(present, clip_norm, norm, name=name))
    return [None if t is None else next(clipped) for t in t_list], norm


TABLE.update(global_norm=global_norm, clip_by_global_norm=clip_by_global_norm)


# ---- reductions


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(
        input_tensor: Any, axis: Any = None, keepdims: Any = None, reduction_indices: Any = None, keep_dims: Any = None
    ) -> Any:
        x = input_tensor if isinstance(input_tensor, Value) else _literal(input_tensor)
        axes = _static(reduction_indices if axis is None else axis)
        keeps = bool(keep_dims if keepdims is None else keepdims)
        found = function(x, axis=tuple(axes) if isinstance(axes, list) else axes, keepdims=keeps)
        kept = function in (hf.logsumexp, hf.all, hf.any) or found.dtype == x.dtype
        return found if kept else hf.astype(found, x.dtype)

    reduce.__doc__ = function.__doc__
    return reduce


def _product_of_sizes(input_tensor: Any, axis: Any = None, **_: Any) -> Any:
    return math.prod(input_tensor) if isinstance(input_tensor, Sizes) else NotImplemented


for _name, _type in {
    "reduce_sum:sum": "Sum", "reduce_mean:mean": "Mean", "reduce_max:max": "Max", "reduce_min:min": "Min",
    "reduce_prod:prod": "Prod", "reduce_all:all": "All", "reduce_any:any": "Any",
    "reduce_logsumexp:logsumexp": "ReduceLogSumExp", "reduce_std:std": "ReduceStd",
    "reduce_variance:var": "ReduceVariance",
}.items():  # fmt: skip
    _own, _, _ours = _name.partition(":")
    TABLE[_own] = Recorded(
        _reduction(getattr(hf, _ours)), _type, of_sizes=_product_of_sizes if _ours == "prod" else None
    )


@op("CountNonzero")
def count_nonzero(input_tensor: Any, axis: Any = None, keepdims: bool = False, dtype: Any = dtypes.int64) -> Any:
    return hf.astype(hf.count_nonzero(input_tensor, axis=axis, keepdims=keepdims), dtype)


def _arg(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(input: Any, axis: Any = None, dimension: Any = None, output_type: Any = dtypes.int64) -> Any:
        place = _static(dimension if axis is None else axis)
        return hf.astype(function(input, axis=0 if place is None else place), output_type)

    return apply


TABLE["argmax"] = TABLE["arg_max"] = Recorded(_arg(hf.argmax), "ArgMax")
TABLE["argmin"] = TABLE["arg_min"] = Recorded(_arg(hf.argmin), "ArgMin")


@op("Cumsum")
def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False) -> Any:
    return maths.cumsum(x, axis, exclusive, reverse)


@op("Cumprod")
def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False) -> Any:
    return maths.cumprod(x, axis, exclusive, reverse)


@op("Norm", default="norm")
def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, keep_dims: Any = None) -> Any:
    return linear.norm(tensor, ord, axis, bool(keep_dims if keepdims is None else keepdims))


# ---- random numbers


def _random(name: str, type: str, function: Callable[..., Any]) -> None:
    recorded = Recorded(function, type, name, draws=True)

    def call(*args: Any, seed: int | None = None, name: str | None = None, **kwargs: Any) -> Any:
        return recorded(*args, name=name, op_seed=seed, **kwargs)

    call.__name__ = name
    TABLE[name] = call


def _source(generator: Any) -> Any:
    return hf.random.global_generator() if generator is None else generator


def _uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, generator: Any = None
) -> Any:
    if dtypes.is_integer(kind_of(dtype)):
        return _source(generator).randint(_extents(shape), int(minval), int(maxval), kind_of(dtype))
    return _source(generator).uniform(_extents(shape), minval, 1 if maxval is None else maxval, kind_of(dtype))


def _normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, generator: Any = None) -> Any:
    return _source(generator).normal(_extents(shape), mean, stddev, kind_of(dtype))


def _truncated(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, generator: Any = None
) -> Any:
    return _source(generator).truncated_normal(_extents(shape), mean, stddev, kind_of(dtype))


def _categorical(logits: Any, num_samples: Any, output_dtype: Any = dtypes.int64, generator: Any = None) -> Any:
    drawn = _source(generator).categorical(logits, (_extent(num_samples),))
    return hf.astype(hf.permute_dims(drawn, (1, 0)) if drawn.shape[0] != logits.shape[0] else drawn, output_dtype)


_random("random_uniform", "RandomUniform", _uniform)
_random("random_normal", "RandomStandardNormal", _normal)
_random("truncated_normal", "TruncatedNormal", _truncated)
_random("random_shuffle", "RandomShuffle", lambda value, generator=None: _source(generator).shuffle(value))
_random("multinomial", "Multinomial", _categorical)


def set_random_seed(seed: int) -> None:
    """Let random operations of the present graph, from here on, give the same numbers in each session."""
    default_graph().seed = int(seed)


# ---- operators

_OPERATORS: dict[str, Any] = {
    "getitem": _getitem,
    "add": Recorded(TABLE["add"].function, "Add", "add", of_sizes=TABLE["add"].of_sizes),
    "sub": Recorded(TABLE["subtract"].function, "Sub", "sub", of_sizes=TABLE["subtract"].of_sizes),
    "mul": Recorded(TABLE["multiply"].function, "Mul", "mul", of_sizes=TABLE["multiply"].of_sizes),
    "truediv": Recorded(TABLE["truediv"].function, "RealDiv", "truediv"),
    "floordiv": Recorded(TABLE["floordiv"].function, "FloorDiv", "floordiv", of_sizes=TABLE["floordiv"].of_sizes),
    "mod": Recorded(TABLE["mod"].function, "FloorMod", "mod", of_sizes=TABLE["mod"].of_sizes),
    "pow": Recorded(TABLE["pow"].function, "Pow", "pow"),
    "matmul": Recorded(matmul.function, "MatMul", "matmul"),
    "and": Recorded(TABLE["logical_and"].function, "LogicalAnd", "and"),
    "or": Recorded(TABLE["logical_or"].function, "LogicalOr", "or"),
    "xor": Recorded(TABLE["logical_xor"].function, "LogicalXor", "xor"),
    "lt": TABLE["less"],
    "le": TABLE["less_equal"],
    "gt": TABLE["greater"],
    "ge": TABLE["greater_equal"],
    "neg": TABLE["negative"],
    "abs": TABLE["abs"],
    "invert": TABLE["logical_not"],
}


def _operate(name: str, *operands: Any) -> Any:
    return _OPERATORS[name](*operands)


Tensor.operate = staticmethod(_operate)
TABLE.update(
    placeholder=placeholder,
    placeholder_with_default=placeholder_with_default,
    no_op=no_op,
    group=group,
    tuple=tuple_,
    set_random_seed=set_random_seed,
)
