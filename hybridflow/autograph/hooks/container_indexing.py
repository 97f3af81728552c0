"""Lists, tuples, texts and dicts of Python's, of which a tensor decides what is taken, found or set.

What is taken is one of the items, read where the program runs (``flow.tables``).  Where there is none, the program ends
with Python's own error.
"""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable, MutableSequence, Sequence
from typing import Any

import numpy as np

from hybridflow.array import elementwise, reductions
from hybridflow.autograph.hooks.comparisons import depends, either, equal, hits
from hybridflow.autograph.hooks.per_choice import frame_of_user
from hybridflow.autograph.runtime import aliasing, branch_merge, except_clauses, narrowing, undo_log
from hybridflow.autograph.runtime.choices import Choice, is_choice
from hybridflow.autograph.runtime.exception_handlers import without_handlers
from hybridflow.autograph.runtime.indexed_select import select
from hybridflow.autograph.runtime.mutable_locations import location_of
from hybridflow.autograph.runtime.tensor_range import integer
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ops import TABLE
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import cast, literal, scalar
from hybridflow.effects import runtime_text
from hybridflow.errors import ArgumentError, ConcretizationError, HybridflowError
from hybridflow.guards import builtin_reads
from hybridflow.guards.attribute_reads import in_class
from hybridflow.guards.guard_builder import GuardBuilder, active
from hybridflow.tracing import symbolic_number
from hybridflow.tracing.symbolic_number import is_number, number_of
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

_SEQUENCES: dict[type, str] = {
    list: "list index out of range",
    tuple: "tuple index out of range",
    str: "string index out of range",
    bytes: "index out of range",
    range: "range object index out of range",
    collections.deque: "deque index out of range",
}
_MAPPINGS = (dict, collections.OrderedDict)
LOOKUPS = (*_MAPPINGS, set, frozenset)


def _base(value: object) -> type | None:
    """The sequence of Python's whose items are taken as that takes them; None for other values."""
    for base in _SEQUENCES:
        if isinstance(value, base) and in_class(type(value), "__getitem__") is vars(base)["__getitem__"]:
            return base
    return None


def _is_location(key: object) -> bool:
    """Whether it depends on a tensor what a position is."""
    return isinstance(key, Variable) or (isinstance(key, SymbolicTensor) and key._known() is None)


def is_sought(container: object, key: object) -> bool:
    """Whether it depends on a tensor what is looked for in a dict or a set."""
    return type(container) in LOOKUPS and _is_key(key)


def _is_key(key: object) -> bool:
    return is_number(key) or (type(key) is tuple and any(map(_is_key, key)))


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, bytes, int, float, enum.Enum))


def takes(value: object, key: object) -> bool:
    """Whether ``value[key]`` is one of items that Python knows, and a tensor decides which."""
    if type(value) in _MAPPINGS:
        return _is_key(key) or (is_choice(key) and all(map(_is_plain, key.options)))
    if not _is_location(key):
        return False
    if type(value) is np.ndarray:
        return value.ndim == 1 and value.dtype.kind in "biuf"
    return _base(value) is not None


def item(recording: GuardBuilder, value: Any, key: Any) -> Any:
    """``value[key]``"""
    recording.note(builtin_reads.iterate, value)
    if is_choice(key):
        return _of_chosen_key(value, key)
    if type(value) is np.ndarray:
        return _element(value, key)
    frame = frame_of_user()
    if type(value) in _MAPPINGS:
        location, place = _location_of(list(value), key)
        if location is False:
            raise KeyError(key)
        except_clauses.require(frame, location, KeyError(key))
        return select(place, list(value.values()), frame)
    base = _base(value)
    assert base is not None
    items = list(value)
    return select(_position(key, len(items), _SEQUENCES[base], value), items, frame)


def _of_chosen_key(value: Any, key: Choice) -> Any:
    frame, left = frame_of_user(), narrowing.remaining_options(key)
    there = [k for k in left if key.options[k] in value]
    for k in left if there else ():
        if k not in there:
            except_clauses.require(frame, elementwise.not_equal(key.code, k), KeyError(key.options[k]))
    if not there:
        raise KeyError(key.options[left[0]])
    items = [value[key.options[k if k in there else there[0]]] for k in range(len(key.options))]
    return select(key.code, items, frame)


def _element(array: np.ndarray, key: object) -> Any:
    shown = "index {} is out of bounds for axis 0 with size " + str(len(array))
    place = _position(key, len(array), runtime_text.text_of(shown.format, key), array)
    with without_handlers():
        element = apply(TABLE["take"], literal(array), cast(place, dtypes.int64), axis=0)
    return SymbolicTensor(element._node, element._trace, is_weak=True)


def _position(key: Any, count: int, text: object, value: object) -> Tensor:
    """The position among ``count`` items, from the first one on.  Where there is none it is an IndexError."""
    if is_number(key) and key.one_kind is float:
        raise TypeError(f"{type(value).__name__} indices must be integers or slices, not float")
    if not is_number(key):
        key = integer(key.value() if isinstance(key, Variable) else key, "an index or a size")
    if count == 0:
        raise IndexError(text)
    number = symbolic_number.number_tensor(key, int)
    inside = elementwise.logical_and(elementwise.greater_equal(number, -count), elementwise.less(number, count))
    except_clauses.require(frame_of_user(), inside, IndexError(text))
    return cast(elementwise.where(elementwise.less(number, 0), elementwise.add(number, count), number), dtypes.int32)


def _location_of(known: list[Any], value: object) -> tuple[Any, Any]:
    """Whether a value is among those that are known, and the number of the first one that equals it."""
    if not known:
        return False, None
    matches = hits(known, value)
    return reductions.any(matches), cast(reductions.argmax(elementwise.astype(matches, dtypes.int32)), dtypes.int32)


def contains(recording: GuardBuilder, container: Any, key: object) -> Any:
    """``key in container``, a dict or a set."""
    recording.note(builtin_reads.iterate, container)
    location, _ = _location_of(list(container), key)
    return location if location is False else number_of(location)


def may_be_among(value: Any, container: Any) -> bool:
    """Whether it depends on a tensor that a list, or the like, holds a value."""
    kind = type(container)
    return kind in (list, tuple, range, collections.deque) and (depends(value) or any(map(depends, container)))


def is_among(recording: GuardBuilder, value: Any, container: Any) -> Any:
    """``value in container``, one of these."""
    recording.note(builtin_reads.iterate, container)
    result: Any = False
    for one in container:
        result = either(result, equal(one, value))
        if result is True:
            return True
    return result if result is False else number_of(result)


# ---- methods


def method_of_lookup(value: object, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """What to call for a method of a dict or a set, which finds by hash what it is given."""

    def call(*args: object, **kwargs: object) -> Any:
        recording = active.recording
        if name == "get" and args and recording is not None and type(value) in _MAPPINGS and _is_key(args[0]):
            recording.note(builtin_reads.iterate, value)
            return _get(value, *args)
        return method(*(builtin_reads.sought(value, arg) for arg in args), **kwargs)

    return call


def _get(value: Any, key: object, default: object = None) -> Any:
    location, place = _location_of(list(value), key)
    if location is False:
        return default
    code = elementwise.where(location, elementwise.add(place, 1), scalar(0, dtypes.int32, "convert"))
    return select(code, [default, *value.values()], frame_of_user())


def _index(held: Any, value: Any) -> Any:
    location, place = _location_of(list(held), value)
    text = (
        runtime_text.joined([(value, "r", ""), " is not in list"])
        if isinstance(held, list)
        else "tuple.index(x): x not in tuple"
    )
    if location is False:
        raise ValueError(text)
    except_clauses.require(frame_of_user(), location, ValueError(text))
    return number_of(cast(place, dtypes.int64))


def _count(held: Any, value: Any) -> Any:
    return number_of(reductions.sum(elementwise.astype(hits(list(held), value), dtypes.int64))) if held else 0


def _pop(held: Any, key: object) -> Any:
    if not held:
        raise IndexError("pop from empty list")
    frame = frame_of_user()
    place = _position(key, len(held), "pop index out of range", held)
    items = list(held)
    taken = select(place, items, frame)
    _take_out(held, place, frame)
    return taken


def _take_out(held: Any, place: Tensor, frame: Any) -> None:
    items = list(held)
    held[:] = [
        branch_merge.select(elementwise.less_equal(place, k), items[k + 1], items[k], frame)
        for k in range(len(items) - 1)
    ]


_SEARCHES: dict[str, Callable[..., Any]] = {"index": _index, "count": _count}


def method_of_sequence(value: Any, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """What to call for a method of a list or a tuple."""
    search = _SEARCHES.get(name)
    if search is None and not (name == "pop" and type(value) is list):
        return method

    def call(*args: Any) -> Any:
        recording = active.recording
        if recording is None or len(args) != 1:
            return method(*args)
        if search is None:
            return _pop(value, args[0]) if _is_location(args[0]) else method(*args)
        if not (depends(args[0]) or any(map(depends, value))):
            return method(*args)
        recording.note(builtin_reads.iterate, value)
        return search(value, args[0])

    return call


# ---- what is set


class Items:
    """A list or dict of which an item is set: what stands before the brackets while recording."""

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        self._held = held

    def __getitem__(self, key: Any) -> Any:
        recording = active.recording
        if recording is not None and takes(self._held, key):
            return item(recording, self._held, key)
        return self._held[key]

    def __setitem__(self, key: object, value: Any) -> None:
        if active.recording is not None:
            for held, is_it in list(aliasing.origins(self._held)):
                _change_one(held, is_it, lambda: Items(held).set(key, value))  # noqa: B023
        self.set(key, value)

    def set(self, key: Any, value: Any) -> None:
        """``held[key] = value``"""
        if active.recording is None or not takes(self._held, key):
            self._held[key] = value
        elif isinstance(self._held, list):
            _set(self._held, key, value)
        else:
            _set_key(self._held, key, value)

    def __delitem__(self, key: Any) -> None:
        if active.recording is None or not (isinstance(self._held, list) and _is_location(key)):
            del self._held[key]
            return
        place = _position(key, len(self._held), "list assignment index out of range", self._held)
        _take_out(self._held, place, frame_of_user())


def _change_one(held: object, is_it: Tensor, change: Callable[[], None]) -> None:
    """Change a list or a dict where it is the one that is changed."""
    place = location_of(held)
    assert place is not None
    undo_log.record_write(place)
    before = place.get()
    change()
    after, frame = place.get(), frame_of_user()
    if type(after) is dict:
        place.put(branch_merge.select(is_it, after, before, frame))
    else:
        place.put(
            [a if a is b else branch_merge.select(is_it, a, b, frame) for a, b in zip(after, before, strict=True)]
        )


class Attributes:
    """One of several objects that a tensor has chosen, of which an attribute is set."""

    __slots__ = ("_held", "_origins")

    def __init__(self, held: object, origins: Sequence[tuple[Any, Tensor]]) -> None:
        object.__setattr__(self, "_held", held)
        object.__setattr__(self, "_origins", origins)

    def __getattr__(self, name: str) -> Any:
        return called_attribute[0](self._held, name)

    def __setattr__(self, name: str, value: object) -> None:
        frame = frame_of_user()
        for owner, is_it in self._origins:
            undo_log.record_attribute_write(owner, name, frame)
            setattr(owner, name, branch_merge.select(is_it, value, getattr(owner, name), frame))
        if not isinstance(self._held, Choice):
            setattr(self._held, name, value)

    def __delattr__(self, name: str) -> None:
        raise ConcretizationError(
            "convert", f"the attribute {name} of one of several objects is deleted, and a tensor decides of which."
        )


def _new_key(kind: Callable[[str, str], HybridflowError] = ArgumentError) -> HybridflowError:
    return kind(
        "convert", "a dict is given a new key, and a tensor decides which. Give it all keys before, or use a tensor."
    )


called_attribute: list[Callable[[Any, str], Any]] = []
"""What reads an attribute: ``recorder`` adds what notes that."""


def _set(held: MutableSequence[Any], key: object, value: object) -> None:
    frame = frame_of_user()
    place = _position(key, len(held), "list assignment index out of range", held)
    held[:] = [branch_merge.select(elementwise.equal(place, k), value, before, frame) for k, before in enumerate(held)]


def _set_key(held: dict[Any, Any], key: object, value: object) -> None:
    frame = frame_of_user()
    if is_choice(key):
        places = [(elementwise.equal(key.code, k), key.options[k]) for k in narrowing.remaining_options(key)]
        for is_it, known in places:
            if known not in held:
                except_clauses.require(frame, elementwise.logical_not(is_it), _new_key())
        for is_it, known in places:
            if known in held:
                held[known] = branch_merge.select(is_it, value, held[known], frame)
        return
    location, place = _location_of(list(held), key)
    if location is False:
        raise _new_key(ConcretizationError)
    except_clauses.require(frame, location, _new_key())
    for k, known in enumerate(list(held)):
        held[known] = branch_merge.select(elementwise.equal(place, k), value, held[known], frame)
