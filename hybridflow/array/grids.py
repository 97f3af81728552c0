"""Grids of coordinates, and positions along axes and in the flattened tensor."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from hybridflow.array.creation import arange, iota, linspace, meshgrid
from hybridflow.array.elementwise import add, clip, floor_divide, greater_equal, multiply, pow, remainder, subtract
from hybridflow.array.selection import nonzero
from hybridflow.array.shapes import stack
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Shape, product
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import default_float, default_int, to_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike, ShapeLike
from hybridflow.eager.operands import as_tensor, cast, filled, reshape_to, to_shape
from hybridflow.eager.public_op import creation, operation
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, IndexRangeError, ShapeError, entered


class Grid:
    """Coordinates that are written as slices: ``hf.mgrid`` and ``hf.ogrid``.

    A slice ``start:stop:step`` is ``hf.arange``, and ``start:stop:5j`` five numbers with both ends, as
    ``hf.linspace`` has them.
    """

    def __init__(self, name: str, is_open: bool) -> None:
        self._name, self._is_open = name, is_open

    @entered
    def __getitem__(self, key: ArrayLike) -> Any:
        stage = self._name
        parts = key if isinstance(key, tuple) else (key,)
        lines = [_line(stage, part) for part in parts]
        if not isinstance(key, tuple):
            return lines[0]
        dtype = default_float if builtins.any(dtypes.is_float(line.dtype) for line in lines) else default_int
        lines = [cast(line, dtype) for line in lines]
        if self._is_open:
            return _open_mesh(lines)
        return stack(meshgrid(*lines, indexing="ij"))

    def __repr__(self) -> str:
        return f"<hf.{self._name}>"


def _line(stage: str, part: object) -> Tensor:
    if not isinstance(part, slice) or part.stop is None:
        raise ArgumentTypeError(stage, f"{part!r} is no slice with an end. Write {stage}[0:3, 0:1:5j].")
    start = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        return linspace(start, part.stop, int(builtins.abs(part.step)))
    return arange(start, part.stop, 1 if part.step is None else part.step)


def _open_mesh(lines: Sequence[Tensor]) -> tuple[Tensor, ...]:
    count = len(lines)
    return tuple(
        reshape_to(line, tuple(line.shape[0] if k == axis else 1 for k in range(count)))
        for axis, line in enumerate(lines)
    )


mgrid = Grid("mgrid", is_open=False)
ogrid = Grid("ogrid", is_open=True)


@entered
def ix_(*args: object) -> tuple[Tensor, ...]:
    """Open mesh of index vectors: ``x[hf.ix_(rows, columns)]`` is the part of ``x`` in these rows and columns.

    Args:
        *args: vectors of integers, or bools that say which positions are meant.

    Returns:
        A tensor for each of them, with as many axes as there are of them.

    Raises:
        ShapeError: for other axes.
        TraceError: for bools in a compiled function, which leave open how many there are.

    >>> hf.reshape(hf.arange(12), (3, 4))[hf.ix_([0, 2], [1, 3])]
    <Tensor i64[2,2] cpu>
    [[ 1  3]
     [ 9 11]]
    """
    lines = []
    for value in args:
        line = as_tensor(value, "ix_")
        if line.ndim != 1:
            raise ShapeError("ix_", f"{line.type} is no vector of positions.")
        if isinstance(value, (list, tuple)) and not value:
            line = cast(line, default_int)
        lines.append(nonzero(line)[0] if dtypes.is_bool(line.dtype) else line)
    return _open_mesh(lines)


@creation
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Triangle of ones: 1 at and below a diagonal, 0 above it.

    Args:
        N: the number of rows.
        M: the number of columns; that of rows unless given.
        k: which diagonal: 0 for the main one, above it for positive numbers, below it for negative ones.
        dtype: the dtype of the result; float32 unless given.

    Returns:
        A tensor of the shape (N, M).

    Raises:
        ShapeError: for a negative extent.

    >>> hf.tri(3)
    <Tensor f32[3,3] cpu>
    [[1. 0. 0.]
     [1. 1. 0.]
     [1. 1. 1.]]
    """
    result_dtype = default_float if dtype is None else to_dtype(dtype, "tri")
    shape = to_shape((N, N if M is None else M), "tri")
    offset = type_rules.integer("tri", "k", k)
    return cast(greater_equal(add(iota(shape, 0, default_int), offset), iota(shape, 1, default_int)), result_dtype)


@operation
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Vandermonde matrix: a column for each power of a vector.

    Args:
        x: a tensor of one axis.
        N: the number of columns; that of the elements unless given.
        increasing: whether the powers ascend from 0 on, and not descend to it.

    Returns:
        A tensor of the shape (size, N) in the dtype of ``x``; int64 for bools and integers of fewer bits.

    Raises:
        ShapeError: for other axes.
        ArgumentError: for a negative ``N``.

    >>> hf.vander([1, 2, 3])
    <Tensor i64[3,3] cpu>
    [[1 1 1]
     [4 2 1]
     [9 3 1]]
    """
    x = as_tensor(x, "vander")
    if x.ndim != 1:
        raise ShapeError("vander", f"x is {x.type}. Expected one axis.")
    if dtypes.is_bool(x.dtype) or (dtypes.is_integer(x.dtype) and x.dtype.itemsize < default_int.itemsize):
        x = cast(x, default_int)  # powers are large
    count = x.shape[0] if N is None else type_rules.integer("vander", "N", N)
    if count < 0:
        raise ArgumentError("vander", f"N is {count}. Expected 0 or more.")
    exponents = iota((count,), 0, default_int)
    exponents = exponents if increasing else subtract(count - 1, exponents)
    return pow(reshape_to(x, (x.shape[0], 1)), cast(exponents, x.dtype))


def _extents(stage: str, dims: object) -> Shape:
    return to_shape(dims, stage)


@entered
def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Tensor, ...]:
    """Positions along each axis of elements of the flattened tensor, in row-major order.

    Args:
        indices: integers.
        shape: the shape of the tensor that is flattened.

    Returns:
        An integer tensor of the shape of ``indices`` for each axis.

    Raises:
        DTypeError: for other numbers than integers.
        IndexRangeError: for a position out of range; compiled functions do not look.
        ShapeError: for a negative extent, and for a shape that is too large.

    >>> hf.unravel_index([5, 11], (3, 4))
    (<Tensor i64[2] cpu> [1 2], <Tensor i64[2] cpu> [1 3])
    """
    extents = _extents("unravel_index", shape)
    places = _integers("unravel_index", indices)
    known = places._known()
    size = product(extents)
    if known is not None and known.size and isinstance(size, int) and not (known.min() >= 0 and known.max() < size):
        raise IndexRangeError(
            "unravel_index", f"a position of {known.min()} to {known.max()} is not in {size} elements."
        )
    return _unraveled(places, extents)


@operation
def _unraveled(places: Tensor, extents: Shape) -> tuple[Tensor, ...]:
    result: list[Tensor] = []
    for extent in extents[:0:-1]:
        result.append(remainder(places, extent))
        places = floor_divide(places, extent)
    return tuple(reversed([*result, places])) if extents else ()


def _integers(stage: str, value: ArrayLike) -> Tensor:
    x = as_tensor(value, stage, default_int if isinstance(value, (list, tuple)) and not len(value) else None)
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(stage, f"positions are {x.type}. Expected integers.")
    return x


@entered
def ravel_multi_index(multi_index: Sequence[Any], dims: object, mode: str | Sequence[str] = "raise") -> Tensor:
    """Positions in the flattened tensor, in row-major order, of positions along each axis.

    Args:
        multi_index: integers for each axis, which broadcast.
        dims: the shape of the tensor that is flattened.
        mode: what becomes of positions that are not there: "raise", "wrap" for the remainder, or "clip" for the nearest
            one; or one of them for each axis.

    Returns:
        An integer tensor.

    Raises:
        ShapeError: where there are not as many as axes.
        DTypeError: for other numbers than integers.
        IndexRangeError: for a position out of range; compiled functions do not look.
        ArgumentError: for another ``mode``.

    >>> hf.ravel_multi_index(([1, 2], [1, 3]), (3, 4))
    <Tensor i64[2] cpu> [ 5 11]
    """
    stage = "ravel_multi_index"
    extents = _extents(stage, dims)
    places = [_integers(stage, row) for row in multi_index]
    modes = (mode,) * len(extents) if isinstance(mode, str) else tuple(mode)
    if len(places) != len(extents) or len(modes) != len(extents):
        raise ShapeError(stage, f"there are {len(places)} rows of positions and {len(modes)} modes for {extents}.")
    for place, extent, how in zip(places, extents, modes):
        if how not in ("raise", "wrap", "clip"):
            raise ArgumentError(stage, f"mode is {how!r}. Expected 'raise', 'wrap' or 'clip'.")
        known = place._known() if how == "raise" else None
        if known is not None and known.size and not (known.min() >= 0 and known.max() < extent):
            extremes = f"{known.min()} to {known.max()}"
            raise IndexRangeError(stage, f"a position of {extremes} is not in {extent} elements.")
    return _raveled(places, extents, modes)


@operation
def _raveled(places: list[Tensor], extents: Shape, modes: tuple[str, ...]) -> Tensor:
    result: Any = filled(0, default_int, (), "ravel_multi_index")
    for place, extent, how in zip(places, extents, modes):
        if how == "wrap":
            place = remainder(place, extent)
        elif how == "clip":
            place = clip(place, 0, extent - 1)
        result = add(multiply(result, extent), place)
    return result
