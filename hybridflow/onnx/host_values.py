"""Values that are known while a graph is traced: arrays of NumPy, of numbers or of extents.

What shapes are computed from (constants, the shapes of tensors, and what comes of both by the functions here) never
becomes a tensor: so shapes are static, or polynomials of the open extents.  Arrays with open extents have the dtype
``object`` and stand for int64.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.onnx.library import dtype_of

if TYPE_CHECKING:
    from hybridflow.core.tensor import Tensor


MOST = 1 << 16  # elements of what is computed here

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def is_host(value: object) -> bool:
    return isinstance(value, np.ndarray)


def extents(shape: Sequence[Any]) -> np.ndarray:
    """An array of extents, some of which may be open."""
    if all(not isinstance(n, Dim) for n in shape):
        return np.array([int(n) for n in shape], np.int64)
    result = np.empty(len(shape), object)
    result[:] = shape
    return result


def plain(array: np.ndarray) -> np.ndarray:
    """An array of objects as one of int64, where none is open."""
    if array.dtype != object or any(isinstance(n, Dim) for n in array.flat):
        return array
    return array.astype(np.int64)


def computed(op: str, version: int, values: Sequence[Any], attributes: dict[str, Any]) -> np.ndarray | None:
    """The result of an operator of known values; None where it is to be computed with tensors."""
    rule = RULES.get(op)
    if rule is None or not all(value is None or is_host(value) for value in values):
        return None
    arrays = [value for value in values if value is not None]
    if sum(array.size for array in arrays) > MOST or any(array.dtype.kind not in "iubfO" for array in arrays):
        return None
    with np.errstate(all="ignore"):
        result = rule(version, *values, **attributes)
    if result is None:
        return None
    return plain(np.asarray(result))


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return enter


def _binary(name: str, function: Callable[[Any, Any], Any]) -> None:
    RULES[name] = lambda version, a, b: function(a, b)


def _quotient(a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind == "f":
        return a / b
    if a.dtype == object or b.dtype == object:
        return a // b
    if (b == 0).any():
        return None
    return (a // b + ((a % b != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


def _known_equal(a: np.ndarray, b: np.ndarray) -> Any:
    return np.asarray(a == b).astype(bool)


_binary("Add", lambda a, b: a + b)
_binary("Sub", lambda a, b: a - b)
_binary("Mul", lambda a, b: a * b)
_binary("Div", _quotient)
_binary("Equal", _known_equal)
_binary("Greater", lambda a, b: np.asarray(a > b).astype(bool))
_binary("Less", lambda a, b: np.asarray(a < b).astype(bool))
_binary("GreaterOrEqual", lambda a, b: np.asarray(a >= b).astype(bool))
_binary("LessOrEqual", lambda a, b: np.asarray(a <= b).astype(bool))
_binary("And", lambda a, b: a & b)
_binary("Or", lambda a, b: a | b)
RULES["Not"] = lambda version, a: ~a
RULES["Neg"] = lambda version, a: -a
RULES["Identity"] = lambda version, a: a
RULES["Floor"] = lambda version, a: np.floor(a)
RULES["Ceil"] = lambda version, a: np.ceil(a)
RULES["Transpose"] = lambda version, a, perm=None: np.transpose(a, perm)


@rule("Max")
def _max(version: int, *arrays: np.ndarray) -> Any:
    return None if any(a.dtype == object for a in arrays) else _folded(np.maximum, arrays)


@rule("Min")
def _min(version: int, *arrays: np.ndarray) -> Any:
    return None if any(a.dtype == object for a in arrays) else _folded(np.minimum, arrays)


def _folded(function: Callable[..., object], arrays: Sequence[Any]) -> Any:
    result = arrays[0]
    for array in arrays[1:]:
        result = function(result, array)
    return result


@rule("Mod")
def _mod(version: int, a: Tensor, b: Tensor, fmod: int = 0) -> Any:
    if fmod or a.dtype.kind == "f" or (b.dtype != object and (b == 0).any()):
        return None
    return a % b


@rule("Cast")
def _cast(version: int, a: np.ndarray, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    dtype = dtype_of(to)
    if dtype.kind not in "iubf" or dtypes.is_stored(dtype):
        return None
    if a.dtype == object:
        if dtype in (np.int32, np.int64):
            return a
        a = np.array([operator.index(n) for n in a.flat], np.int64).reshape(a.shape)
    if a.dtype.kind == "f" and dtype.kind in "iu" and not np.isfinite(a).all():
        return None
    return a.astype(dtype)


@rule("Where")
def _where(version: int, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> Any:
    return np.where(condition, a, b)


@rule("Shape")
def _shape(version: int, a: Tensor, start: int = 0, end: int | None = None) -> Any:
    return np.array(a.shape, np.int64)[start:end]


@rule("Size")
def _size(version: int, a: Tensor) -> Any:
    return np.array(a.size, np.int64)


@rule("Reshape")
def _reshape(version: int, a: np.ndarray, shape: np.ndarray | None = None, allowzero: int = 0) -> Any:
    if shape is None or shape.dtype == object:
        return None
    wanted = [a.shape[k] if n == 0 and not allowzero else int(n) for k, n in enumerate(shape)]
    return a.reshape(wanted)


@rule("Squeeze")
def _squeeze(version: int, a: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    return np.squeeze(a, None if axes is None else tuple(int(n) for n in np.asarray(axes).reshape(-1)))


@rule("Unsqueeze")
def _unsqueeze(version: int, a: np.ndarray, axes: np.ndarray | None = None) -> Any:
    return np.expand_dims(a, tuple(int(n) for n in np.asarray(axes).reshape(-1)))


@rule("Flatten")
def _flatten(version: int, a: Tensor, axis: int = 1) -> Any:
    axis = axis + a.ndim if axis < 0 else axis
    return a.reshape(math.prod(a.shape[:axis]), -1)


@rule("Concat")
def _concat(version: int, *arrays: np.ndarray, axis: int = 1) -> np.ndarray:
    return np.concatenate(arrays, axis)


@rule("Gather")
def _gather(version: int, a: np.ndarray, indices: np.ndarray, axis: int = 0) -> Any:
    if indices.dtype == object:
        return None
    return np.asarray(np.take(a, indices, axis=axis))


@rule("Slice")
def _slice(version: int, a: Tensor, *operands: Any, **attributes: Any) -> Any:
    if version < 10:
        starts, ends, axes, steps = attributes["starts"], attributes["ends"], attributes.get("axes"), None
    else:
        starts, ends, axes, steps = (*operands, None, None)[:4]
    if any(isinstance(part, np.ndarray) and part.dtype.kind == "O" for part in (starts, ends, axes, steps)):
        return None
    parts = [slice(None)] * a.ndim
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for axis, start, end, step in zip(axes, starts, ends, steps):
        parts[int(axis)] = slice_of(int(start), int(end), int(step))
    return a[tuple(parts)]


def slice_of(start: object, end: object, step: int) -> slice:
    """The slice of Python that takes the same: an end that lies far outside is none."""
    if isinstance(end, int) and abs(end) >= 2**31 - 1:
        end = None
    if isinstance(start, int) and abs(start) >= 2**31 - 1:
        start = None if (start > 0) == (step < 0) else start
    return slice(start, end, step)


@rule("Expand")
def _expand(version: int, a: np.ndarray, shape: np.ndarray) -> np.ndarray | None:
    if shape.dtype == object:
        return None
    wanted = np.broadcast_shapes(a.shape, tuple(int(n) for n in shape))
    return np.broadcast_to(a, wanted) if math.prod(wanted) <= MOST else None


@rule("ConstantOfShape")
def _constant_of_shape(version: int, shape: np.ndarray, value: np.ndarray | None = None) -> Any:
    if shape.dtype == object or math.prod(int(n) for n in shape) > MOST:
        return None
    value = np.zeros(1, np.float32) if value is None else value
    return np.full([int(n) for n in shape], value.reshape(()), value.dtype)


@rule("Range")
def _range(version: int, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> Any:
    if any(part.dtype.kind not in "iu" for part in (start, limit, delta)) or delta.reshape(()) == 0:
        return None
    first, last, step = (int(part.reshape(())) for part in (start, limit, delta))
    if abs(last - first) // abs(step) > MOST:
        return None
    return np.arange(first, last, step, dtype=start.dtype)


@rule("Tile")
def _tile(version: int, a: Tensor, repeats: np.ndarray) -> Any:
    if repeats.dtype == object or a.size * math.prod(int(n) for n in repeats) > MOST:
        return None
    return np.tile(a, tuple(int(n) for n in repeats))


@rule("ReduceProd")
def _product(
    version: int, a: Tensor, axes: np.ndarray | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    if a.dtype.kind == "f" or axes is not None or a.ndim != 1:
        return None
    result = a[:1].prod() if noop_with_empty_axes else a.prod()
    return np.asarray(result).reshape((1,) if keepdims else ())
