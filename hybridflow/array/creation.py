"""Functions that make tensors from values, shapes and ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from hybridflow.array.elementwise import add, floor, greater_equal, less_equal, multiply, where
from hybridflow.code_traits import declare
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.types import Extent, Shape, product
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core import devices
from hybridflow.core.promotion import check_integral, default_float, default_int, result_dtype, to_dtype, weak_kind
from hybridflow.core.tensor import Tensor, share, wrap
from hybridflow.core.type_aliases import ArrayLike, DTypeLike, ShapeLike
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, exclusive, expand, filled, scalar, strong, to_shape
from hybridflow.eager.public_op import creation, operation
from hybridflow.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConcretizationError,
    DTypeError,
    HybridflowError,
    ShapeError,
    SharingError,
    entered,
)
from hybridflow.runtime import uninterruptible


@entered
@declare("makes tensors")
def asarray(
    value: ArrayLike, /, dtype: DTypeLike | None = None, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """Convert to a tensor.

    ``value`` as a tensor: a tensor, variable, number, nested list, NumPy array or object with ``__array__``.

    Without ``dtype``, arrays keep theirs and Python values become bool, int64 or float32.  What is assigned to items of
    the result is seen by no other tensor, whatever ``copy`` says; arrays are copied.  Raises ArgumentError for ragged
    lists, for numbers that do not fit the dtype, and for ``copy=False`` where there is no tensor of that dtype yet.

    Args:
        value: what becomes a tensor.
        dtype: the dtype of the result.
        device: where it lies.
        copy: False: an error where it takes a copy.

    Returns:
        A tensor of the shape of ``value``.

    >>> hf.asarray([[1, 2], [3, 4]], dtype=hf.float32)
    <Tensor f32[2,2] cpu>
    [[1. 2.]
     [3. 4.]]
    """
    tensor = as_tensor(value, "asarray", None if dtype is None else to_dtype(dtype, "asarray"))
    if copy is False and not (isinstance(value, (Tensor, Variable)) and value.dtype == tensor.dtype):
        raise ArgumentError("asarray", f"{type(value).__name__} cannot become {tensor.type} without a copy.")
    if device is not None:
        return tensor.to_device(device)
    return exclusive(tensor) if copy is not False and isinstance(value, (Tensor, Variable)) else tensor


@entered
@declare("makes tensors")
def constant(value: ArrayLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None) -> Tensor:
    """Make a constant: ``value`` as a tensor, as ``asarray``; ``shape`` reshapes it, or repeats a single element.

    Args:
        value: what becomes a tensor.
        dtype: the dtype of the result.
        shape: the shape of the result.

    Returns:
        A tensor of ``shape``, or of that of ``value``.

    Raises:
        ShapeError: for a shape that the elements do not fill.

    >>> hf.constant(7, shape=(2, 2))
    <Tensor i64[2,2] cpu>
    [[7 7]
     [7 7]]
    """
    tensor = as_tensor(value, "constant", None if dtype is None else to_dtype(dtype, "constant"))
    if shape is None:
        return exclusive(tensor) if isinstance(value, (Tensor, Variable)) else tensor
    wanted = to_shape(shape, "constant")
    if tensor.size == 1:
        return expand(apply(TABLE["reshape"], tensor, shape=()), wanted)
    if tensor.size != wanted_size(wanted):
        raise ShapeError("constant", f"{tensor.type} has {tensor.size} elements, which do not fill the shape {wanted}.")
    return apply(TABLE["reshape"], tensor, shape=wanted)


def wanted_size(shape: Shape) -> Extent:
    return product(shape)


@entered
def from_dlpack(x: ArrayLike, /, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor over the buffer of ``x``, which exports DLPack (torch, JAX, CuPy, NumPy ...), without a copy.

    Its owner must not write to the buffer while the tensor is used; pass ``copy=True`` otherwise. Compiled functions
    that have looked at the elements find at their next call what was written in between.

    Raises ArgumentTypeError for what does not export its memory, and DTypeError for dtypes that there are no tensors
    of. ``copy=False`` raises SharingError (a BufferError) where it takes a copy.

    Args:
        x: an array with ``__dlpack__``.
        device: the device of the tensor.
        copy: True: copy in any case; False: an error where it takes a copy.

    Returns:
        A tensor of the shape and dtype of ``x``.

    >>> hf.from_dlpack(np.asarray([1.0, 2.0]))
    <Tensor f64[2] cpu> [1. 2.]
    """
    if not (hasattr(type(x), "__dlpack__") and hasattr(type(x), "__dlpack_device__")):
        raise ArgumentTypeError("from_dlpack", f"{type(x).__name__} has no __dlpack__. Use hf.asarray.")
    tensor = _from_capsule(x, copy)
    return tensor if device is None else tensor.to_device(device)


@uninterruptible.loaded
def _sharing() -> tuple[ModuleType, ModuleType]:
    from hybridflow.core import dlpack, interop  # which a first operation does without

    return dlpack, interop


def _from_capsule(x: ArrayLike, copy: bool | None) -> Tensor:
    dlpack, foreign = _sharing()
    gpu_array = foreign.on_gpu(x, "from_dlpack")
    if gpu_array is not None:
        to_dtype(gpu_array.dtype, "from_dlpack")
        return wrap(gpu_array.copy() if copy else gpu_array)
    try:
        array = dlpack.imported(x)
    except HybridflowError:
        raise
    except Exception as error:
        foreign.refuse(x, error, "from_dlpack")
    to_dtype(array.dtype, "from_dlpack")
    if copy is False and not array.flags.c_contiguous:
        raise SharingError("from_dlpack", "the array is not C-contiguous, so it takes a copy. Allow one.")
    return wrap(np.array(array, order="C") if copy or not array.flags.c_contiguous else share(array))


def _placed(tensor: Tensor, device: str | None) -> Tensor:
    device = devices.traced_scope() if device is None else device
    return tensor if device is None else tensor.to_device(device)


def _dtype_or(default: np.dtype[Any], dtype: DTypeLike | None, stage: str) -> np.dtype[Any]:
    return default if dtype is None else to_dtype(dtype, stage)


@creation
def full(shape: ShapeLike, fill_value: object, dtype: DTypeLike | None = None, *, device: str | None = None) -> Tensor:
    """A tensor of ``shape`` that holds the scalar ``fill_value`` everywhere, in its own dtype unless one is given.

    Args:
        shape: an extent or a tuple of extents.
        fill_value: a scalar.
        dtype: the dtype of the result. That of ``fill_value`` unless given.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of ``shape``.

    Raises:
        ShapeError: for a negative extent.

    >>> hf.full((2, 2), 7)
    <Tensor i64[2,2] cpu>
    [[7 7]
     [7 7]]
    """
    wanted = None if dtype is None else to_dtype(dtype, "full")
    if weak_kind(fill_value) is not None and not isinstance(fill_value, Tensor):
        wanted = result_dtype("full", (fill_value,)) if wanted is None else wanted
        return _placed(filled(fill_value, wanted, to_shape(shape, "full"), "full"), device)
    value = as_tensor(fill_value, "full", wanted)
    if value.shape:
        raise ShapeError("full", f"the fill value is {value.type}; it must be a scalar. Use hf.broadcast_to.")
    return _placed(expand(value, to_shape(shape, "full")), device)


@creation
def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: str | None = None) -> Tensor:
    """Zeros, float32 unless a dtype is given.

    Args:
        shape: an extent or a tuple of extents.
        dtype: the dtype of the result. float32 unless given.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of ``shape``.

    Raises:
        ShapeError: for a negative extent.

    >>> hf.zeros((2, 2))
    <Tensor f32[2,2] cpu>
    [[0. 0.]
     [0. 0.]]
    """
    return _placed(filled(0, _dtype_or(default_float, dtype, "zeros"), to_shape(shape, "zeros"), "zeros"), device)


@creation
def ones(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: str | None = None) -> Tensor:
    """Ones, float32 unless a dtype is given.

    Args:
        shape: an extent or a tuple of extents.
        dtype: the dtype of the result. float32 unless given.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of ``shape``.

    Raises:
        ShapeError: for a negative extent.

    >>> hf.ones((2, 2))
    <Tensor f32[2,2] cpu>
    [[1. 1.]
     [1. 1.]]
    """
    return _placed(filled(1, _dtype_or(default_float, dtype, "ones"), to_shape(shape, "ones"), "ones"), device)


@creation
def empty(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: str | None = None) -> Tensor:
    """A tensor whose values are not to be relied on.  They are zeros.

    Args:
        shape: an extent or a tuple of extents.
        dtype: the dtype of the result. float32 unless given.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of ``shape``.

    Raises:
        ShapeError: for a negative extent.

    >>> hf.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype, device=device)


@entered
def full_like(
    x: ArrayLike, /, fill_value: object, dtype: DTypeLike | None = None, *, device: str | None = None
) -> Tensor:
    """The scalar ``fill_value`` everywhere, with the shape and dtype of ``x``.

    Args:
        x: what has the shape.
        fill_value: a scalar.
        dtype: the dtype of the result. That of ``x`` unless given.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of the shape of ``x``.

    >>> hf.full_like(hf.ones(3), 7)
    <Tensor f32[3] cpu> [7. 7. 7.]
    """
    x = as_tensor(x, "full_like")
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype, device=device)


@entered
def zeros_like(x: ArrayLike, /, dtype: DTypeLike | None = None, *, device: str | None = None) -> Tensor:
    """Zeros with the shape and dtype of ``x``.

    Args:
        x: what has the shape.
        dtype: the dtype of the result. That of ``x`` unless given.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of the shape of ``x``.

    >>> hf.zeros_like([1, 2, 3])
    <Tensor i64[3] cpu> [0 0 0]
    """
    x = as_tensor(x, "zeros_like")
    return zeros(x.shape, x.dtype if dtype is None else dtype, device=device)


@entered
def ones_like(x: ArrayLike, /, dtype: DTypeLike | None = None, *, device: str | None = None) -> Tensor:
    """Ones with the shape and dtype of ``x``.

    Args:
        x: what has the shape.
        dtype: the dtype of the result. That of ``x`` unless given.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of the shape of ``x``.

    >>> hf.ones_like([1, 2, 3])
    <Tensor i64[3] cpu> [1 1 1]
    """
    x = as_tensor(x, "ones_like")
    return ones(x.shape, x.dtype if dtype is None else dtype, device=device)


@entered
def empty_like(x: ArrayLike, /, dtype: DTypeLike | None = None, *, device: str | None = None) -> Tensor:
    """A tensor with the shape and dtype of ``x`` whose values are not to be relied on.  They are zeros.

    Args:
        x: what has the shape.
        dtype: the dtype of the result. That of ``x`` unless given.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of the shape of ``x``.

    >>> hf.empty_like(hf.ones((2, 3))).shape
    (2, 3)
    """
    x = as_tensor(x, "empty_like")
    return zeros(x.shape, x.dtype if dtype is None else dtype, device=device)


def iota(shape: Shape, axis: int, dtype: np.dtype[Any]) -> Tensor:
    """The position along ``axis`` at every element."""
    return apply(TABLE["iota"], shape=shape, axis=axis, dtype=dtype)


@creation
def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
) -> Tensor:
    """Evenly spaced values: ``start``, ``start + step``, ... below ``stop`` (above it for a negative step);
    ``arange(n)`` counts from 0.

    Element i is ``start + i * step``; int64 when all three are integers, else float32.  Raises ArgumentError for a step
    of 0, and for numbers that the dtype does not hold.

    Args:
        start: the first number; the end, if it is alone.
        stop: the end, which is left out.
        step: the difference of neighbours.
        dtype: the dtype of the result.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of one axis.

    >>> hf.arange(2, 10, 3)
    <Tensor i64[3] cpu> [2 5 8]
    """
    if stop is None:
        start, stop = 0, start
    if dtype is not None and dtypes.is_complex(to_dtype(dtype, "arange")):
        raise DTypeError("arange", f"{dtype} is complex: its numbers are in no order. Convert a range with hf.astype.")
    bounds = [_number(value, name) for name, value in (("start", start), ("stop", stop), ("step", step))]
    first, last, by = bounds
    if by == 0:
        raise ArgumentError("arange", "the step is 0, so the range does not end.")
    is_float = any(isinstance(v, float) for v in bounds)
    count = max(0, int(np.ceil((last - first) / by)) if is_float else -((first - last) // by))
    chosen = (default_float if is_float else default_int) if dtype is None else to_dtype(dtype, "arange")
    # Positions are exact in the wide dtype; the values are rounded to the chosen dtype once, at the end.
    wide = dtypes.float64 if is_float else default_int
    values = iota((count,), 0, wide)
    if not (isinstance(count, int) and count == 0):
        _check_ends(first, first + (count - 1) * by, chosen, is_float)
    if by != 1 and not (isinstance(count, int) and count <= 1):
        values = multiply(values, by if is_float else _in_64_bits(by))
    if first != 0 and not (isinstance(count, int) and count == 0):
        values = add(values, first if is_float else _in_64_bits(first))
    return _placed(cast(values, chosen), device)


def _check_ends(first: float, last: float, dtype: np.dtype[Any], is_float: bool) -> None:
    """Raise ArgumentError unless the first and the last number of a range are some that the dtype holds, or, of ints
    that become floats, int64."""
    if not dtypes.is_integer(dtypes.wide_dtype(dtype)):
        if is_float:
            return
        dtype = default_int
    least, most = dtypes.limits(dtype)
    for end in (first, last):
        if isinstance(end, Dim):
            if dtype.itemsize < 8 and not (end <= most and end >= least):
                raise ArgumentError("arange", f"{end} does not fit {dtype} ({least} to {most}).")
        else:
            check_integral(int(end), dtype, "arange")


def _in_64_bits(value: ArrayLike) -> Any:
    """An int as one of int64 that is equal to it modulo 2**64, as which numbers of uint64 are calculated."""
    return (value + 2**63) % 2**64 - 2**63 if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def _number(value: ArrayLike, name: str) -> Any:
    """A bound of ``arange``."""
    if weak_kind(value) is None or (isinstance(value, Tensor) and dtypes.is_integer(value.dtype)):
        bound = value if isinstance(value, Tensor) else as_tensor(value, "arange")
        if bound.size != 1:
            raise ShapeError("arange", f"{name} is {bound.type}; it must be one number.")
        if bound._known() is None:
            return bound._to_extent(
                lambda: ConcretizationError(
                    "arange",
                    f"{name} is {bound!r}, whose value does not exist while tracing, and it decides the shape. "
                    "For a loop write range(n), which takes a tensor; for a size make it a Python argument.",
                )
            )
        value = bound.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise ArgumentError("arange", f"{name} is {value}; it must be finite.")
    return value


@creation
def linspace(
    start: object,
    stop: object,
    /,
    num: int,
    dtype: DTypeLike | None = None,
    endpoint: bool = True,
    *,
    device: str | None = None,
) -> Tensor:
    """Evenly spaced values: ``num`` of them from ``start`` to ``stop``, which is the last one exactly
    when ``endpoint``.

    Integer dtypes round them down.

    Args:
        start: the first number.
        stop: the last number.
        num: how many there are.
        dtype: the dtype of the result. float32 unless given, complex where an end is.
        endpoint: whether ``stop`` is one of them.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of ``num`` elements.

    >>> hf.linspace(0, 1, 5)
    <Tensor f32[5] cpu> [0.   0.25 0.5  0.75 1.  ]
    """
    count = type_rules.whole("linspace", "num", num)
    if count < 0:
        raise ArgumentError("linspace", f"num is {count}; it must not be negative.")
    start, stop = strong(start, "linspace"), strong(stop, "linspace")
    ends = result_dtype("linspace", (start, stop))
    if dtype is None:
        dtype = ends if dtypes.is_complex(ends) else default_float
    dtype = to_dtype(dtype, "linspace")
    intervals = count - 1 if endpoint else count
    wide = dtypes.complex128 if dtypes.is_complex(ends) else dtypes.float64
    start, stop = (as_tensor(v, "linspace", wide) for v in (start, stop))
    for name, bound in (("start", start), ("stop", stop)):
        if bound.ndim:
            raise ShapeError("linspace", f"{name} is {bound.type}; it must be a scalar.")
    position = iota((count,), 0, dtypes.float64)
    values = add(start, multiply(cast(position, wide), (stop - start) / max(intervals, 1)))
    if endpoint and count > 1:
        values = where(greater_equal(position, count - 1), stop, values)
    if dtypes.is_integer(dtype):
        values = floor(values)
    return _placed(cast(values, dtype), device)


@creation
def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: DTypeLike | None = None, *, device: str | None = None
) -> Tensor:
    """Ones on the ``k``-th diagonal (above the main one for positive ``k``), zeros elsewhere.

    Args:
        n_rows: how many rows.
        n_cols: how many columns; as many as rows unless given.
        k: which diagonal holds ones.
        dtype: the dtype of the result. float32 unless given.
        device: the device, such as ``"gpu:0"``; by default the current one.

    Returns:
        A tensor of shape (``n_rows``, ``n_cols``).

    >>> hf.eye(2, 3)
    <Tensor f32[2,3] cpu>
    [[1. 0. 0.]
     [0. 1. 0.]]
    """
    shape = to_shape((n_rows, n_rows if n_cols is None else n_cols), "eye")
    row, column = iota(shape, 0, default_int), iota(shape, 1, default_int)
    on_diagonal = apply(TABLE["equal"], add(row, _diagonal(k, "eye")), column)
    return _placed(cast(on_diagonal, _dtype_or(default_float, dtype, "eye")), device)


def _diagonal(k: object, stage: str) -> int:
    """The number of a diagonal, to which positions can be added."""
    return max(-(2**62), min(2**62, type_rules.integer(stage, "k", k)))  # further out there are no elements either


def _triangle(x: ArrayLike, k: int, stage: str, keep: Callable[..., Any]) -> Tensor:
    x = as_tensor(x, stage)
    if x.ndim < 2:
        raise ShapeError(stage, f"{x.type} is not a matrix or a stack of matrices.")
    row, column = (iota(x.shape, x.ndim - 2 + axis, default_int) for axis in (0, 1))
    return where(keep(column, add(row, _diagonal(k, stage))), x, scalar(0, x.dtype, stage))


@operation
def tril(x: ArrayLike, /, k: int = 0) -> Tensor:
    """Lower triangle: ``x`` with zeros above the ``k``-th diagonal of the last two axes.

    Args:
        x: a tensor of two axes or more.
        k: the diagonal that is kept; above the main one for positive numbers.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.tril([[1, 2], [3, 4]])
    <Tensor i64[2,2] cpu>
    [[1 0]
     [3 4]]
    """
    return _triangle(x, k, "tril", less_equal)


@operation
def triu(x: ArrayLike, /, k: int = 0) -> Tensor:
    """Upper triangle: ``x`` with zeros below the ``k``-th diagonal of the last two axes.

    Args:
        x: a tensor of two axes or more.
        k: the diagonal that is kept; above the main one for positive numbers.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.triu([[1, 2], [3, 4]])
    <Tensor i64[2,2] cpu>
    [[1 2]
     [0 4]]
    """
    return _triangle(x, k, "triu", greater_equal)


@operation
def meshgrid(*arrays: object, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate grids of one-dimensional ``arrays``: with "ij", grid k varies along axis k; "xy" swaps two.

    Args:
        *arrays: tensors of one axis.
        indexing: "xy" or "ij".

    Returns:
        A tensor for each of them, all of one shape.

    >>> [x.tolist() for x in hf.meshgrid([1, 2], [3, 4])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError("meshgrid", f"indexing is {indexing!r}; it must be 'xy' or 'ij'.")
    axes = [as_tensor(a, "meshgrid") for a in arrays]
    for a in axes:
        if a.ndim != 1:
            raise ShapeError("meshgrid", f"{a.type} is not one-dimensional.")
    order = list(range(len(axes)))
    if indexing == "xy" and len(axes) > 1:
        order[0], order[1] = 1, 0
    shape: list[Any] = [None] * len(axes)
    for a, position in zip(axes, order):
        shape[position] = a.shape[0]
    return tuple(apply(TABLE["broadcast"], a, shape=tuple(shape), axes=(p,)) for a, p in zip(axes, order))
