"""``x[key] = value``: the tensor is bound to a new value, which is ``x`` but for the elements at the key.

Values never change: what shares memory with ``x``, and what was computed from it, stays as it is.  The new value is
made of ops, so gradients flow through it from the old elements and from ``value``, while tracing too.  Of positions
that come twice the last one counts.

In a traced function the tensor must be one that was made there: of an argument, or of a tensor from outside, the caller
would not see the change.  ``variable[key] = value`` assigns.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.array.creation import iota
from hybridflow.array.elementwise import add, subtract, where
from hybridflow.array.indexing import Lookup, Position, Range, entries_of, getitem, key_part
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import Extent, Shape, broadcast_shapes, is_one, product, same_extents
from hybridflow.compiler.ops import TABLE
from hybridflow.core import context
from hybridflow.core.method_install import give
from hybridflow.core.name_hints import OF_TENSOR, OtherName
from hybridflow.core.promotion import default_int, weak_kind
from hybridflow.core.tensor import Operators, Tensor, wrap
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor, cast, exclusive, expand, filled, reshape_to, scalar
from hybridflow.errors import DTypeError, IndexRangeError, ShapeError
from hybridflow.runtime.calls.variable_locks import with_locks


def _setitem(self: Any, key: object, value: ArrayLike, /) -> None:
    """Bind the tensor to a new value: what it was, with ``value``, broadcast, at ``key`` (see ``x[key]``).

    Raises DTypeError where the dtype cannot hold the value, and ShapeError where that does not broadcast to what
    ``x[key]`` is.  Raises IndexRangeError for positions out of range, and TraceError in a traced function for a tensor
    from outside.
    """
    if type(self) is Tensor and context.now() is context.idle:
        array = _with_number(self._array, key, value)
        if array is not None:
            self._array = array
            return
    if isinstance(self, Variable):
        self.assign(updated(self._read(), key, value))
        return
    self._check_rebinding(context.now().trace)
    new = updated(self, key, value)
    before = self._stand_in()
    self._hold(new)
    for recorder in context.recorders():
        recorder.rename(self, before, new)


def _with_number(array: object, key: object, value: ArrayLike) -> np.ndarray | None:
    """A copy of an array with a number, which its dtype can hold, at an index or at indices: what most assignments are.
    None for others, and for those that are errors."""
    if type(array) is not np.ndarray or type(value) is not _NUMBERS.get(array.dtype.kind):
        return None
    if type(key) is not int and not (type(key) is tuple and all(type(part) is int for part in key)):
        return None
    copied = np.array(array, order="C")
    try:
        with np.errstate(over="ignore"):
            copied[key] = value
    except (IndexError, OverflowError):
        return None
    return copied


_NUMBERS = {"f": float, "i": int, "u": int, "b": bool}


def updated(x: Tensor, key: object, value: ArrayLike) -> Tensor:
    """A new tensor that is ``x`` but for the elements at ``key``, which are ``value``."""
    fill = _fitting(x, value)
    parts = [key_part(p) for p in (key if isinstance(key, tuple) else (key,))]
    if context.now() is context.idle:
        copied = _copied(x, parts, fill)
        if copied is not None:
            return copied
    if parts and _is_mask(parts[0]) and all(part is Ellipsis for part in parts[1:]):
        chosen = _masked(x, parts[0], fill)
        if chosen is not None:
            return chosen
    if any(_is_mask(p) and not p.ndim for p in parts):
        return _scattered(x, key, fill)
    entries = entries_of(x, parts)
    axis = _only_lookup(x, entries)
    if axis is not None:  # whole slices are replaced
        indices = entries[axis].at
        fill = _spread(fill, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
        if product(fill.shape) != 0:
            # What may raise stands by itself, before the first value that is written.
            numbers = iota((x.shape[axis],), 0, default_int)
            return _set(x, apply(TABLE["take"], numbers, indices, axis=0), fill, axis)
    if any(isinstance(entry, Lookup) for entry in entries):
        return _scattered(x, key, fill)
    return _placed(x, entries, fill, all(map(_is_everything, parts)))


def _is_everything(part: object) -> bool:
    """Whether a part of a key takes a whole axis, or several, whatever their extents are."""
    return part is Ellipsis or (
        isinstance(part, slice) and part.start is part.stop is None and part.step in (None, 1, -1)
    )


def _is_mask(part: object) -> bool:
    return isinstance(part, Tensor) and dtypes.is_bool(part.dtype)


def _fitting(x: Tensor, value: ArrayLike) -> Tensor:
    """What is assigned, in the dtype of ``x``: numbers of the same or a lesser kind become that."""
    if weak_kind(value) is not None and not isinstance(value, Tensor):
        return scalar(value, x.dtype, "setitem")
    fill = as_tensor(value, "setitem")
    rank = [dtypes.is_float(d) + (not dtypes.is_bool(d)) for d in (x.dtype, fill.dtype)]
    if rank[1] > rank[0]:
        raise DTypeError("setitem", f"{x.type} cannot hold {fill.type}. Convert it with hf.astype.")
    return cast(fill, x.dtype)


def _spread(fill: Tensor, shape: Shape) -> Tensor:
    """``fill`` broadcast to ``shape``; it may have more axes in front, of one element."""
    while fill.ndim > len(shape) and is_one(fill.shape[0]):
        fill = reshape_to(fill, fill.shape[1:])
    try:
        fits = same_extents(broadcast_shapes(fill.shape, shape), shape)
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError("setitem", f"{fill.type} does not broadcast to the shape {_text(shape)} of what it replaces.")
    return expand(fill, shape)


def _text(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"


# ---- eagerly


def _copied(x: Tensor, parts: list[Any], fill: Tensor) -> Tensor | None:
    """NumPy moves elements as they are; None where there is something that lies elsewhere."""
    tensors = [x, fill, *(p for p in parts if isinstance(p, Tensor))]
    if not all(type(t._array) is np.ndarray for t in tensors):
        return None
    array = np.array(x._array, order="C")
    places = tuple([p._array if isinstance(p, Tensor) else p for p in parts])
    value: np.ndarray = fill._array
    while value.ndim and value.shape[0] == 1:
        value = value[0]  # as ``_spread``: NumPy takes axes in front for some keys, and for others not
    try:
        array[places] = value
    except IndexError as error:
        raise IndexRangeError("setitem", f"{error}: the tensor is {x.type}.") from None
    except (TypeError, ValueError) as error:
        raise ShapeError("setitem", f"{error}: {fill.type} is assigned to elements of {x.type}.") from None
    return wrap(array)


# ---- by ops


def _masked(x: Tensor, mask: Tensor, fill: Tensor) -> Tensor | None:
    """One value for all elements (or slices) where the mask is true; None where each has its own, or nothing fits."""
    if not same_extents(mask.shape, x.shape[: mask.ndim]) or mask.ndim > x.ndim:
        return None
    inner = x.shape[mask.ndim :]
    if fill.ndim == len(inner) + 1 and is_one(fill.shape[0]):
        fill = reshape_to(fill, fill.shape[1:])
    if fill.ndim > len(inner):
        return None
    fill = expand(_spread(fill, inner), x.shape)
    wide = reshape_to(mask, (*mask.shape, *(1 for _ in inner)))
    return where(expand(wide, x.shape), fill, x)


def _placed(x: Tensor, entries: list[Any], fill: Tensor, whole: bool) -> Tensor:
    """Slices and single positions: the value is padded to the shape of ``x``, and chosen where it is not padding.

    Unless the key says that ``x`` is replaced as a ``whole``, the result depends on both, to tapes, be it that the
    extents of a call leave nothing of one: what has a gradient is no matter of these.
    """
    shape = tuple([_length(e) if isinstance(e, Range) else 1 for e in entries if not isinstance(e, Position)])
    remaining = [e for e in entries if isinstance(e, (Range, Position))]
    inner = tuple([_length(e) if isinstance(e, Range) else 1 for e in remaining])
    fill = reshape_to(_spread(fill, shape), inner)
    turned = tuple([axis for axis, e in enumerate(remaining) if isinstance(e, Range) and e.reverse])
    if turned:
        fill = apply(TABLE["reverse"], fill, axes=turned)
    if whole:
        return exclusive(fill)
    starts = [e.start if isinstance(e, Range) else e.at for e in remaining]
    steps = [e.step if isinstance(e, Range) else 1 for e in remaining]
    ends = [start + (n - 1) * step + 1 for start, n, step in zip(starts, inner, steps)]
    place = {
        "low": tuple(starts),
        "high": tuple([size - end for size, end in zip(x.shape, ends)]),
        "interior": tuple([step - 1 for step in steps]),
    }
    there = apply(TABLE["pad"], filled(True, dtypes.bool_, inner, "setitem"), value=False, **place)
    return where(there, apply(TABLE["pad"], fill, value=0, **place), x)


def _length(entry: Range) -> Extent:
    span = entry.stop - entry.start
    return span if entry.step == 1 else (span + entry.step - 1) // entry.step


def _only_lookup(x: Tensor, entries: list[Lookup | Position]) -> int | None:
    """The axis of ``x`` whose positions are in a tensor, if those of all others are all that there are."""
    lookup_axes = [axis for axis, entry in enumerate(entries) if isinstance(entry, Lookup)]
    if len(lookup_axes) != 1 or len(entries) != x.ndim:
        return None
    whole = [Range(0, n, 1, False) for n in x.shape]
    others = (k for k in range(x.ndim) if k != lookup_axes[0])
    return lookup_axes[0] if all(_is_same(entries[k], whole[k]) for k in others) else None


def _is_same(entry: object, other: Range) -> bool:
    """Whether an entry asks for the same positions as a range."""
    return (
        isinstance(entry, Range)
        and entry[2:] == other[2:]
        and same_extents((entry.start, entry.stop), (other.start, other.stop))
    )


def _scattered(x: Tensor, key: object, fill: Tensor) -> Tensor:
    """Positions in tensors: which element each value replaces is what the key finds among the elements' numbers."""
    size = product(x.shape)
    chosen = getitem(reshape_to(iota((size,), 0, default_int), x.shape), key)
    fill = _spread(fill, chosen.shape)
    count = product(chosen.shape)
    flat, places, values = (reshape_to(t, (n,)) for t, n in ((x, size), (chosen, count), (fill, count)))
    return reshape_to(_set(flat, places, values, 0), x.shape)


def _set(x: Tensor, indices: Tensor, values: Tensor, axis: int) -> Tensor:
    """``x`` with values at indices, which are in range; the last of several for one."""
    return apply(TABLE["scatter_set"], x, indices, values, axis=axis, known=True)


# ---- parts of variables: ``v[1:3].assign(value)``, as TensorFlow writes ``v[1:3] = value``

# What is read of a variable by an index is a tensor like others; which part of which variable it is, is noted here for
# as long as it lives: by its id, it, the variable and the index.
_parts: dict[int, tuple[weakref.ref[Tensor], weakref.ref[Variable], Any]] = {}


def _getitem(self: Variable, key: object, /) -> Tensor:
    """``v[key]``: see ``hf.Tensor.__getitem__``."""
    result = getitem(self, key)
    if result is not self._tensor:  # which others may have too
        number = id(result)
        _parts[number] = weakref.ref(result, functools.partial(_parts.pop, number)), weakref.ref(self), key
    return result


class _Assigner(OtherName):
    """``assign`` of tensors, and its kin: there is none, unless one is a part of a variable."""

    def __init__(self, name: str, answer: str, change: Callable[..., Tensor] | None = None) -> None:
        super().__init__(name, answer)
        self._change = change

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        _, reference, key = _parts.get(id(instance), (None, None, None))
        variable = None if reference is None else reference()
        return (
            super().__get__(instance, owner)
            if variable is None
            else functools.partial(_assign, variable, key, self._change)
        )


def _assign(
    variable: Variable, key: object, change: Callable[..., Tensor] | None, value: object, use_locking: bool = False,
    name: str | None = None, read_value: bool = True,
) -> Variable:  # fmt: skip
    """``v[key].assign(value)``: the same as ``v[key] = value``; returns the variable."""

    def set_part() -> None:
        variable[key] = value if change is None else change(getitem(variable, key), value)

    with_locks((variable._gate,), set_part)
    return variable


def install() -> None:
    """Give the classes these methods; called once, when the package is imported."""
    give(Operators, "__setitem__", _setitem)
    give(Variable, "__getitem__", _getitem)
    for name, change in (("assign", None), ("assign_add", add), ("assign_sub", subtract)):
        setattr(Operators, name, _Assigner(name, OF_TENSOR[name], change))
