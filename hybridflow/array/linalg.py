"""Products over shared axes.  Operands are promoted to one dtype; errors are ShapeError and DTypeError."""

from __future__ import annotations

__traits__ = ("makes tensors",)

import math
from collections.abc import Hashable, Sequence

from hybridflow.array.elementwise import conj, equal, multiply, subtract, where
from hybridflow.array.reductions import sum
from hybridflow.array.shapes import expand_dims, pad, permute_dims, slice_axis
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.dtypes import DType
from hybridflow.compiler.ir.types import Extent, broadcast_shapes, is_one, product
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.promotion import default_int, to_dtype
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, DTypeLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, broadcast_all, cast, common_dtype, expand, reshape_to
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError


def _operands(stage: str, *values: ArrayLike) -> list[Tensor]:
    tensors = common_dtype(stage, values)
    if dtypes.is_stored(tensors[0].dtype):
        tensors = [cast(t, _stored_sum_dtype(t.dtype)) for t in tensors]
    if dtypes.is_bool(tensors[0].dtype):
        raise DTypeError(stage, f"{tensors[0].type} is bool; convert it to a number with hf.astype first.")
    return tensors


def _stored_sum_dtype(dtype: DType) -> DType:
    """In which products of stored numbers are summed."""
    return dtypes.float32 if dtypes.is_float(dtypes.wide_dtype(dtype)) else dtypes.int32


def _factors(stage: str, x1: ArrayLike, x2: ArrayLike, sum_dtype: object) -> tuple[Tensor, Tensor, DType]:
    """The operands of a product, and the dtype of its sums.  Stored numbers are read as they are: the conversion is a
    part of the product."""
    x, y = common_dtype(stage, (x1, x2))
    if not dtypes.is_stored(x.dtype):
        x, y = _operands(stage, x, y)
        return x, y, x.dtype if sum_dtype is None else to_dtype(sum_dtype, stage)
    wanted = _stored_sum_dtype(x.dtype) if sum_dtype is None else to_dtype(sum_dtype, stage)
    wide = dtypes.wide_dtype(x.dtype)
    wide = dtypes.int8 if dtypes.is_unsigned(wide) and dtypes.is_signed(wanted) else wide  # which holds four bits
    return cast(x, wide), cast(y, wide), wanted


@operation
def matmul(x1: ArrayLike, x2: ArrayLike, /, sum_dtype: object = None, precision: str | None = None) -> Tensor:
    """Matrix product over the last axis of ``x1`` and the second to last of ``x2``; leading axes broadcast.

    A one-dimensional operand is a row on the left and a column on the right; the result lacks that axis.
    ``sum_dtype`` is the dtype of the accumulator and of the result. It must hold all values of the operands' dtype:
    int32 for exact products of int8, float32 for bfloat16 without a last rounding. Floats of 8 bits are accumulated in
    float32, integers of 4 bits in int32.

    With the ``precision`` "high" a GPU may round float32 elements to TF32, which has 10 bits of mantissa. It may then
    use its tensor cores, also for gradients; its bits differ from a CPU's. "highest" is the default.

    Raises ShapeError if the shapes do not match, and ArgumentError for another precision.

    Args:
        x1: a tensor of one axis or more.
        x2: a tensor of one axis or more.
        sum_dtype: the dtype of sums and result.
        precision: "high" or "highest".

    Returns:
        A tensor of shape ``(..., rows of x1, columns of x2)``.

    >>> hf.matmul([[1, 2], [3, 4]], [[1, 0], [0, 10]])
    <Tensor i64[2,2] cpu>
    [[ 1 20]
     [ 3 40]]
    """
    x, y, wanted = _factors("matmul", x1, x2, sum_dtype)
    if not x.ndim or not y.ndim:
        raise ShapeError("matmul", f"scalars have no matrix product: x is {x.type}, y is {y.type}. Use x * y.")
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if x.shape[-1] != inner:
        raise ShapeError(
            "matmul",
            f"inner sizes differ: x is {x.type}, y is {y.type}; "
            f"x.shape[-1] must equal y.shape[{-2 if y.ndim > 1 else -1}].{_matmul_hint(x, y)}",
        )
    row, column = x.ndim == 1, y.ndim == 1
    x = expand_dims(x, 0) if row else x
    y = expand_dims(y, 1) if column else y
    if precision not in (None, "high", "highest"):
        raise ArgumentError("matmul", f"precision is {precision!r}. Expected 'high' or 'highest'.")
    out = _matmul(x, y, wanted, precision or "highest")
    if row or column:
        shape = out.shape[:-2] + (() if row else out.shape[-2:-1]) + (() if column else out.shape[-1:])
        out = reshape_to(out, shape)
    return out


def _matmul_hint(x: Tensor, y: Tensor) -> str:
    if x.ndim == y.ndim == 2:
        if x.shape[1] == y.shape[1]:
            return " Did you mean x @ y.T?"
        if x.shape[0] == y.shape[0]:
            return " Did you mean x.T @ y?"
    return ""


def _matmul(x: Tensor, y: Tensor, dtype: DType, precision: str) -> Tensor:
    """The product of stacks of matrices whose inner sizes fit, with sums in ``dtype``."""
    more = {} if precision == "highest" else {"precision": precision}
    if x.ndim > 2 and y.ndim == 2:
        # One large product: every row meets the same matrix.
        rows = reshape_to(x, (math.prod(x.shape[:-1]), x.shape[-1]))
        return reshape_to(apply(TABLE["matmul"], rows, y, sum_dtype=dtype, **more), (*x.shape[:-1], y.shape[-1]))
    try:
        batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ShapeError("matmul", f"leading axes do not broadcast: x is {x.type}, y is {y.type}.") from None
    x, y = expand(x, (*batch, *x.shape[-2:])), expand(y, (*batch, *y.shape[-2:]))
    return apply(TABLE["matmul"], x, y, sum_dtype=dtype, **more)


@operation
def vecdot(x1: ArrayLike, x2: ArrayLike, /, axis: int = -1, sum_dtype: object = None) -> Tensor:
    """Vector dot product: the sum of products along ``axis``; the other axes broadcast.  Of complex numbers
    those of ``x1`` are conjugated.

    ``sum_dtype`` is that of products, sums and result (the operands' by default): it must hold all of their values, as
    int32 does those of int8.  Sums of float16 and bfloat16 are formed in float32 and rounded once.

    Raises ShapeError if the shapes do not match and AxisError for an axis out of range.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; the shapes broadcast, the dtypes are promoted.
        axis: an axis; negative ones count from the end.
        sum_dtype: the dtype of sums and result.

    Returns:
        A tensor of the common shape without ``axis``.

    >>> hf.vecdot([[1, 2], [3, 4]], [10, 1])
    <Tensor i64[2] cpu> [12 34]
    """
    x, y, wanted = _factors("vecdot", x1, x2, sum_dtype)
    if not x.ndim or not y.ndim:
        raise ShapeError("vecdot", f"scalars have no axis to sum over: {x.type}, {y.type}.")
    counted = axis if axis < 0 else axis - max(x.ndim, y.ndim)
    for t in (x, y):
        type_rules.axis("vecdot", t.type, counted)
    if x.shape[counted] != y.shape[counted]:
        raise ShapeError("vecdot", f"axis {axis} differs: {x.type} and {y.type}.")
    x, y = broadcast_all("vecdot", (conj(x) if dtypes.is_complex(x.dtype) else x, y))
    return apply(TABLE["vecdot"], x, y, axes=(x.ndim + counted,), sum_dtype=wanted)


@operation
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """All products of the elements of two vectors: ``out[i, j] = x1[i] * x2[j]``.

    Args:
        x1: a tensor of one axis.
        x2: a tensor of one axis.

    Returns:
        A tensor of shape ``(x1.size, x2.size)``.

    Raises:
        ShapeError: for what has other than one axis.

    >>> hf.outer([1, 2], [10, 20])
    <Tensor i64[2,2] cpu>
    [[10 20]
     [20 40]]
    """
    x, y = _operands("outer", x1, x2)
    for t in (x, y):
        if t.ndim != 1:
            raise ShapeError("outer", f"{t.type} is not one-dimensional.")
    return multiply(expand_dims(x, 1), expand_dims(y, 0))


@operation
def kron(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Kronecker product: ``x2`` times each element of ``x1``, in its place.

    Args:
        x1: a tensor, array, nested list or number.
        x2: another one; axes of one element are put in front of the one with fewer axes.

    Returns:
        A tensor in the common dtype whose extents are the products of those of ``x1`` and ``x2``.

    >>> hf.kron([1, 10], [[1, 2]])
    <Tensor i64[1,4] cpu>
    [[ 1  2 10 20]]
    """
    x, y = _operands("kron", x1, x2)
    ndim = max(x.ndim, y.ndim)
    m, n = ((*(1 for _ in range(ndim - t.ndim)), *t.shape) for t in (x, y))
    blocks = multiply(
        reshape_to(x, tuple(k for extent in m for k in (extent, 1))),
        reshape_to(y, tuple(k for extent in n for k in (1, extent))),
    )
    return reshape_to(blocks, tuple(a * b for a, b in zip(m, n)))


@operation
def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: object = 2) -> Tensor:
    """The sum of products over ``axes``: that many last axes of ``x1`` with first ones of ``x2``, or two lists of axes.

    The other axes of ``x1``, then those of ``x2``, stay.

    Args:
        x1: the first operand: a tensor, array, nested list or number.
        x2: the second operand; dtypes are promoted.
        axes: how many axes, or two lists of axes.

    Returns:
        A tensor with the axes that stay.

    Raises:
        ShapeError: if the shapes do not match.

    >>> hf.tensordot([[1, 2], [3, 4]], [10, 1], axes=1)
    <Tensor i64[2] cpu> [12 34]
    """
    x, y = _operands("tensordot", x1, x2)
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ArgumentError("tensordot", f"axes is {axes!r}; it must be a number or two lists of axes.")
        listed = [a if isinstance(a, (tuple, list)) else (a,) for a in axes]
    else:
        count = type_rules.integer("tensordot", "axes", axes)
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise ShapeError("tensordot", f"{count} axes cannot be summed over {x.type} and {y.type}.")
        listed = [tuple(range(x.ndim - count, x.ndim)), tuple(range(count))]
    left = [type_rules.axis("tensordot", x.type, a) for a in listed[0]]
    right = [type_rules.axis("tensordot", y.type, a) for a in listed[1]]
    if len(left) != len(right) or len(set(left)) != len(left) or len(set(right)) != len(right):
        raise ShapeError("tensordot", f"axes {listed[0]} and {listed[1]} must be equally many distinct axes.")
    if any(x.shape[a] != y.shape[b] for a, b in zip(left, right)):
        raise ShapeError("tensordot", f"axes {left} of {x.type} and {right} of {y.type} have different extents.")
    x_labels: list[Hashable] = [("x", k) for k in range(x.ndim)]
    y_labels: list[Hashable] = [("y", k) for k in range(y.ndim)]
    for a, b in zip(left, right):
        y_labels[b] = x_labels[a]
    out_labels = [v for v in x_labels if v not in y_labels] + [v for v in y_labels if v not in x_labels]
    return _contract_pair(x, x_labels, y, y_labels, out_labels, "tensordot")


@operation
def diagonal(x: ArrayLike, /, offset: int = 0) -> Tensor:
    """The ``offset``-th diagonal of the last two axes, as the last axis.

    Args:
        x: a tensor of two axes or more.
        offset: which diagonal; above the main one for positive numbers.

    Returns:
        A tensor with one axis less, in the dtype of ``x``.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.diagonal([[1, 2], [3, 4]])
    <Tensor i64[2] cpu> [1 4]
    """
    x = as_tensor(x, "diagonal")
    if x.ndim < 2:
        raise ShapeError("diagonal", f"{x.type} is not a matrix or a stack of matrices.")
    rows, columns = x.shape[-2:]
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    start = max(offset, 0) - min(offset, 0) * columns if count else 0
    flat = reshape_to(x, (*x.shape[:-2], rows * columns))
    stop = start + (count - 1) * (columns + 1) + 1 if count else 0
    return slice_axis(flat, flat.ndim - 1, start, stop, columns + 1 if count > 1 else 1)


@operation
def diag(x: ArrayLike, /, k: int = 0) -> Tensor:
    """Diagonal of a matrix, or the matrix that has a vector as its diagonal and is 0 elsewhere.

    Args:
        x: a vector or a matrix.
        k: which diagonal: 0 for the main one, above it for positive numbers, below it for negative ones.

    Returns:
        A vector of a matrix, a square matrix of a vector, in the dtype of ``x``.

    Raises:
        ShapeError: for other numbers of axes.

    >>> hf.diag([1, 2])
    <Tensor i64[2,2] cpu>
    [[1 0]
     [0 2]]
    >>> hf.diag([[1, 2], [3, 4]], 1)
    <Tensor i64[1] cpu> [2]
    """
    x = as_tensor(x, "diag")
    offset = type_rules.integer("diag", "k", k)
    if x.ndim == 2:
        return diagonal(x, offset)
    if x.ndim != 1:
        raise ShapeError("diag", f"{x.type} is neither a vector nor a matrix.")
    around = abs(offset)
    width = x.shape[0] + around
    padded = pad(x, [(0, around)])
    lines = reshape_to(padded, (width, 1)) if offset >= 0 else padded
    rows, columns = (apply(TABLE["iota"], shape=(width, width), axis=axis, dtype=default_int) for axis in (0, 1))
    return where(equal(subtract(columns, rows), offset), lines, cast(as_tensor(0, "diag"), x.dtype))


@operation
def trace(x: ArrayLike, /, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of the ``offset``-th diagonal of the last two axes, in ``dtype`` where one is given.

    Args:
        x: a tensor of two axes or more.
        offset: which diagonal; above the main one for positive numbers.
        dtype: the dtype of the result.

    Returns:
        A tensor with two axes less.

    Raises:
        ShapeError: for fewer than two axes.

    >>> hf.trace([[1, 2], [3, 4]])
    <Tensor i64[] cpu> 5
    """
    return sum(diagonal(x, offset), -1, dtype)


# ---- einsum

Labels = list[Hashable]


@operation
def einsum(equation: str, *operands: ArrayLike) -> Tensor:
    """Sums of products in Einstein's notation: ``einsum("bij,bjk->bik", x, y)``.

    Labels are letters.  A label twice in one operand takes the diagonal; one that is missing from the output is summed
    over; "..." stands for axes that broadcast.  Without "->" the output has the labels that occur once, in order.
    More than two operands are contracted from left to right.  Raises ArgumentError for a malformed equation.

    Args:
        equation: labels of each operand, separated by commas, and after "->" those of the result.
        *operands: a tensor for each.

    Returns:
        A tensor with the axes of the result.

    >>> hf.einsum("ij,j->i", [[1, 2], [3, 4]], [10, 1])
    <Tensor i64[2] cpu> [12 34]
    """
    if not isinstance(equation, str):
        raise ArgumentTypeError(
            "einsum", f"the equation is a {type(equation).__name__}; write einsum('ij,jk->ik', x, y)."
        )
    tensors = _operands("einsum", *operands) if operands else []
    terms, output = _parse(equation, tensors)
    extents = _label_extents(equation, terms, tensors)
    prepared = [_prepare(t, labels, extents) for t, labels in zip(tensors, terms)]
    result, labels = prepared[0]
    for position, (t, t_labels) in enumerate(prepared[1:], 1):
        later = {v for _, rest in prepared[position + 1 :] for v in rest} | set(output)
        out_labels = [v for v in (*labels, *(v for v in t_labels if v not in labels)) if v in later]
        result, labels = _contract_pair(result, labels, t, t_labels, out_labels, "einsum"), out_labels
    result, labels = _sum_out(result, labels, set(output))
    return permute_dims(result, [labels.index(v) for v in output])


def _parse(equation: str, tensors: Sequence[Tensor]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the output; an axis under "..." is labelled by its distance from the right."""

    def malformed(why: str) -> ArgumentError:
        return ArgumentError("einsum", f"the equation {equation!r} {why}.")

    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    sources = left.split(",")
    if len(sources) != len(tensors) or not tensors:
        raise malformed(f"names {len(sources)} operands, {len(tensors)} are given")
    for part in (*sources, right):
        letters = part.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise malformed(f"has {part!r}, which is not letters and at most one '...'")
    terms: list[Labels] = []
    for source, t in zip(sources, tensors):
        before, dots, after = source.partition("...")
        spare = t.ndim - len(before) - len(after)
        if spare < 0 or (spare and not dots):
            raise malformed(f"gives {source!r} {len(before + after)} labels, but that operand is {t.type}")
        terms.append([*before, *range(spare, 0, -1), *after])
    dotted: Labels = list(range(max((v for term in terms for v in term if isinstance(v, int)), default=0), 0, -1))
    if not arrow:
        once = sorted(v for v in set(left) - set(",.") if left.count(v) == 1)
        return terms, [*dotted, *once]
    before, dots, after = right.partition("...")
    if dotted and not dots:
        raise malformed("has axes under '...' that the output lacks")
    output: Labels = [*before, *dotted, *after]
    known = {v for term in terms for v in term}
    for v in output:
        if output.count(v) > 1:
            raise malformed(f"has {v!r} twice in the output")
        if v not in known:
            raise malformed(f"has {v!r} in the output but in no operand")
    return terms, output


def _label_extents(equation: str, terms: list[Labels], tensors: Sequence[Tensor]) -> dict[Hashable, Extent]:
    extents: dict[Hashable, Extent] = {}
    for labels, t in zip(terms, tensors):
        for v, extent in zip(labels, t.shape):
            if v not in extents or is_one(extents[v]):
                extents[v] = extent
            elif extent != extents[v] and not is_one(extent):
                name = "an axis under '...'" if isinstance(v, int) else f"label {v!r}"
                types = ", ".join(str(u.type) for u in tensors)
                raise ShapeError("einsum", f"{name} of {equation!r} has extents {extents[v]} and {extent} in {types}.")
    return extents


def _prepare(t: Tensor, labels: Labels, extents: dict[Hashable, Extent]) -> tuple[Tensor, Labels]:
    """An operand with distinct labels, without the axes of extent 1 that would broadcast."""
    while len(set(labels)) < len(labels):
        repeated = next(v for v in labels if labels.count(v) > 1)
        i, j = [k for k, v in enumerate(labels) if v == repeated][:2]
        rest = [k for k in range(t.ndim) if k not in (i, j)]
        if t.shape[i] != t.shape[j]:
            raise ShapeError(
                "einsum", f"label {repeated!r} stands for extents {t.shape[i]} and {t.shape[j]} of {t.type}."
            )
        t = diagonal(permute_dims(t, [*rest, i, j]))
        labels = [*(labels[k] for k in rest), repeated]
    dropped = [k for k, v in enumerate(labels) if is_one(t.shape[k]) and not is_one(extents[v])]
    t = reshape_to(t, tuple(n for k, n in enumerate(t.shape) if k not in dropped))
    return t, [v for k, v in enumerate(labels) if k not in dropped]


def _sum_out(t: Tensor, labels: Labels, needed: set[Hashable]) -> tuple[Tensor, Labels]:
    """``t`` summed over the labels that nobody needs."""
    axes = [k for k, v in enumerate(labels) if v not in needed]
    return (sum(t, axes, t.dtype), [v for v in labels if v in needed]) if axes else (t, labels)


def _contract_pair(x: Tensor, x_labels: Labels, y: Tensor, y_labels: Labels, out_labels: Labels, stage: str) -> Tensor:
    """The product of two operands, summed over the labels outside ``kept``; its axes are ``kept``, in that order."""
    x, x_labels = _sum_out(x, x_labels, {*out_labels, *y_labels})
    y, y_labels = _sum_out(y, y_labels, {*out_labels, *x_labels})
    extent: dict[Hashable, Extent] = {**dict(zip(x_labels, x.shape)), **dict(zip(y_labels, y.shape))}
    shared = [v for v in x_labels if v in y_labels]
    summed = [v for v in shared if v not in out_labels]
    if not summed:
        return multiply(_aligned(x, x_labels, out_labels), _aligned(y, y_labels, out_labels))
    batch = [v for v in shared if v in out_labels]
    rows = [v for v in x_labels if v not in shared]
    columns = [v for v in y_labels if v not in shared]
    left = _merged(x, x_labels, (batch, rows, summed), extent, stage)
    right = _merged(y, y_labels, (batch, summed, columns), extent, stage)
    product = apply(TABLE["matmul"], left, right)
    order = [*batch, *rows, *columns]
    product = reshape_to(product, tuple(extent[v] for v in order))
    return permute_dims(product, [order.index(v) for v in out_labels])


def _aligned(t: Tensor, labels: Labels, order: Labels) -> Tensor:
    """``t`` with its axes in ``order``, and extent 1 where it lacks one."""
    t = permute_dims(t, [labels.index(v) for v in order if v in labels])
    extents = iter(t.shape)
    return reshape_to(t, tuple(next(extents) if v in labels else 1 for v in order))


def _merged(
    t: Tensor, labels: Labels, groups: tuple[Labels, Labels, Labels], extent: dict[Hashable, Extent], stage: str
) -> Tensor:
    """``t`` with the axes of the batch group first, and one axis for each of the other two groups."""
    batch, *pair = groups
    t = permute_dims(t, [labels.index(v) for group in groups for v in group])
    return reshape_to(t, (*(extent[v] for v in batch), *(product(tuple(extent[v] for v in g)) for g in pair)))
