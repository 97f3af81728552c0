"""Discrete Fourier transforms: ``hf.fft``, the extension of the array API standard, by the names of ``numpy.fft``.

They are generated kernels, which have the same bits on any processor with any number of threads.  Lengths without prime
factors above 13 are computed at once, others as convolutions with a chirp.  Results are complex64 for float32 and what
is narrower, complex128 for float64; integers become float32.  Errors are about the dtype's epsilon times the logarithm
of the length, relative to the root mean square of the result.

Transforms are linear: their derivatives are transforms.  Lengths are part of the compiled code; other extents may be
open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any, SupportsIndex

from hybridflow.array import fourier as _fourier
from hybridflow.array.creation import arange as _arange, zeros_like as _zeros_like
from hybridflow.array.elementwise import complex as _complex, conj as _conj
from hybridflow.array.shapes import (
    concat as _concat,
    known_extent as _known_extent,
    moveaxis as _moveaxis,
    roll as _roll,
)
from hybridflow.compiler.ir import dtypes as _dtypes
from hybridflow.compiler.ops import type_rules as _type_rules
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.promotion import to_dtype as _to_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike
from hybridflow.eager.operands import as_tensor as _as_tensor, cast as _cast, float_operand as _float_operand
from hybridflow.eager.public_op import operation as _operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _scale(norm: str | None, n: int, inverse: bool, stage: str) -> float:
    """The factor of a transform of n numbers."""
    if not (norm is None or isinstance(norm, str)) or norm not in _SWAPPED:
        raise ArgumentError(stage, f"norm is {norm!r}. Expected 'backward', 'ortho' or 'forward'.")
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if inverse == (norm != "forward") else 1.0


def _numbers(x: object, stage: str, least: int = 1) -> Tensor:
    """A float or complex tensor of a dtype that there are transforms of."""
    x = _float_operand(x, stage)
    if x.ndim < least:
        raise ShapeError(stage, f"the input is {x.type}. Expected {least} axes or more.")
    return x if _dtypes.is_complex(x.dtype) else _cast(x, _dtypes.compute_dtype(x.dtype))


def _real_numbers(x: object, stage: str) -> Tensor:
    x = _numbers(x, stage)
    if _dtypes.is_complex(x.dtype):
        raise DTypeError(stage, f"the input is {x.type}. Expected real numbers; take hf.real(x) first.")
    return x


def _as_complex(x: Tensor) -> Tensor:
    return x if _dtypes.is_complex(x.dtype) else _complex(x, _zeros_like(x))


def _length(n: SupportsIndex | None, x: Tensor, axis: int, stage: str) -> int:
    """How many numbers are transformed."""
    size = _known_extent(x, axis, stage) if n is None else _type_rules.integer(stage, "n", n)
    if size < 1:
        raise ArgumentError(
            stage, f"there are {size} numbers to transform along axis {axis} of {x.type}. Expected some."
        )
    return size


def _along(
    x: Tensor, n: SupportsIndex | None, axis: SupportsIndex, norm: str | None, inverse: bool, stage: str
) -> Tensor:
    axis = _type_rules.axis(stage, x.type, axis)
    size = _length(n, x, axis, stage)
    scale = _scale(norm, size, inverse, stage)
    x = _fourier.fit(x, axis, size, stage)
    return _fourier.fft(_as_complex(x), axis, inverse=inverse, scale=scale)


def _real_along(x: Tensor, n: SupportsIndex | None, axis: SupportsIndex, norm: str | None, stage: str) -> Tensor:
    axis = _type_rules.axis(stage, x.type, axis)
    size = _length(n, x, axis, stage)
    scale = _scale(norm, size, False, stage)
    x = _moveaxis(_fourier.fit(x, axis, size, stage), axis, -1)
    return _moveaxis(_fourier.rfft(x, scale=scale), -1, axis)


def _to_real_along(x: Tensor, n: SupportsIndex | None, axis: SupportsIndex, norm: str | None, stage: str) -> Tensor:
    axis = _type_rules.axis(stage, x.type, axis)
    size = 2 * (_known_extent(x, axis, stage) - 1) if n is None else _type_rules.integer(stage, "n", n)
    if size < 1:
        raise ArgumentError(stage, f"n is {size} for axis {axis} of {x.type}. Expected 1 or more.")
    scale = _scale(norm, size, True, stage)
    x = _moveaxis(_as_complex(_fourier.fit(x, axis, size // 2 + 1, stage)), axis, -1)
    return _moveaxis(_fourier.irfft(x, size, scale=scale), -1, axis)


@_operation
def fft(a: ArrayLike, /, n: SupportsIndex | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along an axis: ``sum(a[j] * exp(-2i pi j k / n))``.

    Args:
        a: a tensor or array-like value of real or complex numbers.
        n: the length of the transform: ``a`` is cut or padded with zeros; by default its own length.
        axis: the axis along which they lie.
        norm: "backward" (the default) for no factor here and 1/n in the inverse, "ortho" for 1/sqrt(n) in both,
            "forward" for 1/n here.

    Returns:
        A complex tensor in which ``axis`` has ``n`` elements.

    Raises:
        ArgumentError: for an unknown norm, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.fft([1.0, 2.0, 3.0, 4.0])
    <Tensor c64[4] cpu> [10.+0.j -2.+2.j -2.+0.j -2.-2.j]
    """
    return _along(_numbers(a, "fft"), n, axis, norm, False, "fft")


@_operation
def ifft(a: ArrayLike, /, n: SupportsIndex | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``fft``: ``sum(a[k] * exp(2i pi j k / n)) / n``.

    Args:
        a: a tensor or array-like value of real or complex numbers.
        n: the length of the transform: ``a`` is cut or padded with zeros; by default its own length.
        axis: the axis along which they lie.
        norm: the same as of ``fft``.

    Returns:
        A complex tensor in which ``axis`` has ``n`` elements.

    Raises:
        ArgumentError: for an unknown norm, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.ifft([4.0, 0.0, 0.0, 0.0])
    <Tensor c64[4] cpu> [1.+0.j 1.+0.j 1.+0.j 1.+0.j]
    """
    return _along(_numbers(a, "ifft"), n, axis, norm, True, "ifft")


@_operation
def rfft(a: ArrayLike, /, n: SupportsIndex | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The Fourier transform of real numbers: its first ``n // 2 + 1`` numbers, of which the others are conjugates.

    Args:
        a: a tensor or array-like value of real numbers.
        n: the length of the transform: ``a`` is cut or padded with zeros; by default its own length.
        axis: the axis along which they lie.
        norm: the same as of ``fft``.

    Returns:
        A complex tensor in which ``axis`` has ``n // 2 + 1`` elements.

    Raises:
        DTypeError: for complex numbers.
        ArgumentError: for an unknown norm, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.rfft([1.0, 2.0, 3.0, 4.0])
    <Tensor c64[3] cpu> [10.+0.j -2.+2.j -2.+0.j]
    """
    return _real_along(_real_numbers(a, "rfft"), n, axis, norm, "rfft")


@_operation
def irfft(a: ArrayLike, /, n: SupportsIndex | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``rfft``.  Imaginary parts that the transform of real numbers cannot have are not looked at.

    Args:
        a: a tensor or array-like value: the first ``n // 2 + 1`` numbers of a transform.
        n: how many real numbers there are; by default ``2 * (m - 1)`` for m numbers.
        axis: the axis along which they lie.
        norm: the same as of ``fft``.

    Returns:
        A float tensor in which ``axis`` has ``n`` elements.

    Raises:
        ArgumentError: for an unknown norm, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.irfft([4.0, 0.0, 0.0])
    <Tensor f32[4] cpu> [1. 1. 1. 1.]
    """
    return _to_real_along(_numbers(a, "irfft"), n, axis, norm, "irfft")


@_operation
def hfft(a: ArrayLike, /, n: SupportsIndex | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The transform of a signal that is its own conjugate backwards, whose first half is given: real numbers.

    Args:
        a: a tensor or array-like value: the first ``n // 2 + 1`` numbers.
        n: how many real numbers there are; by default ``2 * (m - 1)`` for m numbers.
        axis: the axis along which they lie.
        norm: the same as of ``fft``.

    Returns:
        A float tensor in which ``axis`` has ``n`` elements.

    Raises:
        ArgumentError: for an unknown norm, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.hfft([1.0, 0.0, 0.0])
    <Tensor f32[4] cpu> [1. 1. 1. 1.]
    """
    _scale(norm, 1, False, "hfft")
    return _to_real_along(_conj(_numbers(a, "hfft")), n, axis, _SWAPPED[norm], "hfft")


@_operation
def ihfft(a: ArrayLike, /, n: SupportsIndex | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``hfft``.

    Args:
        a: a tensor or array-like value of real numbers.
        n: the length of the transform: ``a`` is cut or padded with zeros; by default its own length.
        axis: the axis along which they lie.
        norm: the same as of ``fft``.

    Returns:
        A complex tensor in which ``axis`` has ``n // 2 + 1`` elements.

    Raises:
        DTypeError: for complex numbers.
        ArgumentError: for an unknown norm, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.abs(hf.fft.ihfft([1.0, 1.0, 1.0, 1.0]))
    <Tensor f32[3] cpu> [1. 0. 0.]
    """
    _scale(norm, 1, False, "ihfft")
    return _conj(_real_along(_real_numbers(a, "ihfft"), n, axis, _SWAPPED[norm], "ihfft"))


def _grid(x: Tensor, s: Sequence[SupportsIndex] | None, axes: AxisLike, stage: str) -> list[tuple[Any, int]]:
    """The length (None for all) and the axis of each transform."""
    lengths = None if s is None else [None if k == -1 else k for k in _sequence(s, "s", stage)]
    if axes is None:
        count = x.ndim if lengths is None else len(lengths)
        if count > x.ndim:
            raise ShapeError(stage, f"s has {count} lengths for {x.type}. Expected no more than it has axes.")
        along = list(range(x.ndim - count, x.ndim))
    else:
        along = [_type_rules.axis(stage, x.type, axis) for axis in _sequence(axes, "axes", stage)]
    if lengths is None:
        lengths = [None] * len(along)
    if len(lengths) != len(along):
        raise ArgumentError(stage, f"s has {len(lengths)} lengths for {len(along)} axes. Expected one for each.")
    return list(zip(lengths, along))


def _sequence(value: object, name: str, stage: str) -> Sequence[Any]:
    if isinstance(value, (tuple, list)):
        return value
    raise ArgumentError(stage, f"{name} is {value!r}. Expected a tuple of integers.")


def _several(
    a: ArrayLike, s: Sequence[SupportsIndex] | None, axes: AxisLike, norm: str | None, inverse: bool, stage: str
) -> Tensor:
    x = _numbers(a, stage, least=0)
    grid = _grid(x, s, axes, stage)
    _scale(norm, 1, inverse, stage)
    x = _as_complex(x)
    for n, axis in reversed(grid):
        x = _along(x, n, axis, norm, inverse, stage)
    return x


def _several_real(
    a: ArrayLike, s: Sequence[SupportsIndex] | None, axes: AxisLike, norm: str | None, stage: str
) -> Tensor:
    x = _real_numbers(a, stage)
    grid = _grid(x, s, axes, stage)
    if not grid:
        raise ArgumentError(stage, "there are no axes. Expected one or more.")
    *others, (n, axis) = grid
    x = _real_along(x, n, axis, norm, stage)
    for n, axis in reversed(others):
        x = _along(x, n, axis, norm, False, stage)
    return x


def _several_to_real(
    a: ArrayLike, s: Sequence[SupportsIndex] | None, axes: AxisLike, norm: str | None, stage: str
) -> Tensor:
    x = _numbers(a, stage)
    grid = _grid(x, s, axes, stage)
    if not grid:
        raise ArgumentError(stage, "there are no axes. Expected one or more.")
    *others, (n, axis) = grid
    if n is None:
        n = 2 * (_known_extent(x, axis, stage) - 1)
    for length, other in others:
        x = _along(x, length, other, norm, True, stage)
    return _to_real_along(x, n, axis, norm, stage)


@_operation
def fftn(
    a: ArrayLike,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The Fourier transform along several axes.

    Args:
        a: a tensor or array-like value of real or complex numbers.
        s: the length of the transform along each axis, -1 for the whole axis; by default all.
        axes: the axes; by default all, or the last ones, as many as ``s`` has lengths.
        norm: the same as of ``fft``, for each axis.

    Returns:
        A complex tensor.

    Raises:
        ArgumentError: for an unknown norm, where ``s`` does not fit the axes, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.fftn([[1.0, 1.0], [1.0, 1.0]])
    <Tensor c64[2,2] cpu>
    [[4.+0.j 0.+0.j]
     [0.+0.j 0.+0.j]]
    """
    return _several(a, s, axes, norm, False, "fftn")


@_operation
def ifftn(
    a: ArrayLike,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The inverse of ``fftn``.

    Args:
        a: a tensor or array-like value of real or complex numbers.
        s: the length of the transform along each axis, -1 for the whole axis; by default all.
        axes: the axes; by default all, or the last ones, as many as ``s`` has lengths.
        norm: the same as of ``fft``, for each axis.

    Returns:
        A complex tensor.

    Raises:
        ArgumentError: for an unknown norm, where ``s`` does not fit the axes, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.ifftn([[4.0, 0.0], [0.0, 0.0]])
    <Tensor c64[2,2] cpu>
    [[1.+0.j 1.+0.j]
     [1.+0.j 1.+0.j]]
    """
    return _several(a, s, axes, norm, True, "ifftn")


@_operation
def rfftn(
    a: ArrayLike,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The Fourier transform of real numbers along several axes, of which the last one keeps the first half.

    Args:
        a: a tensor or array-like value of real numbers.
        s: the length of the transform along each axis, -1 for the whole axis; by default all.
        axes: the axes; by default all, or the last ones, as many as ``s`` has lengths.
        norm: the same as of ``fft``, for each axis.

    Returns:
        A complex tensor.

    Raises:
        DTypeError: for complex numbers.
        ArgumentError: for an unknown norm, where ``s`` does not fit the axes, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.rfftn([[1.0, 1.0], [1.0, 1.0]]).shape
    (2, 2)
    """
    return _several_real(a, s, axes, norm, "rfftn")


@_operation
def irfftn(
    a: ArrayLike,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] | None = None,
    norm: str | None = None,
) -> Tensor:
    """The inverse of ``rfftn``.

    Args:
        a: a tensor or array-like value of complex numbers.
        s: how many numbers the result has along each axis; by default all, and ``2 * (m - 1)`` along the last one.
        axes: the axes; by default all, or the last ones, as many as ``s`` has lengths.
        norm: the same as of ``fft``, for each axis.

    Returns:
        A float tensor.

    Raises:
        ArgumentError: for an unknown norm, where ``s`` does not fit the axes, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.irfftn([[4.0, 0.0], [0.0, 0.0]])
    <Tensor f32[2,2] cpu>
    [[1. 1.]
     [1. 1.]]
    """
    return _several_to_real(a, s, axes, norm, "irfftn")


@_operation
def fft2(
    a: ArrayLike,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """The Fourier transform along two axes, as ``fftn``.

    Args:
        a: a tensor or array-like value of real or complex numbers.
        s: the length of the transform along each axis, -1 for the whole axis; by default all.
        axes: the axes.
        norm: the same as of ``fft``, for each axis.

    Returns:
        A complex tensor.

    Raises:
        ArgumentError: for an unknown norm, where ``s`` does not fit the axes, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.fft2(hf.ones((3, 4, 4))).shape
    (3, 4, 4)
    """
    return _several(a, s, axes, norm, False, "fft2")


@_operation
def ifft2(
    a: ArrayLike,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """The inverse of ``fft2``.

    Args:
        a: a tensor or array-like value of real or complex numbers.
        s: the length of the transform along each axis, -1 for the whole axis; by default all.
        axes: the axes.
        norm: the same as of ``fft``, for each axis.

    Returns:
        A complex tensor.

    Raises:
        ArgumentError: for an unknown norm, where ``s`` does not fit the axes, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.ifft2(hf.ones((3, 4, 4))).shape
    (3, 4, 4)
    """
    return _several(a, s, axes, norm, True, "ifft2")


@_operation
def rfft2(
    a: ArrayLike,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """The Fourier transform of real numbers along two axes, as ``rfftn``.

    Args:
        a: a tensor or array-like value of real numbers.
        s: the length of the transform along each axis, -1 for the whole axis; by default all.
        axes: the axes.
        norm: the same as of ``fft``, for each axis.

    Returns:
        A complex tensor.

    Raises:
        DTypeError: for complex numbers.
        ArgumentError: for an unknown norm, where ``s`` does not fit the axes, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.rfft2(hf.ones((3, 4, 4))).shape
    (3, 4, 3)
    """
    return _several_real(a, s, axes, norm, "rfft2")


@_operation
def irfft2(
    a: ArrayLike,
    /,
    s: Sequence[SupportsIndex] | None = None,
    axes: Sequence[SupportsIndex] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """The inverse of ``rfft2``.

    Args:
        a: a tensor or array-like value of complex numbers.
        s: how many numbers the result has along each axis; by default all, and ``2 * (m - 1)`` along the last one.
        axes: the axes.
        norm: the same as of ``fft``, for each axis.

    Returns:
        A float tensor.

    Raises:
        ArgumentError: for an unknown norm, where ``s`` does not fit the axes, or where there is nothing to transform.
        AxisError: for an axis out of range.

    >>> hf.fft.irfft2(hf.ones((3, 4, 3))).shape
    (3, 4, 4)
    """
    return _several_to_real(a, s, axes, norm, "irfft2")


def _frequencies(n: SupportsIndex, d: Any, dtype: DTypeLike | None, device: Any, stage: str, first: Any) -> Tensor:
    count = _type_rules.integer(stage, "n", n)
    if count < 1:
        raise ArgumentError(stage, f"n is {count}. Expected 1 or more.")
    kind = _dtypes.float32 if dtype is None else _to_dtype(dtype, stage)
    if not _dtypes.is_float(kind):
        raise DTypeError(stage, f"dtype is {kind}. Expected a real float dtype.")
    numbers = [_arange(start, stop, device=device) for start, stop in first(count)]
    whole = _concat(numbers, axis=0) if len(numbers) > 1 else numbers[0]
    wide = _dtypes.float64
    return _cast(_cast(whole, wide) / _as_tensor(count * float(d), stage, wide), kind)


@_operation
def fftfreq(
    n: SupportsIndex, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """The frequencies of the results of ``fft``: 0, 1, ... and the negative ones, divided by ``d * n``.

    Args:
        n: how many numbers were transformed.
        d: the time from one sample to the next.
        dtype: a float dtype; float32 unless given.
        device: the device of the tensor.

    Returns:
        A tensor of shape ``(n,)``.

    Raises:
        ArgumentError: where ``n`` is below 1.
        DTypeError: for a dtype that is not a float.

    >>> hf.fft.fftfreq(4, d=0.5)
    <Tensor f32[4] cpu> [ 0.   0.5 -1.  -0.5]
    """
    return _frequencies(n, d, dtype, device, "fftfreq", lambda k: [(0, (k + 1) // 2), (-(k // 2), 0)])


@_operation
def rfftfreq(
    n: SupportsIndex, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """The frequencies of the results of ``rfft``: 0, 1, ... up to n // 2, divided by ``d * n``.

    Args:
        n: how many numbers were transformed.
        d: the time from one sample to the next.
        dtype: a float dtype; float32 unless given.
        device: the device of the tensor.

    Returns:
        A tensor of shape ``(n // 2 + 1,)``.

    Raises:
        ArgumentError: where ``n`` is below 1.
        DTypeError: for a dtype that is not a float.

    >>> hf.fft.rfftfreq(4, d=0.5)
    <Tensor f32[3] cpu> [0.  0.5 1. ]
    """
    return _frequencies(n, d, dtype, device, "rfftfreq", lambda k: [(0, k // 2 + 1)])


def _shifted(x: Any, axes: AxisLike, stage: str, steps: Any) -> Tensor:
    x = _as_tensor(x, stage)
    if axes is None:
        along = tuple(range(x.ndim))
    else:
        axes_listed = axes if isinstance(axes, (tuple, list)) else (axes,)
        along = tuple(_type_rules.axis(stage, x.type, axis) for axis in axes_listed)
    if not along:
        return _as_tensor(x, stage)
    return _roll(x, tuple(steps(x.shape[axis]) for axis in along), axis=along)


@_operation
def fftshift(x: ArrayLike, /, *, axes: Sequence[SupportsIndex] | None = None) -> Tensor:
    """Move the number of frequency 0 to the middle.

    Args:
        x: a tensor or array-like value.
        axes: the axes that are shifted; by default all.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.fft.fftshift(hf.fft.fftfreq(4))
    <Tensor f32[4] cpu> [-0.5  -0.25  0.    0.25]
    """
    return _shifted(x, axes, "fftshift", lambda n: n // 2)


@_operation
def ifftshift(x: ArrayLike, /, *, axes: Sequence[SupportsIndex] | None = None) -> Tensor:
    """The inverse of ``fftshift``.

    Args:
        x: a tensor or array-like value.
        axes: the axes that are shifted; by default all.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.fft.ifftshift([-2, -1, 0, 1])
    <Tensor i64[4] cpu> [ 0  1 -2 -1]
    """
    return _shifted(x, axes, "ifftshift", lambda n: -(n // 2))


if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
