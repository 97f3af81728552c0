"""Sets of elements.  How many there are depends on the values: calls of compiled functions find it, or the ``unique_``
functions are told how many there may be.  NaN is equal to nothing, -0.0 to 0.0."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridflow.array.elementwise import equal, greater, logical_and, logical_not
from hybridflow.array.selection import count_distinct, unique_of, unique_parts
from hybridflow.array.shapes import reshape
from hybridflow.array.sorting import searchsorted, sort
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import TABLE, type_rules
from hybridflow.core.context import now
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, common_dtype, filled, from_numpy
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, TraceError, entered


class UniqueAll(NamedTuple):
    """What ``unique_all`` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What ``unique_counts`` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What ``unique_inverse`` returns."""

    values: Tensor
    inverse_indices: Tensor


def _unique(
    x: ArrayLike,
    stage: str,
    size: int | None,
    fill_value: ArrayLike | None,
    axis: int | None = None,
    equal_nan: bool = False,
    asked: tuple[bool, bool, bool] = (True, True, True),
) -> UniqueAll:
    """``asked`` says which of positions, inverse and counts are wanted; what is not may be anything."""
    x = as_tensor(x, stage)
    if size is not None:
        return UniqueAll(*unique_parts(x, type_rules.extent(stage, "size", size), fill_value))
    array = x._known()
    if array is None:
        remedy = f"say how many there may be, {stage}(x, size=...), or " if axis is None else ""
        refusal = TraceError(
            stage,
            f"the result's size depends on the values of {x!r}; {remedy}call it outside of the traced function.",
        )
        if axis is not None:
            raise refusal
        wanted = count_distinct(x, equal_nan)._to_extent(lambda: refusal)
        return UniqueAll(*unique_parts(x, wanted, fill_value, equal_nan))
    array = array.astype(dtypes.compute_dtype(array.dtype), copy=False)  # NumPy knows no NaN of bfloat16
    shape, line, along = array.shape, x, axis
    if axis is None:
        array, line, along = array.reshape(-1), reshape(x, (x.size,)), 0
    # Values are gathered where gradients are to flow through them.
    follows = asked[0] or now().trace is not None or any(tape.tracks(x) for tape in now().tapes)
    flags = (follows, *asked[1:])
    options: Any = dict(zip(("return_index", "return_inverse", "return_counts"), flags))
    results: Any = np.unique(array, axis=axis, equal_nan=equal_nan, **options)
    parts = iter(results if True in flags else (results,))
    plain = next(parts)
    first, inverse, counts = (np.asarray(next(parts), np.int64) if flag else np.zeros(0, np.int64) for flag in flags)
    indices = from_numpy(first, stage)
    if follows:
        values = apply(TABLE["take"], line, indices, axis=along)
    else:
        values = from_numpy(np.asarray(plain, x.dtype), stage)
    inverse = inverse.reshape(shape if axis is None else -1) if flags[1] else inverse
    return UniqueAll(values, indices, from_numpy(inverse, stage), from_numpy(counts, stage))


@entered
def unique(
    x: ArrayLike,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """The distinct elements of ``x`` in ascending order (1-d), or its distinct parts along an axis.

    With ``size`` there are so many, as in ``unique_values``; 0 stands where there are
    no positions and counts.

    Args:
        x: a tensor, array, nested list or number.
        return_index: whether to say where each occurs first.
        return_inverse: whether to say which of them each element of ``x`` is.
        return_counts: whether to say how often each occurs.
        axis: the axis along which parts are compared; None for single elements.
        equal_nan: whether NaN counts as one element, and not each as another.
        size: the number of elements; unless given, calls find it.
        fill_value: the value that fills the rest.

    Returns:
        The distinct elements; with what else is asked for, a tuple of them and int64 tensors, in the order above.

    Raises:
        ArgumentError: for ``size`` together with an axis.
        ArgumentTypeError: for a flag that is neither True nor False.
        AxisError: for an axis out of range.
        TraceError: without ``size`` in what has to be one program, such as a saved function.

    >>> hf.unique([3, 1, 3], return_counts=True)
    (<Tensor i64[2] cpu> [1 3], <Tensor i64[2] cpu> [1 2])
    """
    x = as_tensor(x, "unique")
    along = None if axis is None else type_rules.axis("unique", x.type, axis)
    flags = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    first, inverse, counts = (type_rules.flag("unique", what, value) for what, value in flags.items())
    asked = (first, inverse, counts)
    equal_nan = type_rules.flag("unique", "equal_nan", equal_nan)
    if size is None:
        parts_of_unique = _unique(x, "unique", None, None, along, equal_nan, asked)
    elif along is not None:
        raise ArgumentError("unique", "size is for single elements. Expected no axis with it.")
    else:
        parts_of_unique = UniqueAll(*unique_parts(x, type_rules.extent("unique", "size", size), fill_value, equal_nan))
    more = [part for part, wanted in zip(parts_of_unique[1:], asked) if wanted]
    return (parts_of_unique.values, *more) if more else parts_of_unique.values


@entered
def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """The distinct elements of ``x`` in ascending order (1-d), with positions, inverse and counts.

    Positions say where each occurs first in the flattened tensor. The inverse says which of them each element of ``x``
    is (in the shape of ``x``), and counts how often each occurs. Positions and counts are int64.

    With ``size`` there are so many, as in ``unique_values``; 0 stands where there are
    no positions and counts. Elements of ``x`` that are larger than the last of them have the numbers from ``size`` on.

    Args:
        x: a tensor, array, nested list or number.
        size: the number of elements; unless given, calls find it.
        fill_value: the value that fills the rest.

    Returns:
        A named tuple of tensors.

    >>> hf.unique_all(hf.asarray([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    return _unique(x, "unique_all", size, fill_value)


@entered
def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueCounts:
    """The distinct elements of ``x`` in ascending order (1-d), and how often each occurs, as int64.

    With ``size`` there are so many, as in ``unique_values``, and the counts of what is
    filled up are 0: ``hf.count_nonzero(counts)`` says how many there were.

    Args:
        x: a tensor, array, nested list or number.
        size: the number of elements; unless given, calls find it.
        fill_value: the value that fills the rest.

    Returns:
        A named tuple of tensors.

    >>> hf.unique_counts([3, 1, 3])
    UniqueCounts(values=<Tensor i64[2] cpu> [1 3], counts=<Tensor i64[2] cpu> [1 2])
    >>> hf.unique_counts([3, 1, 3], size=3)
    UniqueCounts(values=<Tensor i64[3] cpu> [1 3 1], counts=<Tensor i64[3] cpu> [1 2 0])
    """
    parts_of_unique = _unique(x, "unique_counts", size, fill_value, asked=(False, False, True))
    return UniqueCounts(parts_of_unique.values, parts_of_unique.counts)


@entered
def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueInverse:
    """The distinct elements of ``x`` in ascending order (1-d), and which of them each element of ``x`` is.

    The second is int64 in the shape of ``x``; ``size`` is as in ``unique_all``.

    Args:
        x: a tensor, array, nested list or number.
        size: the number of elements; unless given, calls find it.
        fill_value: the value that fills the rest.

    Returns:
        A named tuple of tensors.

    >>> hf.unique_inverse([3, 1, 3])
    UniqueInverse(values=<Tensor i64[2] cpu> [1 3], inverse_indices=<Tensor i64[3] cpu> [1 0 1])
    """
    parts_of_unique = _unique(x, "unique_inverse", size, fill_value, asked=(False, True, False))
    return UniqueInverse(parts_of_unique.values, parts_of_unique.inverse_indices)


@entered
def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Tensor:
    """The distinct elements of ``x`` in ascending order (1-d).

    With ``size`` there are so many: ``fill_value``, the least element unless given,
    stands where there are fewer, and larger ones are left out.

    Args:
        x: a tensor, array, nested list or number.
        size: the number of elements; unless given, calls find it.
        fill_value: the value that fills the rest.

    Returns:
        A tensor of one axis in the dtype of ``x``.

    >>> hf.unique_values([3, 1, 3])
    <Tensor i64[2] cpu> [1 3]
    >>> hf.unique_values([3, 1, 3], size=3)
    <Tensor i64[3] cpu> [1 3 1]
    """
    if size is None:
        return _unique(x, "unique_values", None, None, asked=(False, False, False)).values
    return unique_of(as_tensor(x, "unique_values"), type_rules.extent("unique_values", "size", size), fill_value)


@operation
def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Tensor:
    """Where an element of ``x1`` is one of ``x2``, or where it is none if ``invert``: bool in the shape of ``x1``.

    Args:
        x1: what is looked for.
        x2: what it is looked for in.
        invert: whether the answers are turned around.

    Returns:
        A bool tensor of the shape of ``x1``.

    >>> hf.isin(hf.asarray([1, 2, 3]), hf.asarray([3, 1])).tolist()
    [True, False, True]
    """
    x1, x2 = common_dtype("isin", (x1, x2))
    if x1.dtype == np.bool_:
        x1, x2 = cast(x1, default_int), cast(x2, default_int)
    if x2.size == 0:
        return filled(bool(invert), np.dtype(np.bool_), x1.shape, "isin")
    ordered = sort(reshape(x2, (x2.size,)))
    flat = reshape(x1, (x1.size,))
    matches = greater(searchsorted(ordered, flat, side="right"), searchsorted(ordered, flat, side="left"))
    matches = reshape(logical_and(matches, equal(flat, flat)), x1.shape)
    return logical_not(matches) if invert else matches
