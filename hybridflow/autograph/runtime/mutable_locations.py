"""What a branch or an iteration may change besides its names: objects that others hold, too.

Such an object is a *place*.  Before it is changed for the first time inside of a side, the side notes what it held;
that is put back when the side is left, so that the other side, or the next pass, finds what there was.
"""

from __future__ import annotations

import collections
import inspect
import types
from typing import Any

from hybridflow.core.context import recorders
from hybridflow.core.pytree import instance_dict
from hybridflow.core.tensor import Tensor
from hybridflow.tracing.symbolic_tensor import SymbolicTensor


class _Unbound:
    __slots__ = ()

    def __repr__(self) -> str:
        return "<nothing>"


UNBOUND: object = _Unbound()
"""What holds no value."""
UNREAD: object = _Unbound()
"""The same of a name that nothing reads unless it has just been bound."""


def is_unbound(value: object) -> bool:
    return type(value) is _Unbound


class Location:
    """Something that holds a value: ``get`` and ``put``; ``text`` is how messages call it."""

    __slots__ = ("holder", "key", "text")
    keeps_conflicts = False  # what has no one type may be there: whoever reads it is told

    def __init__(self, holder: Any, key: Any, text: str) -> None:
        self.holder, self.key, self.text = holder, key, text

    @property
    def identity(self) -> tuple[Any, ...]:
        return type(self), id(self.holder), self.key

    def get(self) -> Any:
        raise NotImplementedError

    def put(self, value: Any) -> None:
        raise NotImplementedError


# Containers may be of classes of the user's, whose own methods mean other things.


class _List(Location):
    __slots__ = ()

    def get(self) -> Any:
        return [*list.__iter__(self.holder)]

    def put(self, value: Any) -> None:
        list.__setitem__(self.holder, slice(None), value)


class _Items(Location):
    """A dict, or what an object holds."""

    __slots__ = ()

    def get(self) -> Any:
        return dict(dict.items(self.holder))

    def put(self, value: Any) -> None:
        dict.clear(self.holder)
        dict.update(self.holder, value)


class _Ordered(Location):
    """A dict that keeps the order of its keys beside them."""

    __slots__ = ()

    def get(self) -> Any:
        return dict(collections.OrderedDict.items(self.holder))

    def put(self, value: Any) -> None:
        collections.OrderedDict.clear(self.holder)
        collections.OrderedDict.update(self.holder, value)


class _Set(Location):
    __slots__ = ()

    def get(self) -> Any:
        return frozenset(set.__iter__(self.holder))

    def put(self, value: Any) -> None:
        set.clear(self.holder)
        set.update(self.holder, value)


class _Deque(Location):
    __slots__ = ()

    def get(self) -> Any:
        return [*collections.deque.__iter__(self.holder)]

    def put(self, value: Any) -> None:
        collections.deque.clear(self.holder)
        collections.deque.extend(self.holder, value)


class _Attribute(Location):
    """An attribute of an object without a dict of its own."""

    __slots__ = ()

    def get(self) -> Any:
        return getattr(self.holder, self.key, UNBOUND)

    def put(self, value: Any) -> None:
        if not is_unbound(value):
            setattr(self.holder, self.key, value)
        elif hasattr(self.holder, self.key):
            delattr(self.holder, self.key)


class _ClassAttribute(Location):
    """An attribute of a class, of its own."""

    __slots__ = ()

    def get(self) -> Any:
        return vars(self.holder).get(self.key, UNBOUND)

    def put(self, value: Any) -> None:
        if not is_unbound(value):
            setattr(self.holder, self.key, value)
        elif self.key in vars(self.holder):
            delattr(self.holder, self.key)


class _Name(Location):
    """A global name."""

    __slots__ = ()

    def get(self) -> Any:
        return self.holder.get(self.key, UNBOUND)

    def put(self, value: Any) -> None:
        if not is_unbound(value):
            self.holder[self.key] = value
        else:
            self.holder.pop(self.key, None)


class _Cell(Location):
    """A variable of an enclosing function."""

    __slots__ = ()

    def get(self) -> Any:
        try:
            return self.holder.cell_contents
        except ValueError:
            return UNBOUND

    def put(self, value: Any) -> None:
        if not is_unbound(value):
            self.holder.cell_contents = value
        elif self.get() is not UNBOUND:
            del self.holder.cell_contents


class _Rebound(Location):
    """A tensor, which ``x[i] = v`` gives another value."""

    __slots__ = ()

    def get(self) -> Any:
        return alias(self.holder)

    def put(self, value: Any) -> None:
        x, after = self.holder, alias(value)
        before = SymbolicTensor(x._node, x._trace, x.is_weak)
        x._node, x._trace = value._node, value._trace
        for recorder in recorders():
            recorder.rename(x, before, after)


def alias(x: SymbolicTensor) -> SymbolicTensor:
    """Another object with the present value of a tensor, of which derivatives are those of the tensor."""
    result = SymbolicTensor(x._node, x._trace, x.is_weak)
    for recorder in recorders():
        recorder.alias(x, result)
    return result


_KINDS: dict[type, type[Location]] = {
    list: _List,
    dict: _Items,
    collections.OrderedDict: _Ordered,
    collections.defaultdict: _Items,
    collections.Counter: _Items,
    set: _Set,
    collections.deque: _Deque,
    SymbolicTensor: _Rebound,
}


CONTAINERS = frozenset(_KINDS) - {SymbolicTensor}


def _kind_of_class(kind: type) -> type[Location] | None:
    """The kind of place that an instance of a container's subclass is."""
    bases = (base for base in kind.__mro__[1:] if base in CONTAINERS)
    return next((_KINDS[base] for base in bases), None)


def is_container(value: object) -> bool:
    """Whether a value is a container whose items can be changed."""
    return type(value) in CONTAINERS or _kind_of_class(type(value)) is not None


def location_of(value: object, name: str | None = None) -> Location | None:
    """The place that changes when items of ``value``, or its attribute ``name``, do; None where nothing can."""
    if name is None:
        kind = _KINDS.get(type(value)) or _kind_of_class(type(value))
        return None if kind is None else kind(value, None, type(value).__name__)
    if isinstance(value, type):
        return _ClassAttribute(value, name, f"{value.__name__}.{name}")
    if isinstance(value, types.ModuleType):
        return _Name(vars(value), name, f"{value.__name__}.{name}")
    attributes = instance_dict(value)
    text = f"{type(value).__name__}.{name}"
    if isinstance(value, Tensor):
        return None
    return (
        _Attribute(value, name, text)
        if type(attributes) is not dict or _is_slot(value, name)
        else _Items(attributes, None, text)
    )


def _is_slot(value: object, name: str) -> bool:
    """Whether an attribute is kept beside the instance's dict."""
    return isinstance(inspect.getattr_static(type(value), name, None), types.MemberDescriptorType)


def global_location(namespace: dict[str, Any], name: str) -> Location:
    return _Name(namespace, name, name)


def cell_location(cell: types.CellType, name: str) -> Location:
    return _Cell(cell, None, name)
