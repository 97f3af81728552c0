"""Manipulation of shapes: the values stay, their places change.  Errors are ShapeError unless another is named."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.dtypes import is_complex
from hybridflow.compiler.ir.extents import Dim, Extent, equal
from hybridflow.compiler.ir.types import Shape, broadcast_shapes as _broadcast_shapes, is_one, product
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.string_tensor import makers
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike, ShapeLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import (
    as_tensor,
    broadcast_all,
    common_dtype,
    exclusive,
    expand,
    fresh,
    reshape_to,
    to_shape,
)
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ShapeError, entered


@operation
def reshape(x: ArrayLike, /, shape: ShapeLike, *, copy: bool | None = None) -> Tensor:
    """Reshape: ``x`` with another shape of the same size, in row-major order; one extent may be -1, which is worked
    out.

    ``copy`` changes nothing: no tensor sees what is assigned to another one.

    Args:
        x: a tensor, array, nested list or number.
        shape: the shape of the result; one extent may be -1, which the others decide.
        copy: has no effect: tensors share nothing that can be seen.

    Returns:
        A tensor with the elements of ``x`` in their order.

    Raises:
        ShapeError: for a shape of another number of elements.

    >>> hf.reshape([1, 2, 3, 4], (2, -1))
    <Tensor i64[2,2] cpu>
    [[1 2]
     [3 4]]
    """
    x = as_tensor(x, "reshape")
    if isinstance(shape, np.ndarray) or type(shape) is Tensor:
        shape = np.asarray(shape).tolist()
    is_several = isinstance(shape, (tuple, list)) or (isinstance(shape, Tensor) and shape.ndim == 1)
    extents: tuple[Any, ...] = tuple(shape) if is_several else (shape,)  # type: ignore[arg-type]
    extents = tuple([extent._to_extent() if isinstance(extent, Tensor) else extent for extent in extents])
    if x._is_shapeless:
        x = x._of_shape(extents)
    unknown = [k for k, extent in enumerate(extents) if not isinstance(extent, Dim) and extent == -1]
    if len(unknown) > 1:
        raise ShapeError("reshape", f"only one extent of {extents} may be -1.")
    if unknown:
        rest = to_shape(extents[: unknown[0]] + extents[unknown[0] + 1 :], "reshape")
        wanted = (*rest[: unknown[0]], _missing_extent(x, rest, extents), *rest[unknown[0] :])
    else:
        wanted = to_shape(extents, "reshape")
    if product(x.shape) != product(wanted):
        raise ShapeError(
            "reshape",
            f"{x.type} does not have as many elements as the shape {_text(wanted)}. Give as many, or -1 "
            "for the one extent that follows from the others.",
        )
    size, used = product(x.shape), product(wanted)
    if isinstance(used, Dim) and equal(used, size) is None:  # by a condition on calls, which passes do not know
        cut: Tensor = apply(TABLE["slice"], reshape_to(x, (size,)), start=(0,), stop=(used,), step=(1,))
        return reshape_to(cut, wanted)
    return fresh(reshape_to(x, wanted), x)


def _text(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"


def _missing_extent(x: Tensor, rest: Shape, extents: tuple[Any, ...]) -> Extent:
    """The extent that makes ``rest`` hold the size of ``x``."""
    size, known = product(x.shape), product(rest)
    if known == 0:
        raise ShapeError("reshape", f"-1 in {extents} is not determined: the other extents hold no elements.")
    whole = size // known
    if whole * known == size:
        return whole
    raise ShapeError("reshape", f"{x.type} cannot take the shape {extents}: {size} is not a multiple of {known}.")


@operation
def permute_dims(x: ArrayLike, /, axes: Sequence[int] | None = None) -> Tensor:
    """Permute axes.

    ``x`` with its axes in another order: output axis k is input axis ``axes[k]``.  None reverses them.

    Args:
        x: a tensor, array, nested list or number.
        axes: for each axis of the result the one of ``x``.

    Returns:
        A tensor with the elements of ``x``.

    Raises:
        ShapeError: where ``axes`` are not those of ``x``, each once.

    >>> hf.permute_dims(hf.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = as_tensor(x, "permute_dims")
    if axes is None:
        axes = range(x.ndim)[::-1]
    elif isinstance(axes, Tensor):
        axes = axes.numpy().tolist()
    perm = tuple(type_rules.axis("permute_dims", x.type, a) for a in axes)
    if sorted(perm) != list(range(x.ndim)):
        raise ShapeError("permute_dims", f"{tuple(axes)} is no permutation of the {x.ndim} axes of {x.type}.")
    return _transpose(x, perm)


def _transpose(x: Tensor, perm: tuple[int, ...]) -> Tensor:
    return exclusive(x) if perm == tuple(range(x.ndim)) else apply(TABLE["transpose"], x, perm=perm)


@operation
def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """Matrix transpose: ``x`` with its last two axes swapped.

    Args:
        x: a tensor of two axes or more.

    Returns:
        A tensor with the elements of ``x``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.matrix_transpose(hf.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    x = as_tensor(x, "matrix_transpose")
    if x.ndim < 2:
        raise ShapeError("matrix_transpose", f"{x.type} is not a matrix or a stack of matrices.")
    return _transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@operation
def transpose_2d(x: ArrayLike) -> Tensor:
    """``x.T``."""
    x = as_tensor(x, "T")
    if x.ndim != 2:
        raise ShapeError("T", f"{x.type} is not a matrix. Use x.mT for stacks of matrices, hf.permute_dims otherwise.")
    return _transpose(x, (1, 0))


@operation
def moveaxis(x: ArrayLike, source: object, destination: object, /) -> Tensor:
    """Move axes: ``x`` with the ``source`` axes at the ``destination`` places; the other axes keep their order.

    Args:
        x: a tensor, array, nested list or number.
        source: an axis or several.
        destination: their places in the result.

    Returns:
        A tensor with the elements of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.moveaxis(hf.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor(x, "moveaxis")
    listed = [v if isinstance(v, (tuple, list)) else (v,) for v in (source, destination)]
    origin, target = ([type_rules.axis("moveaxis", x.type, a) for a in v] for v in listed)
    if len(origin) != len(target) or len(set(origin)) != len(origin) or len(set(target)) != len(target):
        raise ShapeError(
            "moveaxis", f"source {listed[0]} and destination {listed[1]} must be equally many distinct axes."
        )
    perm = [a for a in range(x.ndim) if a not in origin]
    for place, axis in sorted(zip(target, origin)):
        perm.insert(place, axis)
    return _transpose(x, tuple(perm))


@operation
def expand_dims(x: ArrayLike, /, axis: AxisLike = 0) -> Tensor:
    """Insert axes: ``x`` with axes of extent 1 inserted, so that they stand at ``axis`` (an int or several) of the
    result.

    Args:
        x: a tensor, array, nested list or number.
        axis: where the new axes are in the result.

    Returns:
        A tensor with the elements of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.expand_dims(hf.ones((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    x = as_tensor(x, "expand_dims")
    places = axis if isinstance(axis, (tuple, list)) else (axis,)
    result = x.type.with_shape((1,) * (x.ndim + len(places)))
    try:
        inserted = type_rules.axes("expand_dims", result, tuple(places))
    except ShapeError as error:
        if "out of range" not in str(error):
            raise
        message = f"axis {axis} is out of range: the result of {x.type} has {result.ndim} axes."
        raise type(error)("expand_dims", message) from None
    rest = iter(x.shape)
    return fresh(reshape_to(x, tuple(1 if k in inserted else next(rest) for k in range(result.ndim))), x)


@operation
def squeeze(x: ArrayLike, /, axis: AxisLike = None) -> Tensor:
    """Squeeze: ``x`` without the axes ``axis`` of extent 1; None removes all that are known to be 1.

    Args:
        x: a tensor, array, nested list or number.
        axis: the axes to remove, each of extent 1.

    Returns:
        A tensor with the elements of ``x``.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: where an axis has another extent than 1.

    >>> hf.squeeze(hf.ones((1, 3, 1))).shape
    (3,)
    """
    x = as_tensor(x, "squeeze")
    if axis is None:
        axes = tuple(k for k, extent in enumerate(x.shape) if is_one(extent))
    else:
        axes = type_rules.axes("squeeze", x.type, axis)
    for k in axes:
        if not is_one(x.shape[k]):
            raise ShapeError("squeeze", f"axis {k} of {x.type} has extent {x.shape[k]}; only axes of extent 1 can go.")
    return fresh(reshape_to(x, tuple(n for k, n in enumerate(x.shape) if k not in axes)), x)


@operation
def broadcast_to(x: ArrayLike, /, shape: ShapeLike) -> Tensor:
    """Broadcast to a shape: ``x`` repeated along axes of extent 1 and new leading axes to ``shape``.

    Args:
        x: a tensor, array, nested list or number.
        shape: the shape of the result.

    Returns:
        A tensor of ``shape`` in the dtype of ``x``.

    Raises:
        ShapeError: where ``x`` does not broadcast to it.

    >>> hf.broadcast_to([1, 2], (3, 2))
    <Tensor i64[3,2] cpu>
    [[1 2]
     [1 2]
     [1 2]]
    """
    x = as_tensor(x, "broadcast_to")
    wanted = to_shape(shape, "broadcast_to")
    try:
        fits = _broadcast_shapes(x.shape, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError("broadcast_to", f"{x.type} does not broadcast to the shape {_text(wanted)}.")
    return fresh(expand(x, wanted), x)


@entered
def broadcast_shapes(*shapes: object) -> Shape:
    """The shape to which arrays of these shapes broadcast.  Raises ShapeError where they do not.

    Args:
        *shapes: shapes as tuples.

    Returns:
        The common shape, a tuple.

    >>> hf.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    result: Shape = ()
    for one in shapes:
        shape = to_shape(one, "broadcast_shapes")
        try:
            result = _broadcast_shapes(result, shape)
        except ValueError:
            raise ShapeError(
                "broadcast_shapes",
                f"the shapes {', '.join(map(str, shapes))} do not broadcast: extents must be equal or 1.",
            ) from None
    return result


@operation
def broadcast_arrays(*arrays: object) -> tuple[Tensor, ...]:
    """Broadcast: ``arrays`` broadcast to one shape.

    Args:
        *arrays: tensors whose shapes broadcast.

    Returns:
        Tensors of one shape, each in its dtype.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> [x.shape for x in hf.broadcast_arrays(hf.ones((3, 1)), hf.ones(4))]
    [(3, 4), (3, 4)]
    """
    if not arrays:
        return ()
    tensors = [as_tensor(a, "broadcast_arrays") for a in arrays]
    return tuple([fresh(out, x) for out, x in zip(broadcast_all("broadcast_arrays", tensors), tensors)])


@operation
def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Tensor:
    """Concatenate ``arrays`` along ``axis``, promoted to one dtype; with None they are flattened first.

    Raises ShapeError if the shapes do not match and AxisError for an axis out of range.

    Args:
        arrays: tensors that differ in the extent of ``axis`` alone.
        axis: the axis that grows, or None.

    Returns:
        A tensor in the promoted dtype.

    >>> hf.concat([[1, 2], [3]])
    <Tensor i64[3] cpu> [1 2 3]
    """
    tensors = common_dtype("concat", [as_tensor(a, "concat") for a in _several("concat", arrays)])
    if axis is None:
        tensors, axis = [reshape(t, (-1,)) if t.size else reshape(t, (0,)) for t in tensors], 0
    if not tensors[0].shape:
        raise ShapeError("concat", "scalars cannot be concatenated; use hf.stack.")
    axis = type_rules.axis("concat", tensors[0].type, axis)
    for t in tensors[1:]:
        if t.ndim != tensors[0].ndim or builtins.any(
            k != axis and n != m for k, (n, m) in enumerate(zip(tensors[0].shape, t.shape))
        ):
            raise ShapeError(
                "concat",
                f"{tensors[0].type} and {t.type} may differ along axis {axis} only. Reshape or slice one of them.",
            )
    return exclusive(tensors[0]) if len(tensors) == 1 else apply(TABLE["concat"], *tensors, axis=axis)


def _several(stage: str, arrays: Iterable[ArrayLike]) -> list[Any]:
    result = list(arrays)
    if not result:
        raise ArgumentError(stage, "at least one array is needed.")
    return result


@operation
def stack(arrays: Sequence[Any], /, axis: int = 0) -> Tensor:
    """Stack: ``arrays`` of one shape, promoted to one dtype, along a new axis at ``axis``.

    Raises ShapeError if the shapes do not match and AxisError for an axis out of range.

    Args:
        arrays: tensors of one shape.
        axis: where the new axis is in the result.

    Returns:
        A tensor with one axis more, in the promoted dtype.

    >>> hf.stack([[1, 2], [3, 4]], axis=1)
    <Tensor i64[2,2] cpu>
    [[1 3]
     [2 4]]
    """
    tensors = common_dtype("stack", _several("stack", arrays))
    for t in tensors[1:]:
        if t.shape != tensors[0].shape:
            raise ShapeError("stack", f"shapes differ: {tensors[0].type} and {t.type}.")
    result = tensors[0].type.with_shape((len(tensors), *tensors[0].shape))
    axis = type_rules.axis("stack", result, axis)
    if all(getattr(t, "row_of", None) is None for t in tensors):
        return concat([expand_dims(t, axis) for t in tensors], axis)
    pieces = [moveaxis(piece, 0, axis) for piece in _pieces(tensors)]
    return concat(pieces, axis) if len(pieces) > 1 else fresh(pieces[0], pieces[0])


makers["stack"] = stack


def _pieces(tensors: Sequence[Tensor]) -> list[Tensor]:
    """What has ``tensors`` as its rows, one after another: rows that follow each other in a stack are a slice of it."""
    pieces: list[Tensor] = []
    k = 0
    while k < len(tensors):
        stack, first = getattr(tensors[k], "row_of", None) or (None, 0)
        end = k + 1
        while stack is not None and end < len(tensors) and _is_row(tensors[end], stack, first + end - k):
            end += 1
        pieces.append(expand_dims(tensors[k], 0) if stack is None else slice_axis(stack, 0, first, first + end - k))
        k = end
    return pieces


def _is_row(x: ArrayLike, stack: Tensor, number: int) -> bool:
    row_of = getattr(x, "row_of", None)
    return row_of is not None and row_of[0] is stack and row_of[1] == number


@operation
def unstack(x: ArrayLike, /, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of ``x`` along ``axis``, without that axis.

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis; negative ones count from the end.

    Returns:
        As many tensors as ``axis`` has elements, each with one axis less.

    Raises:
        AxisError: for an axis out of range.

    >>> [x.tolist() for x in hf.unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    x = as_tensor(x, "unstack")
    axis = type_rules.axis("unstack", x.type, axis)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    return tuple(reshape_to(slice_axis(x, axis, i, i + 1), rest) for i in range(known_extent(x, axis, "unstack")))


def known_extent(x: Tensor, axis: int, stage: str) -> int:
    """The extent of ``axis`` as an int: where it is symbolic, the trace is for this one from now on."""
    return type_rules.integer(stage, f"axis {axis}", x.shape[axis])


def slice_axis(x: Tensor, axis: int, start: Extent, stop: Extent, step: int = 1) -> Tensor:
    """``x[start:stop:step]`` along one axis, with 0 <= start <= stop and step >= 1."""
    if step == 1 and equal(start, 0) and equal(stop, x.shape[axis]):
        return x
    starts = tuple(start if k == axis else 0 for k in range(x.ndim))
    stops = tuple(stop if k == axis else n for k, n in enumerate(x.shape))
    steps = tuple(step if k == axis else 1 for k in range(x.ndim))
    return apply(TABLE["slice"], x, start=starts, stop=stops, step=steps)


@operation
def split(x: ArrayLike, num_or_sizes: object, axis: int = 0) -> list[Tensor]:
    """Split ``x`` along ``axis``: into a number of equal parts, or into parts of given sizes (one may be -1).

    Args:
        x: a tensor, array, nested list or number.
        num_or_sizes: how many equal parts, or the extent of each.
        axis: an axis; negative ones count from the end.

    Returns:
        A list of tensors.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: where the parts do not make up the axis.

    >>> [x.tolist() for x in hf.split([1, 2, 3, 4], 2)]
    [[1, 2], [3, 4]]
    """
    x = as_tensor(x, "split")
    axis = type_rules.axis("split", x.type, axis)
    extent = x.shape[axis]
    if isinstance(num_or_sizes, (tuple, list)):
        sizes = [type_rules.whole("split", "a size", n) for n in num_or_sizes]
        open = [k for k, n in enumerate(sizes) if equal(n, -1)]
        if len(open) == 1:
            sizes[open[0]] = extent - (builtins.sum(sizes) + 1)
        if builtins.any(n < 0 for n in sizes) or builtins.sum(sizes) != extent:
            raise ShapeError("split", f"the sizes {list(num_or_sizes)} do not add up to axis {axis} of {x.type}.")
    else:
        parts = type_rules.integer("split", "the number of parts", num_or_sizes)
        if parts < 1 or extent // parts * parts != extent:
            raise ShapeError(
                "split", f"axis {axis} of {x.type} cannot be cut into {parts} equal parts; give the sizes."
            )
        sizes = [extent // parts] * parts
    out, start = [], 0
    for n in sizes:
        out.append(fresh(slice_axis(x, axis, start, start + n), x))
        start += n
    return out


@operation
def flip(x: ArrayLike, /, axis: AxisLike = None) -> Tensor:
    """Reverse the order of elements.

    ``x`` in reverse order along ``axis`` (None: all, an int or several).

    Args:
        x: a tensor, array, nested list or number.
        axis: an axis, a tuple of axes, or None for all.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.flip([[1, 2], [3, 4]], axis=1)
    <Tensor i64[2,2] cpu>
    [[2 1]
     [4 3]]
    """
    x = as_tensor(x, "flip")
    axes = type_rules.axes("flip", x.type, axis)
    return apply(TABLE["reverse"], x, axes=axes) if axes else exclusive(x)


@operation
def rot90(x: ArrayLike, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Rotation by quarter turns in the plane of two axes, from the first one towards the second.

    Args:
        x: a tensor, array, nested list or number.
        k: how many quarter turns; negative ones go the other way.
        axes: the two axes.

    Returns:
        A tensor in the dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.
        ArgumentError: where there are not two axes.

    >>> hf.rot90([[1, 2], [3, 4]])
    <Tensor i64[2,2] cpu>
    [[2 4]
     [1 3]]
    """
    x = as_tensor(x, "rot90")
    first, second, *more = (type_rules.axis("rot90", x.type, axis) for axis in (*axes, *(0,) * (2 - len(axes))))
    if first == second or more or len(axes) != 2:
        raise ArgumentError("rot90", f"axes are {tuple(axes)}. Expected two of them.")
    quarter_turns = type_rules.integer("rot90", "k", k) % 4
    if quarter_turns == 0:
        return exclusive(x)
    if quarter_turns == 2:
        return flip(x, (first, second))
    order = [second if axis == first else first if axis == second else axis for axis in range(x.ndim)]
    return (
        _transpose(flip(x, second), tuple(order)) if quarter_turns == 1 else flip(_transpose(x, tuple(order)), second)
    )


@operation
def roll(x: Any, /, shift: object, axis: Any = None) -> Tensor:
    """Roll: ``x`` shifted cyclically by ``shift`` places along ``axis``; None rolls the flattened tensor.

    Args:
        x: a tensor, array, nested list or number.
        shift: by how many places, to higher positions; one number or one for each axis.
        axis: an axis, several, or None for the flattened tensor.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.

    >>> hf.roll([1, 2, 3], 1)
    <Tensor i64[3] cpu> [3 1 2]
    """
    x = as_tensor(x, "roll")
    if axis is None:
        if isinstance(shift, (tuple, list)):
            raise ArgumentError("roll", "several shifts need as many axes.")
        return reshape_to(roll(reshape_to(x, (product(x.shape),)), shift, 0), x.shape)
    original = x
    shifts, axes = (v if isinstance(v, (tuple, list)) else (v,) for v in (shift, axis))
    if len(shifts) == 1:
        shifts = tuple(shifts) * len(axes)
    if len(shifts) != len(axes):
        raise ArgumentError("roll", f"{len(shifts)} shifts for {len(axes)} axes.")
    for by, a in zip(shifts, axes):
        k = type_rules.axis("roll", x.type, a)
        extent = x.shape[k]
        cut = _turned(type_rules.whole("roll", "shift", by) * -1, extent) if extent != 0 else 0
        if cut != 0:
            x = apply(TABLE["concat"], slice_axis(x, k, cut, extent), slice_axis(x, k, 0, cut), axis=k)
    return fresh(x, original)


def _turned(position: Extent, extent: Extent) -> Extent:
    """``position % extent``, as simple as it can be said."""
    for low in (0, extent * -1):
        if low <= position < low + extent:
            return position - low
    return position % int(extent)


@operation
def tile(x: ArrayLike, repetitions: object, /) -> Tensor:
    """Tile: ``x`` repeated ``repetitions[k]`` times along axis k; missing leading axes are added.

    Args:
        x: a tensor, array, nested list or number.
        repetitions: how many times along each axis.

    Returns:
        A tensor in the dtype of ``x``.

    >>> hf.tile([1, 2], 2)
    <Tensor i64[4] cpu> [1 2 1 2]
    """
    x = as_tensor(x, "tile")
    counts = to_shape(repetitions, "tile")
    ndim = builtins.max(x.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    x = reshape_to(x, (1,) * (ndim - x.ndim) + x.shape)
    extents = x.shape
    interleaved = tuple(v for pair in zip(counts, extents) for v in pair)
    spread = apply(TABLE["broadcast"], x, shape=interleaved, axes=tuple(range(1, 2 * ndim, 2)))
    return reshape_to(spread, tuple(c * n if c != 1 else n for c, n in zip(counts, extents)))


def _padded(x: Tensor, low: Sequence[Any], high: Sequence[Any], value: ArrayLike) -> Tensor:
    return apply(TABLE["pad"], x, low=low, high=high, interior=(0,) * x.ndim, value=value)


@operation
def pad(x: ArrayLike, paddings: object, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    """Pad: ``x`` with ``paddings[k] = (before, after)`` elements more along axis k.

    A number, or one pair, is for all axes, as NumPy's ``pad_width``.
    ``mode`` is "constant" (``constant_values``), "reflect" (mirrored without the edge), "symmetric" (mirrored with the
    edge) or "edge" (the edge repeated).  Raises ArgumentError for another mode.

    Args:
        x: a tensor, array, nested list or number.
        paddings: a number, a pair, or a pair for each axis.
        mode: "constant", "reflect", "symmetric" or "edge".
        constant_values: what "constant" puts there.

    Returns:
        A tensor in the dtype of ``x``.

    Raises:
        ShapeError: where ``paddings`` do not fit ``x``.

    >>> hf.pad([1, 2], [(1, 2)])
    <Tensor i64[5] cpu> [0 1 2 0 0]
    """
    x = as_tensor(x, "pad")
    pairs = _padding_pairs(paddings, x)
    if mode == "constant":
        low, high = zip(*pairs) if pairs else ((), ())
        if is_complex(x.dtype) and isinstance(constant_values, (complex, np.complexfloating)):
            fills = {"real": constant_values.real, "imag": constant_values.imag}
            parts = [_padded(apply(TABLE[part], x), low, high, fill) for part, fill in fills.items()]
            return apply(TABLE["complex"], *parts)
        return _padded(x, low, high, constant_values)
    if mode not in ("reflect", "symmetric", "edge"):
        raise ArgumentError("pad", f"mode is {mode!r}; it must be 'constant', 'reflect', 'symmetric' or 'edge'.")
    original = x
    for k, (before, after) in enumerate(pairs):
        x = _pad_mirrored(x, k, int(before), int(after), mode)
    return fresh(x, original)


def _padding_pairs(paddings: object, x: Tensor) -> list[Shape]:
    """(before, after) for each axis, of a number, one pair, or a pair for each axis."""
    listed = paddings.tolist() if hasattr(paddings, "tolist") else paddings
    if not hasattr(listed, "__iter__"):
        listed = (listed, listed)
    listed = list(listed)
    if len(listed) == 2 and not builtins.any(hasattr(pair, "__iter__") for pair in listed):
        listed = [listed]
    pairs = [to_shape(pair, "pad") for pair in listed]
    if len(pairs) == 1:
        pairs *= x.ndim
    if len(pairs) != x.ndim or builtins.any(len(pair) != 2 for pair in pairs):
        raise ShapeError("pad", f"paddings {paddings} are not one (before, after) for each axis of {x.type}.")
    return pairs


def _pad_mirrored(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    extent = x.shape[axis]
    limit = extent - (mode == "reflect")
    if mode == "edge":
        limit = builtins.max(before, after) if extent != 0 else 0
    if builtins.max(before, after) > limit:
        raise ShapeError(
            "pad", f"({before}, {after}) is more than {limit} along axis {axis} of {x.type} in mode {mode!r}."
        )
    parts = [x]
    if mode == "edge":
        first, last = slice_axis(x, axis, 0, 1), slice_axis(x, axis, extent - 1, extent)
        widths = ((before, first), (after, last))
        ends = [expand(end, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n, end in widths]
        parts = [ends[0], x, ends[1]]
    else:
        skip = int(mode == "reflect")
        if before:
            parts.insert(0, flip(slice_axis(x, axis, skip, skip + before), axis))
        if after:
            parts.append(flip(slice_axis(x, axis, extent - skip - after, extent - skip), axis))
    return apply(TABLE["concat"], *parts, axis=axis) if len(parts) > 1 else x
