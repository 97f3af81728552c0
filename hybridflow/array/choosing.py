"""Elements that are chosen from several tensors, by conditions or by numbers, and put at positions along an axis."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.array.creation import iota
from hybridflow.array.elementwise import clip, logical_not, logical_or, remainder, where
from hybridflow.array.indexing import take_along_axis
from hybridflow.array.setitem import updated
from hybridflow.array.shapes import broadcast_shapes, expand_dims, squeeze, stack
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import type_rules
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, broadcast_all, cast, common_dtype, exclusive, expand
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError, entered


@operation
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: object = 0) -> Tensor:
    """Choice by the first condition that holds.

    Args:
        condlist: bool tensors.
        choicelist: what each of them chooses; the shapes broadcast, the dtypes are promoted.
        default: what stands where none holds.

    Returns:
        A tensor of the common shape and dtype.

    Raises:
        ArgumentError: where there are not as many conditions as choices, or none.
        DTypeError: for a condition that is not bool.
        ShapeError: if the shapes do not broadcast.

    >>> x = hf.arange(6)
    >>> hf.select([x < 2, x > 3], [x, x * 10], -1)
    <Tensor i64[6] cpu> [ 0  1 -1 -1 40 50]
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError("select", f"{len(condlist)} conditions for {len(choicelist)} choices.")
    conditions = [_condition("select", condition) for condition in condlist]
    *choices, result = common_dtype("select", [*choicelist, default])
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        result = where(condition, choice, result)
    return result


def _condition(stage: str, value: ArrayLike) -> Tensor:
    condition = as_tensor(value, stage)
    if not dtypes.is_bool(condition.dtype):
        raise DTypeError(stage, f"a condition is {condition.type}. Expected bool.")
    return condition


@entered
def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: object, **kw: object) -> Tensor:
    """Function that is defined by parts: of the last condition that holds.

    A function is called with all of ``x``, and must be one of single elements.

    Args:
        x: a tensor, array, nested list or number.
        condlist: bool tensors of the shape of ``x``, or one of them.
        funclist: a function or a number for each condition; one more counts where none holds, else 0.
        *args: further arguments of the functions.
        **kw: the same by name.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        ArgumentError: where there are neither as many functions as conditions nor one more.
        DTypeError: for a condition that is not bool.
        ShapeError: where a condition or a value does not broadcast to the shape of ``x``.

    >>> x = hf.asarray([-2.0, 0.5, 3.0])
    >>> hf.piecewise(x, [x < 0, x > 1], [0.0, lambda t: t * t, 7.0])
    <Tensor f32[3] cpu> [0. 7. 9.]
    """
    x = as_tensor(x, "piecewise")
    bools = isinstance(condlist, (list, tuple)) and len(condlist) > 0 and isinstance(condlist[0], (bool, np.bool_))
    several = isinstance(condlist, (list, tuple)) and not (bools and x.ndim)  # a row of bools is one condition
    conditions = [_condition("piecewise", condition) for condition in (condlist if several else [condlist])]
    if conditions and len(funclist) == len(conditions) + 1:
        conditions.append(logical_not(functools.reduce(logical_or, conditions)))
    if len(funclist) != len(conditions) or not conditions:
        raise ArgumentError("piecewise", f"{len(conditions)} conditions for {len(funclist)} functions.")
    result: Any = None
    for condition, function in zip(conditions, funclist):
        value = function(x, *args, **kw) if callable(function) else function
        value = cast(as_tensor(value, "piecewise"), x.dtype)
        result = where(condition, value, cast(as_tensor(0, "piecewise"), x.dtype) if result is None else result)
    if broadcast_shapes(result.shape, x.shape) != x.shape:
        raise ShapeError("piecewise", f"conditions and values are {result.type} together. Expected those of {x.type}.")
    return expand(result, x.shape)


@operation
def choose(a: ArrayLike, choices: object, mode: str = "raise") -> Tensor:
    """Choice by number: at each place the element of the tensor of that number.

    Args:
        a: integers, the number of a choice at each place.
        choices: a sequence of tensors, or one tensor whose first axis counts them; the shapes broadcast.
        mode: what becomes of numbers without a choice: "raise", "wrap" for the remainder, or "clip" for the nearest.

    Returns:
        A tensor of the common shape in the common dtype of the choices.

    Raises:
        ArgumentError: for another ``mode``, and without choices.
        DTypeError: for other numbers than integers.
        IndexRangeError: for a number without a choice.
        ShapeError: if the shapes do not broadcast.

    >>> hf.choose([0, 1, 1], [[1, 2, 3], [10, 20, 30]])
    <Tensor i64[3] cpu> [ 1 20 30]
    """
    numbers = as_tensor(a, "choose")
    if not dtypes.is_integer(numbers.dtype):
        raise DTypeError("choose", f"the numbers are {numbers.type}. Expected integers.")
    parts = list(choices) if isinstance(choices, (list, tuple)) else [*as_tensor(choices, "choose")]
    if not parts:
        raise ArgumentError("choose", "there are no choices.")
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError("choose", f"mode is {mode!r}. Expected 'raise', 'wrap' or 'clip'.")
    numbers, *parts = broadcast_all("choose", [numbers, *common_dtype("choose", parts)])
    if mode == "wrap":
        numbers = remainder(cast(numbers, default_int), len(parts))
    elif mode == "clip":
        numbers = clip(numbers, 0, len(parts) - 1)
    return squeeze(take_along_axis(stack(parts), expand_dims(numbers, 0), axis=0), 0)


@operation
def put_along_axis(x: ArrayLike, indices: ArrayLike, values: ArrayLike, /, axis: int = -1) -> Tensor:
    """Copy of ``x`` with values at positions along an axis, as ``take_along_axis`` reads them.

    Of positions that come twice the last one counts.

    Args:
        x: a tensor, array, nested list or number.
        indices: integers, of as many axes as ``x``; the other axes broadcast.
        values: what is put there; broadcasts to the shape of ``indices``.
        axis: an axis; negative ones count from the end.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        AxisError: for an axis out of range.
        DTypeError: for other positions than integers.
        IndexRangeError: for a position out of range.
        ShapeError: where the shapes do not fit.

    >>> hf.put_along_axis([[1, 2], [3, 4]], [[1], [0]], 9)
    <Tensor i64[2,2] cpu>
    [[1 9]
     [9 4]]
    """
    x, places = as_tensor(x, "put_along_axis"), as_tensor(indices, "put_along_axis")
    axis = type_rules.axis("put_along_axis", x.type, axis)
    if not dtypes.is_integer(places.dtype):
        raise DTypeError("put_along_axis", f"the positions are {places.type}. Expected integers.")
    if places.ndim != x.ndim:
        raise ShapeError("put_along_axis", f"the positions {places.type} must have as many axes as {x.type}.")
    if x.ndim == 1:
        return updated(exclusive(x), places, values)
    shape = tuple(places.shape[k] if k == axis else n for k, n in enumerate(x.shape))
    places = expand(places, shape)
    key = tuple(places if k == axis else iota(shape, k, default_int) for k in range(x.ndim))
    return updated(x, key, values)
