"""Anything -> Tensor, and operands -> one dtype (by the rules of ``core.promotion``) and one shape.

NumPy arrays are copied, because their owner may write to them later.  The IR has no implicit promotion or
broadcasting: what is done here is recorded as ``convert``, ``reshape`` and ``broadcast`` ops.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.attributes import key as attribute_key
from hybridflow.compiler.ir.extents import fits
from hybridflow.compiler.ir.graph import MAX_LITERAL_BYTES, Literal
from hybridflow.compiler.ir.types import MAX_AXES, Dim, Shape, broadcast_shapes, is_one, same_extents
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core import devices
from hybridflow.core.context import current, now
from hybridflow.core.promotion import (
    PYTHON_DTYPE,
    OpenFloat,
    array_dtype,
    check_integral,
    default_float,
    default_int,
    lone_dtype,
    refuse_mask,
    result_dtype,
    scalar_array,
    weak_kind,
)
from hybridflow.core.string_tensor import StringTensor, as_strings, makers, of_codes, of_texts
from hybridflow.core.tensor import Operators, Tensor, looked_at, share, wrap
from hybridflow.core.variable import Variable
from hybridflow.eager import placement
from hybridflow.eager.dispatch import apply
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.memory import memory_pool


def literal(array: np.ndarray) -> Tensor:
    """A tensor that is a constant of the program when tracing; ``array`` is given away.

    Large ones stay arrays that the trace captures: constants are part of the compiled code.
    """
    if current.trace is None or array.nbytes > MAX_LITERAL_BYTES:
        return wrap(devices.placed(array))
    return apply(TABLE["constant"], value=Literal.of(array))


makers["literal"] = literal


def scalar(value: object, dtype: np.dtype[Any], stage: str) -> Tensor:
    """A weak scalar as a 0-d tensor of ``dtype``."""
    if type(value) is Dim:
        return _of_extent(value, dtype, stage)
    if isinstance(value, OpenFloat):
        return value.as_operand(dtype, stage)
    return literal(scalar_array(value, dtype, stage))


def _of_extent(value: Dim, dtype: np.dtype[Any], stage: str) -> Tensor:
    """An extent as a 0-d tensor.  Programs calculate it in 64 bits; where those are too few, it has to be known."""
    if not fits(value):
        return literal(scalar_array(int(value), dtype, stage))
    if dtypes.is_integer(dtype):
        least, most = int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), 2**63 - 1)
        if not (value <= most and value >= least):
            raise ArgumentError(stage, f"the extent {value} does not fit {dtype} ({least} to {most}).")
    return apply(TABLE["extent"], value=value, dtype=dtype)


def filled(value: object, dtype: np.dtype[Any], shape: Shape, stage: str) -> Tensor:
    """A weak scalar everywhere in ``shape``."""
    if type(value) is Dim or isinstance(value, OpenFloat):
        return expand(scalar(value, dtype, stage), shape)
    array = scalar_array(value, dtype, stage)
    if current.trace is None:
        return wrap(devices.placed(np.full(shape, array)))
    return expand(literal(array), shape)


def _check_array(array: np.ndarray, stage: str) -> np.ndarray:
    """``array`` in native byte order, if its dtype is one of ours."""
    dtype = array_dtype(array, stage)
    return array if dtype is array.dtype else array.astype(dtype)


def from_numpy(array: np.ndarray, stage: str) -> Tensor:
    """A tensor with a copy of ``array``; over ``array`` itself where a program is to read it anew at each call."""
    trace = current.trace
    if trace is not None and id(array) in trace.live_arrays:
        view = array.view()
        view.flags.writeable = False  # else who looks at the elements locks the array
        return wrap(share(view, array))
    copy = memory_pool.copied(_check_array(array, stage))
    return literal(copy) if copy.size == 1 else wrap(devices.placed(copy))


@uninterruptible.loaded
def _foreign() -> ModuleType:
    from hybridflow.core import interop  # which a first operation does without

    return interop


def _from_foreign(value: object, stage: str) -> Tensor | None:
    """A tensor with a copy of another library's array, or of what one is had from; None for other objects."""
    foreign = _foreign()
    if not foreign.becomes_array(value):
        return None
    gpu_array = foreign.on_gpu(value, stage)
    if gpu_array is None:
        out = from_numpy(foreign.as_numpy(value, stage), stage)
    else:
        out = wrap(_check_array(gpu_array, stage).copy())
    trace = current.trace
    if trace is not None:
        trace.read_foreign(value)
    return out


def _nested_shape(value: object, path: str, stage: str) -> tuple[int, ...]:
    """The shape of nested sequences; raises ArgumentError naming the first row that does not fit."""
    if not isinstance(value, (list, tuple)):
        return (
            tuple(np.shape(value))
            if isinstance(value, (np.ndarray, np.generic))
            else tuple(getattr(value, "shape", ()))
        )
    if not value:
        return (0,)
    if path.count("[") == MAX_AXES:
        raise ArgumentError(stage, f"the list is nested deeper than {MAX_AXES} axes, or contains itself.")
    first = _nested_shape(value[0], f"{path}[0]", stage)
    for i, item in enumerate(value[1:], 1):
        shape = _nested_shape(item, f"{path}[{i}]", stage)
        if shape != first:
            inside = f" of {path[5:]}" if path != "value" else ""
            raise ArgumentError(
                stage,
                f"the rows are ragged: row {i}{inside} has {_extent_text(shape)}, row 0 has {_extent_text(first)}. "
                "All rows must have one length; pad them first.",
            )
    return (len(value), *first)


def _extent_text(shape: tuple[int, ...]) -> str:
    if not shape:
        return "no elements (it is a scalar)"
    if len(shape) == 1:
        return f"{shape[0]} element{'s' if shape[0] != 1 else ''}"
    return f"shape {shape}"


def _leaves(value: object) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _from_sequence(value: Sequence[Any], dtype: np.dtype[Any] | None, stage: str) -> Tensor:
    plain = _of_numbers(value, dtype)
    if plain is not None:
        return literal(plain)
    shape = _nested_shape(value, "value", stage)
    leaves = _leaves(value)
    if any(type(leaf) is StringTensor for leaf in leaves):
        return as_strings(value, stage)
    if not set(map(type, leaves)) <= _PLAIN_LEAVES:
        value = _with_tensors(value, stage)
        shape, leaves = _nested_shape(value, "value", stage), _leaves(value)
    if any(isinstance(leaf, (Tensor, Variable)) for leaf in leaves):
        if dtype is not None and all(weak_kind(leaf) is not None for leaf in leaves):
            tensors = [weak_cast(leaf, dtype, stage) for leaf in leaves]  # each is rounded once
        else:
            tensors = common_dtype(stage, leaves)
        rows = [reshape_to(t, (1, *t.shape)) for t in tensors]
        out = reshape_to(apply(TABLE["concat"], *rows, axis=0) if len(rows) > 1 else rows[0], shape)
        return out if dtype is None else cast(out, dtype)
    if dtype is None:
        # One stand-in per Python type and dtype: promotion does not depend on how many there are.
        kinds = {_kind_of_leaf(leaf): leaf for leaf in leaves}
        dtype = result_dtype(stage, [strong(leaf, stage) for leaf in kinds.values()]) if kinds else default_float
    if dtypes.is_integer(dtypes.wide_dtype(dtype)):
        for leaf in leaves:
            if isinstance(leaf, (int, float)):
                check_integral(leaf, dtype, stage)
    with np.errstate(over="ignore"):
        return literal(np.array(value, dtype).reshape(shape))


def _of_numbers(value: Sequence[Any], dtype: np.dtype[Any] | None) -> np.ndarray | None:
    """An array of nested lists and tuples of Python numbers alone, which nothing is wrong with; None for others."""
    shape, rows = [len(value)], value
    while rows and type(rows[0]) in _SEQUENCES:
        extents = set(map(len, rows)) if set(map(type, rows)) <= _SEQUENCES else ()
        if len(extents) != 1 or len(shape) == MAX_AXES:
            return None
        shape += extents
        rows = list(itertools.chain.from_iterable(rows))
    kinds = set(map(type, rows))
    if not kinds or not kinds <= PYTHON_DTYPE.keys():
        return None
    if dtype is None:
        dtype = PYTHON_DTYPE[max(kinds, key=list(PYTHON_DTYPE).index)]
    elif dtypes.is_integer(dtypes.wide_dtype(dtype)):  # has to be asked whether they fit
        return None
    try:
        with np.errstate(over="ignore"):
            return np.array(rows, dtype).reshape(shape)
    except OverflowError:
        return None


_SEQUENCES = frozenset((list, tuple))
_PLAIN_LEAVES = frozenset({*PYTHON_DTYPE, Tensor, Variable})


def _with_tensors(value: object, stage: str) -> Any:
    """Nested sequences with tensors in the place of what is neither a number, nor ours or NumPy's."""
    if isinstance(value, (list, tuple)):
        return [_with_tensors(item, stage) for item in value]
    refuse_mask(value, stage)
    is_known = isinstance(value, (Tensor, Variable, np.ndarray)) or weak_kind(value) is not None
    return value if is_known else as_tensor(value, stage)


def _kind_of_leaf(leaf: object) -> Any:
    return type(leaf) if type(leaf) in PYTHON_DTYPE else getattr(leaf, "dtype", None) or np.asarray(leaf).dtype


def as_tensor(value: Any, stage: str, dtype: np.dtype[Any] | None = None) -> Tensor:
    """``value`` as a tensor; without ``dtype`` it keeps its own, or takes the default of its Python type.

    Accepts tensors, variables, Python scalars, nested lists and tuples, NumPy arrays and scalars, and objects with
    ``__dlpack__`` or ``__array__``.  Raises ArgumentTypeError for other objects, DTypeError for other dtypes.
    """
    kind = type(value)
    if kind is Tensor:
        out = value
    elif kind is StringTensor or (dtype is not None and dtype.kind == "O"):
        out = as_strings(value, stage)
    elif isinstance(value, Tensor):  # from here on a NumPy scalar, as which it may be given, has a say
        value = looked_at(value)
        weak = weak_kind(value)
        out = value if weak is None else cast(value._stand_in(), dtype or lone_dtype(value, weak))
    elif isinstance(value, Variable):
        out = value._seen()
    elif (weak := weak_kind(value)) is not None:
        return scalar(value, dtype or lone_dtype(value, weak), stage)
    elif isinstance(value, (np.ndarray, np.generic)):
        refuse_mask(value, stage)
        out = from_numpy(np.asarray(value), stage)
    elif isinstance(value, (list, tuple)):
        return _from_sequence(value, dtype, stage)
    elif isinstance(value, range):
        return _from_sequence(list(value), dtype or default_int, stage)
    elif isinstance(value, Operators):
        out = value._whole()
    elif (foreign := _from_foreign(value, stage)) is not None:
        out = foreign
    else:
        raise ArgumentTypeError(
            stage, f"{kind.__name__} is not a tensor, a number, a nested list of numbers or an array: {value!r:.60}."
        )
    return out if dtype is None else cast(out, dtype, stage)


def beside(tensor: object, array: object) -> Any:
    """An array as an operand of TensorFlow's operators: of the dtype of the tensor, unless that is of another kind."""
    assert isinstance(tensor, Operators) and isinstance(array, np.ndarray)
    dtype = tensor.dtype
    kinds = (
        "fiuc"
        if dtypes.is_complex(dtype)
        else "fiu"
        if dtypes.is_float(dtype)
        else "iu"
        if dtypes.is_integer(dtype)
        else ""
    )
    if array.dtype == dtype or array.dtype.kind not in kinds:
        return array
    return array.astype(dtype) if current.trace is None else as_tensor(array, "operand", dtype)


def exclusive(x: Tensor) -> Tensor:
    """``x`` as another object, so that what is assigned to items of the one is not seen by the other."""
    state = now()
    if type(x) is StringTensor:
        return of_texts(x.texts) if x.is_known else of_codes(exclusive(x.codes))
    if state.trace is None and not state.tapes:
        return wrap(x._array)
    return apply(TABLE["reshape"], x, shape=x.shape)


def fresh(out: Tensor, x: Tensor) -> Tensor:
    """``out``, or where that is ``x`` itself, another object with its value."""
    return exclusive(x) if out is x else out


def cast(x: Tensor, dtype: np.dtype[Any], stage: str = "astype") -> Tensor:
    """``x`` as ``dtype``; itself when it has that dtype already.

    Complex numbers do not become real ones by the way: what is lost has to be said.
    """
    if x.dtype == dtype:
        return x
    if dtype.kind == "O" or x.dtype.kind == "O":
        raise DTypeError(
            stage,
            f"{x.type} does not become {'texts' if dtype.kind == 'O' else dtype} by a cast. "
            "Use hf.strings.to_number or hf.strings.as_string.",
        )
    if x.dtype.kind == "c" and not (dtypes.is_complex(dtype) or dtypes.is_bool(dtype)):
        raise DTypeError(stage, f"{x.dtype} is complex, and {dtype} is not. Take hf.real(x) or hf.abs(x) first.")
    return apply(TABLE["convert"], x, dtype=dtype)


def strong(value: object, stage: str) -> Any:
    """``value`` as a tensor, unless it is a weak scalar, which stays as it is."""
    return value if isinstance(value, Tensor) or weak_kind(value) is not None else as_tensor(value, stage)


def common_dtype(stage: str, values: Sequence[Any]) -> list[Tensor]:
    """``values`` as tensors of the one dtype that they promote to."""
    if any(type(v) is StringTensor for v in values):
        return [as_strings(v, stage) for v in values]
    values = [strong(v, stage) for v in values]
    dtype = result_dtype(stage, values)
    return [weak_cast(v, dtype, stage) for v in values]


def weak_cast(value: object, dtype: np.dtype[Any], stage: str) -> Tensor:
    """A tensor or weak scalar as a tensor of ``dtype``."""
    return cast(value, dtype) if isinstance(value, Tensor) else scalar(value, dtype, stage)


def aligned(stage: str, dtype: np.dtype[Any], x: object, y: object) -> list[Tensor]:
    """Two tensors or weak scalars as operands, of one dtype and shape, of an op.  While tracing, one tensor is made of
    each number: nobody sees the operands of an op."""
    trace = current.trace
    if trace is not None:
        for number, other in ((x, y), (y, x)):
            if type(number) in (int, float, bool) and isinstance(other, Tensor):
                other = cast(other, dtype)
                key = attribute_key(number), dtype, other.shape
                tensor = trace.numbers.get(key)
                if tensor is None:
                    tensor = trace.numbers[key] = expand(scalar(number, dtype, stage), other.shape)
                return [tensor, other] if number is x else [other, tensor]
    return broadcast_all(stage, (weak_cast(x, dtype, stage), weak_cast(y, dtype, stage)))


def broadcast_all(stage: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    """``tensors`` broadcast to one shape.  Raises ShapeError naming the two types that do not fit."""
    tensors = _on_one_device(stage, tensors)
    shape: Shape = tensors[0].shape
    if all(same_extents(t.shape, shape) for t in tensors):
        return list(tensors)
    for t in tensors[1:]:
        try:
            shape = broadcast_shapes(shape, t.shape)
        except ValueError:
            if current.trace is not None:
                current.trace.assumptions.meet(shape, t.shape)
            types = " with ".join(str(u.type) for u in tensors)
            raise ShapeError(
                stage,
                f"shapes do not broadcast: {types}. Aligned from the right, extents must be equal or 1"
                f"{_broadcast_hint(tensors)}.",
            ) from None
    return [expand(t, shape) for t in tensors]


def _on_one_device(stage: str, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Scalars go where the other operands lie.  A trace has no devices: its program runs on one, as a whole."""
    if current.trace is not None or all(isinstance(t._array, np.ndarray) for t in tensors):
        return tensors
    device = placement.device_to_meet_on(stage, tensors)
    return [t if t.device == device else wrap(devices.moved(t._array, device)) for t in tensors]


def _broadcast_hint(tensors: Sequence[Tensor]) -> str:
    """What would make two operands fit, when a last axis for the one with fewer axes does."""
    if len(tensors) != 2 or tensors[0].ndim == tensors[1].ndim:
        return ""
    first = tensors[0].ndim < tensors[1].ndim
    x, y = (tensors[0], tensors[1]) if first else (tensors[1], tensors[0])
    try:
        broadcast_shapes((*x.shape, 1), y.shape)
    except ValueError:
        return ""
    return f"; give the {'first' if first else 'second'} operand a last axis with x[..., None]"


def expand(x: Tensor, shape: Shape) -> Tensor:
    """``x`` broadcast to ``shape``, which it is known to fit: expanding axes of extent 1 go, then all come at once."""
    if same_extents(x.shape, shape):
        return x
    offset = len(shape) - len(x.shape)
    axes = tuple(
        offset + k for k, extent in enumerate(x.shape) if not (is_one(extent) and not is_one(shape[offset + k]))
    )
    x = reshape_to(x, tuple(shape[k] for k in axes))
    return apply(TABLE["broadcast"], x, shape=shape, axes=axes)


def reshape_to(x: Tensor, shape: Shape) -> Tensor:
    """``x`` with another shape of the same size."""
    return x if same_extents(x.shape, shape) else apply(TABLE["reshape"], x, shape=shape)


def to_shape(shape: object, stage: str) -> Shape:
    """``shape`` (an int, a symbolic extent, or several) as a tuple.  Raises ShapeError if an extent is negative."""
    if isinstance(shape, Tensor) and shape._known() is None:
        shape = [shape] if not shape.ndim else list(shape)
    if isinstance(shape, (np.ndarray, Tensor)):
        shape = np.asarray(shape).tolist()
    return type_rules.shape(stage, shape if isinstance(shape, (tuple, list)) else (shape,))


def float_operand(value: object, stage: str) -> Tensor:
    """``value`` as a float tensor, or a complex one: integers and bools become float32."""
    x = as_tensor(value, stage)
    return x if dtypes.is_inexact(x.dtype) else cast(x, default_float)
