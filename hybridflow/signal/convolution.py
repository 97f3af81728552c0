"""Convolution and correlation of whole signals, in any number of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hybridflow.array import fourier
from hybridflow.array.elementwise import conj
from hybridflow.array.linalg import tensordot
from hybridflow.array.shapes import flip, known_extent, moveaxis, pad, slice_axis
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, common_dtype, float_operand
from hybridflow.errors import ArgumentError, DTypeError, ShapeError, entered

_MOST_DIRECT = 256  # products of an element for which the direct sum is as quick
_MODES = ("full", "same", "valid")


@entered
def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto") -> Tensor:
    """The convolution of two signals with equally many axes.

    Args:
        in1: a tensor or array-like value.
        in2: another one.
        mode: "full" for all that overlaps, "valid" for where one lies within the other, "same" for the middle of
            "full" in the shape of ``in1``.
        method: "direct" for sums of products, "fft" for Fourier transforms, "auto" for the quicker one.

    Returns:
        A tensor of the common dtype.

    Raises:
        ArgumentError: for another mode or method.
        ShapeError: where numbers of axes differ, or in mode "valid" neither signal contains the other.

    >>> hf.signal.convolve([1.0, 2.0, 3.0], [0.0, 1.0, 0.5])
    <Tensor f32[5] cpu> [0.  1.  2.5 4.  1.5]
    """
    return _convolved("convolve", in1, in2, mode, method, reverse=False)


@entered
def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto") -> Tensor:
    """The cross-correlation of two signals: the convolution of the first with the second's conjugate backwards.

    Args:
        in1: a tensor or array-like value.
        in2: another one.
        mode: "full" for all that overlaps, "valid" for where one lies within the other, "same" for the middle of
            "full" in the shape of ``in1``.
        method: "direct" for sums of products, "fft" for Fourier transforms, "auto" for the quicker one.

    Returns:
        A tensor of the common dtype.

    Raises:
        ArgumentError: for another mode or method.
        ShapeError: where numbers of axes differ, or in mode "valid" neither signal contains the other.

    >>> hf.signal.correlate([1.0, 2.0, 3.0], [0.0, 1.0, 0.5])
    <Tensor f32[5] cpu> [0.5 2.  3.5 3.  0. ]
    """
    return _convolved("correlate", in1, in2, mode, method, reverse=True)


@entered
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: object = None) -> Tensor:
    """The convolution of two signals by Fourier transforms; along axes that are left out they broadcast.

    Args:
        in1: a tensor or array-like value; integers become float32.
        in2: another one.
        mode: "full", "same" or "valid", as of ``convolve``.
        axes: the axes of the convolution, by default all.

    Returns:
        A float tensor.

    Raises:
        ArgumentError: for another mode.
        ShapeError: where numbers of axes differ, or axes that are left out do not broadcast.

    >>> hf.abs(hf.signal.fftconvolve([1.0, 2.0, 3.0], [0.0, 0.0, 1.0]) - hf.asarray([0.0, 0, 1, 2, 3])).max() < 1e-6
    <Tensor bool[] cpu> True
    """
    stage = "fftconvolve"
    x, y = _two(stage, float_operand(in1, stage), float_operand(in2, stage), mode)
    if axes is None:
        along = tuple(range(x.ndim))
    else:
        axes_listed = axes if isinstance(axes, (tuple, list)) else (axes,)
        along = tuple(sorted({type_rules.axis(stage, x.type, axis) for axis in axes_listed}))
    return _in_mode(stage, _by_transforms(stage, x, y, along), x, y, mode, along)


def _two(stage: str, x: Tensor, y: Tensor, mode: str) -> list[Tensor]:
    if mode not in _MODES:
        raise ArgumentError(stage, f"mode is {mode!r}. Expected 'full', 'same' or 'valid'.")
    if x.ndim != y.ndim:
        raise ShapeError(stage, f"{x.type} and {y.type} have different numbers of axes.")
    return common_dtype(stage, [x, y])


def _convolved(stage: str, in1: object, in2: object, mode: str, method: str, reverse: bool) -> Tensor:
    if method not in ("auto", "direct", "fft"):
        raise ArgumentError(stage, f"method is {method!r}. Expected 'auto', 'direct' or 'fft'.")
    x, y = _two(stage, as_tensor(in1, stage), as_tensor(in2, stage), mode)
    if dtypes.is_bool(x.dtype):
        raise DTypeError(stage, f"{x.type} holds no numbers. Convert it first.")
    along = tuple(range(x.ndim))
    if reverse:
        y = flip(conj(y), axis=along)
    if not along:
        return x * y
    shapes = _shapes(stage, x, along), _shapes(stage, y, along)
    if 0 in shapes[0] or 0 in shapes[1]:
        raise ShapeError(stage, f"{x.type} or {y.type} is empty. Expected elements.")
    few = min(math.prod(shapes[0]), math.prod(shapes[1])) <= _MOST_DIRECT
    if method == "fft" or (method == "auto" and not few and dtypes.is_inexact(x.dtype)):
        if not dtypes.is_inexact(x.dtype):
            raise DTypeError(stage, f"{x.type} holds integers. Convert it to floats, or use method='direct'.")
        return _in_mode(stage, _by_transforms(stage, x, y, along), x, y, mode, along)
    return _direct(stage, x, y, shapes[0], shapes[1], mode)


def _shapes(stage: str, x: Tensor, along: Sequence[int]) -> tuple[int, ...]:
    return tuple(known_extent(x, axis, stage) for axis in along)


def _within(inner: Sequence[int], outer: Sequence[int]) -> bool:
    return all(n <= m for n, m in zip(inner, outer))


def _not_valid(stage: str, x: Tensor, y: Tensor) -> ShapeError:
    return ShapeError(stage, f"neither of {x.type} and {y.type} contains the other. Expected it in mode 'valid'.")


def _direct(stage: str, x: Tensor, y: Tensor, m: tuple[int, ...], n: tuple[int, ...], mode: str) -> Tensor:
    """Sums of products over the windows of the larger signal."""
    if mode == "valid" and not (_within(n, m) or _within(m, n)):
        raise _not_valid(stage, x, y)
    swapped = math.prod(m) < math.prod(n) if mode != "valid" else not _within(n, m)
    big, small, sizes = (y, x, m) if swapped else (x, y, n)
    if mode != "valid":
        big = pad(big, [(size - 1, size - 1) for size in sizes])
    axes = tuple(range(big.ndim))
    windows = apply(TABLE["windows"], big, axes=axes, size=tuple(sizes))
    result = tensordot(windows, flip(small, axis=axes), axes=(tuple(range(big.ndim, 2 * big.ndim)), axes))
    return _middle(result, m, axes) if mode == "same" else result


def _middle(x: Tensor, shape: Sequence[int], along: Sequence[int]) -> Tensor:
    for axis, n in zip(along, shape):
        start = (int(x.shape[axis]) - n) // 2
        x = slice_axis(x, axis, start, start + n)
    return x


def _by_transforms(stage: str, x: Tensor, y: Tensor, along: Sequence[int]) -> Tensor:
    """The whole convolution: the last of the axes by a real transform, the others by complex ones."""
    m, n = _shapes(stage, x, along), _shapes(stage, y, along)
    full = tuple(a + b - 1 for a, b in zip(m, n))
    if not along:
        return x * y
    if min(full) < 1 or 0 in (*m, *n):
        raise ShapeError(stage, f"{x.type} or {y.type} is empty. Expected elements.")
    dtype, is_complex = x.dtype, dtypes.is_complex(x.dtype)
    sizes = [fourier.smooth_size(k) for k in full]
    *others, last = along
    spectra = []
    for signal in (x, y):
        signal = cast(signal, dtypes.compute_dtype(dtype))
        for axis, size in zip(along, sizes):
            signal = fourier.fit(signal, axis, size, stage)
        signal = moveaxis(signal, last, -1)
        spectrum = fourier.fft(signal, signal.ndim - 1) if is_complex else fourier.rfft(signal)
        for axis in others:
            spectrum = fourier.fft(spectrum, axis)
        spectra.append(spectrum)
    product = spectra[0] * spectra[1]
    for axis in others:
        product = fourier.fft(product, axis, inverse=True)
    scale = 1 / math.prod(sizes)
    if is_complex:
        whole = fourier.fft(product, product.ndim - 1, inverse=True, scale=scale)
    else:
        whole = fourier.irfft(product, sizes[-1], scale=scale)
    result = moveaxis(whole, -1, last)
    for axis, size in zip(along, full):
        result = slice_axis(result, axis, 0, size)
    return cast(result, dtype)


def _in_mode(stage: str, full: Tensor, x: Tensor, y: Tensor, mode: str, along: Sequence[int]) -> Tensor:
    """The part of the whole convolution that is asked for."""
    if mode == "full" or not along:
        return full
    m, n = _shapes(stage, x, along), _shapes(stage, y, along)
    if mode == "same":
        return _middle(full, m, along)
    if not (_within(n, m) or _within(m, n)):
        raise _not_valid(stage, x, y)
    return _middle(full, [abs(a - b) + 1 for a, b in zip(m, n)], along)
