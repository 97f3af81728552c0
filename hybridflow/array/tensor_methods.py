"""Methods of tensors and variables: the functions of the same meaning, with NumPy's names and arguments.

``out`` stands where NumPy has it, so that arguments by position and NumPy's own functions, which call these, fit; only
None is accepted for it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from hybridflow.array import creation, elementwise, indexing, linalg, reductions, shapes, sorting
from hybridflow.compiler.ir import dtypes
from hybridflow.core.method_install import give
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.type_aliases import ArrayLike, AxisLike, DTypeLike
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError
from hybridflow.runtime import uninterruptible


def _no_out(out: object, name: str) -> None:
    if out is not None:
        raise ArgumentError(name, "there is no out: tensors are not written into. Use the result.")


def _row_major(order: str, name: str) -> None:
    if order not in ("C", "K", "A"):
        raise ArgumentError(name, f"order is {order!r}; tensors are in row-major order, 'C'.")


def _sum(
    self: Operators, axis: AxisLike = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False
) -> Tensor:
    """See ``hf.sum``.

    Args:
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result, or None.
        out: None; tensors are not written into.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the axes; see ``hf.sum`` for its dtype.

    >>> hf.constant([[1, 2], [3, 4]]).sum(axis=0).tolist()
    [4, 6]
    """
    _no_out(out, "sum")
    return reductions.sum(self, axis, dtype, keepdims)


def _prod(
    self: Operators, axis: AxisLike = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False
) -> Tensor:
    """See ``hf.prod``.

    Args:
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result, or None.
        out: None; tensors are not written into.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the axes; see ``hf.prod`` for its dtype.

    >>> hf.constant([2, 3]).prod().item()
    6
    """
    _no_out(out, "prod")
    return reductions.prod(self, axis, dtype, keepdims)


def _mean(
    self: Operators, axis: AxisLike = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False
) -> Tensor:
    """See ``hf.mean``.

    Args:
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result, or None.
        out: None; tensors are not written into.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the axes; see ``hf.mean`` for its dtype.

    >>> hf.constant([1.0, 2.0]).mean().item()
    1.5
    """
    _no_out(out, "mean")
    return reductions.mean(self, axis, dtype, keepdims)


def _max(self: Operators, axis: AxisLike = None, out: None = None, keepdims: bool = False) -> Tensor:
    """See ``hf.max``.

    Args:
        axis: an axis, a tuple of axes, or None for all.
        out: None; tensors are not written into.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the axes, of the same dtype.
    """
    _no_out(out, "max")
    return reductions.max(self, axis, keepdims)


def _min(self: Operators, axis: AxisLike = None, out: None = None, keepdims: bool = False) -> Tensor:
    """See ``hf.min``.

    Args:
        axis: an axis, a tuple of axes, or None for all.
        out: None; tensors are not written into.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the axes, of the same dtype.
    """
    _no_out(out, "min")
    return reductions.min(self, axis, keepdims)


def _var(
    self: Operators,
    axis: AxisLike = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Tensor:
    """See ``hf.var``; ``ddof`` is NumPy's word for its ``correction``.

    Args:
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result, or None.
        out: None; tensors are not written into.
        ddof: what is subtracted from the number of elements.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the axes.
    """
    _no_out(out, "var")
    x = self if dtype is None else elementwise.astype(self, dtype)
    return reductions.var(x, axis, ddof, keepdims)


def _std(
    self: Operators,
    axis: AxisLike = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Tensor:
    """See ``hf.std``; ``ddof`` is NumPy's word for its ``correction``.

    Args:
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the result, or None.
        out: None; tensors are not written into.
        ddof: what is subtracted from the number of elements.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A tensor without the axes.
    """
    _no_out(out, "std")
    x = self if dtype is None else elementwise.astype(self, dtype)
    return reductions.std(x, axis, ddof, keepdims)


def _argmax(self: Operators, axis: int | None = None, out: None = None, keepdims: bool = False) -> Tensor:
    """See ``hf.argmax``.

    Args:
        axis: an axis, or None for positions in the flattened tensor.
        out: None; tensors are not written into.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        An int64 tensor without the axis.
    """
    _no_out(out, "argmax")
    return reductions.argmax(self, axis, keepdims)


def _argmin(self: Operators, axis: int | None = None, out: None = None, keepdims: bool = False) -> Tensor:
    """See ``hf.argmin``.

    Args:
        axis: an axis, or None for positions in the flattened tensor.
        out: None; tensors are not written into.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        An int64 tensor without the axis.
    """
    _no_out(out, "argmin")
    return reductions.argmin(self, axis, keepdims)


def _any(self: Operators, axis: AxisLike = None, out: None = None, keepdims: bool = False) -> Tensor:
    """See ``hf.any``.

    Args:
        axis: an axis, a tuple of axes, or None for all.
        out: None; tensors are not written into.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A bool tensor without the axes.
    """
    _no_out(out, "any")
    return reductions.any(self, axis, keepdims)


def _all(self: Operators, axis: AxisLike = None, out: None = None, keepdims: bool = False) -> Tensor:
    """See ``hf.all``.

    Args:
        axis: an axis, a tuple of axes, or None for all.
        out: None; tensors are not written into.
        keepdims: whether reduced axes are kept with size 1.

    Returns:
        A bool tensor without the axes.
    """
    _no_out(out, "all")
    return reductions.all(self, axis, keepdims)


def _cumsum(self: Operators, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Tensor:
    """See ``hf.cumulative_sum``; None flattens first.

    Args:
        axis: an axis, or None for the flattened tensor.
        dtype: the dtype of the result, or None.
        out: None; tensors are not written into.

    Returns:
        A tensor of the same shape, or flat.
    """
    _no_out(out, "cumsum")
    return reductions.cumulative_sum(*_along(self, axis, "cumsum"), dtype)


def _along(x: ArrayLike, axis: int | None, name: str) -> tuple[Tensor, int]:
    """A tensor and an axis of it: of the flattened tensor for None, as NumPy has it."""
    x = as_tensor(x, name)
    return (_flat(x), 0) if axis is None else (x, axis)


def _flat(x: Tensor) -> Tensor:
    return shapes.reshape(x, (x.size,))


def _flatten(self: object, order: str = "C") -> Tensor:
    """All elements along one axis, in row-major order.

    Args:
        order: "C": elements are in row-major order.

    Returns:
        A tensor with one axis.
    """
    _row_major(order, "flatten")
    return _flat(as_tensor(self, "flatten"))


def _ravel(self: object, order: str = "C") -> Tensor:
    """As ``flatten``.

    Args:
        order: "C": elements are in row-major order.

    Returns:
        A tensor with one axis.
    """
    return _flatten(self, order)


def _reshape(self: Operators, *shape: Any, order: str = "C") -> Tensor:
    """See ``hf.reshape``; the extents come as one tuple or one by one.

    Args:
        *shape: extents, one of which may be -1.
        order: "C": elements are in row-major order.

    Returns:
        A tensor of that shape.

    >>> hf.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    _row_major(order, "reshape")
    return shapes.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)


def _transpose(self: Operators, *axes: Any) -> Tensor:
    """See ``hf.permute_dims``; the axes come as one tuple or one by one, and none of them reverses all.

    Args:
        *axes: a permutation of the axes, or nothing.

    Returns:
        A tensor of the same elements.

    >>> hf.zeros((2, 3, 4)).transpose(0, 2, 1).shape
    (2, 4, 3)
    """
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return shapes.permute_dims(self, tuple(order) if order else None)


def _squeeze(self: Operators, axis: AxisLike = None) -> Tensor:
    """See ``hf.squeeze``.

    Args:
        axis: the axes of size 1 to leave out, or None for all.

    Returns:
        A tensor of the same elements.
    """
    return shapes.squeeze(self, axis)


def _clip(self: Operators, min: object = None, max: object = None, out: None = None) -> Tensor:
    """See ``hf.clip``.

    Args:
        min: the lower bound, or None.
        max: the upper bound, or None.
        out: None; tensors are not written into.

    Returns:
        A tensor of the same shape.
    """
    _no_out(out, "clip")
    return elementwise.clip(self, min, max)


def _astype(self: Operators, dtype: DTypeLike, copy: bool = True) -> Tensor:
    """See ``hf.astype``.

    Args:
        dtype: the dtype of the result.
        copy: whether the result is a new tensor where the dtype is that already.

    Returns:
        A tensor of that dtype.
    """
    return elementwise.astype(self, dtype, copy=copy)


def _copy(self: Operators, order: str = "C") -> Tensor:
    """A tensor of the same value.

    Args:
        order: "C": elements are in row-major order.

    Returns:
        A new tensor.
    """
    _row_major(order, "copy")
    return creation.asarray(self, copy=True)


def _round(self: object, decimals: int = 0, out: None = None) -> Tensor:
    """To ``decimals`` places behind the point: scaled, rounded (see ``hf.round``) and scaled back, as NumPy does.

    Args:
        decimals: the number of places behind the point; negative ones stand before it.
        out: None; tensors are not written into.

    Returns:
        A tensor of the same shape.

    Raises:
        ArgumentError: for integers rounded before the point.

    >>> hf.constant([1.26]).round(1).tolist() == hf.constant([1.3]).tolist()
    True
    """
    _no_out(out, "round")
    x = as_tensor(self, "round")
    places = operator.index(decimals)
    if places == 0 or (places > 0 and not dtypes.is_float(x.dtype)):
        return elementwise.round(x)
    if not dtypes.is_float(x.dtype):
        raise ArgumentError("round", f"integers to {places} places are not offered; convert with x.astype(hf.float64).")
    if places > 0:
        return elementwise.divide(elementwise.round(elementwise.multiply(x, 10.0**places)), 10.0**places)
    return elementwise.multiply(elementwise.round(elementwise.divide(x, 10.0**-places)), 10.0**-places)


def _dot(self: Operators, other: object, out: None = None) -> Tensor:
    """The product over the last axis of the one and the last but one (of a vector the only one) of the other.

    Args:
        other: a tensor, array, nested list or number.
        out: None; tensors are not written into.

    Returns:
        A tensor; the elementwise product where one of the two has no axes.

    >>> hf.constant([1, 2]).dot([3, 4]).item()
    11
    """
    _no_out(out, "dot")
    x, y = as_tensor(self, "dot"), as_tensor(other, "dot")
    if not x.ndim or not y.ndim:
        return elementwise.multiply(x, y)
    if y.ndim <= 2:
        return linalg.matmul(x, y)
    return linalg.tensordot(x, y, axes=([x.ndim - 1], [y.ndim - 2]))


def _sort(self: Operators, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """See ``hf.sort``: a sorted tensor, while this one stays as it is.

    Args:
        axis: an axis, or None for the flattened tensor.
        descending: whether the largest comes first.
        stable: whether equal elements stay in their order.

    Returns:
        A tensor of the same shape, or flat.
    """
    return sorting.sort(*_along(self, axis, "sort"), descending=descending, stable=stable)


def _argsort(self: Operators, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """See ``hf.argsort``.

    Args:
        axis: an axis, or None for the flattened tensor.
        descending: whether the largest comes first.
        stable: whether equal elements stay in their order.

    Returns:
        Positions, an int64 tensor of the same shape, or flat.
    """
    return sorting.argsort(*_along(self, axis, "argsort"), descending=descending, stable=stable)


def _take(self: Operators, indices: ArrayLike, axis: int | None = None, out: None = None) -> Tensor:
    """See ``hf.take``; None flattens first.

    Args:
        indices: integers.
        axis: an axis, or None for the flattened tensor.
        out: None; tensors are not written into.

    Returns:
        A tensor with the axes of ``indices`` in the place of the axis.
    """
    _no_out(out, "take")
    x, axis = _along(self, axis, "take")
    return indexing.take(x, indices, axis)


def _conj(self: Operators) -> Tensor:
    """See ``hf.conj``.

    Returns:
        A tensor of the same shape and dtype.
    """
    return elementwise.conj(self)


def _conjugate(self: Operators) -> Tensor:
    """See ``hf.conj``.

    Returns:
        A tensor of the same shape and dtype.
    """
    return elementwise.conj(self)


@uninterruptible.loaded
def _selection() -> Any:
    from hybridflow.array import selection  # which a first operation does without

    return selection


def _repeat(self: Operators, repeats: object, axis: int | None = None) -> Tensor:
    """See ``hf.repeat``.

    Args:
        repeats: an int, or one for each element along the axis.
        axis: an axis, or None for the flattened tensor.

    Returns:
        A tensor of the same dtype.
    """
    repeated: Tensor = _selection().repeat(self, repeats, axis)
    return repeated


_METHODS: tuple[Callable[..., Any], ...] = (
    _all,
    _any,
    _argmax,
    _argmin,
    _argsort,
    _astype,
    _clip,
    _conj,
    _conjugate,
    _copy,
    _cumsum,
    _dot,
    _flatten,
    _max,
    _mean,
    _min,
    _prod,
    _ravel,
    _repeat,
    _reshape,
    _round,
    _sort,
    _squeeze,
    _std,
    _sum,
    _take,
    _transpose,
    _var,
)


_BY_NAME = {method.__name__[1:]: method for method in _METHODS}


def method_of(name: str) -> Callable[..., Any]:
    """The function behind a method, which takes as its first argument whatever becomes a tensor."""
    return _BY_NAME[name]


def install() -> None:
    """Give the classes these methods; called once, when the package is imported."""
    for name, method in _BY_NAME.items():
        give(Operators, name, method)
    give(Operators, "__round__", _to_indices)


def _to_indices(x: ArrayLike, digits: int | None = None, /) -> Tensor:
    return _round(x, digits or 0)
