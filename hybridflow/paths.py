"""Paths: ways from a global name, a closure cell or an instance to a value, and guards on what lies along them.

Paths are followed without running the user's code: properties and ``__getattr__`` are not called.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.runtime.guards import Step


class _Missing:
    """Stands for a value that is not there."""

    def __repr__(self) -> str:
        return "missing"


MISSING = _Missing()


class Path:
    """A way to a value: a root (see ``Root``), then attributes and constant subscripts."""

    __slots__ = ("root", "steps", "text")

    def __init__(self, root: Root, steps: tuple[tuple[str, Any], ...] = (), text: str = "") -> None:
        self.root, self.steps = root, steps
        self.text = text or root.name

    def then(self, kind: str, what: Any) -> Path:
        step = f".{what}" if kind == "attribute" else f'["{what}"]' if isinstance(what, str) else f"[{what!r}]"
        return Path(self.root, (*self.steps, (kind, what)), self.text + step)

    def value(self) -> Any:
        found = self.root.value()
        for kind, what in self.steps:
            found = attribute_of(found, what) if kind == "attribute" else _item_of(found, what)
            if found is MISSING:
                break
        return found

    def guard(self, guards: Guards) -> Any:
        """The value now, with native guards for every step on the way to it; MISSING where there can be none."""
        found = self.root.guard(guards)
        for kind, what in self.steps:
            owner = found
            found = attribute_of(owner, what) if kind == "attribute" else _item_of(owner, what)
            if found is MISSING:
                break
            if isinstance(found, types.MethodType):
                return found if guards.method(owner, what) else MISSING
            if kind == "attribute":
                guards.read("attribute", owner, what, found)
            elif type(owner) in (dict, list):
                guards.read("item" if type(owner) is dict else "index", owner, what, found)
        return found

    @property
    def identity(self) -> Any:
        return self.root.identity, self.steps


class Guards:
    """Steps for native code, made while paths are followed.  What is read is looked up again by its identity: two paths
    that share a beginning share its steps."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._slots: dict[int, int] = {}  # where the objects are, by id; the steps, or a weak root, keep them alive
        self._seen: set[tuple[str, int, Any]] = set()

    def root(self, value: Any) -> int:
        """The slot of an object that is at hand."""
        if id(value) not in self._slots:
            self._slots[id(value)] = self._add(Step("root", operand=value))
        return self._slots[id(value)]

    def weak_root(self, reference: Any) -> Any:
        """The object of a weak reference, which the guards do not keep alive."""
        value = reference()
        if id(value) not in self._slots:
            self._slots[id(value)] = self._add(Step("weak", operand=reference))
        return value

    def read(self, kind: str, owner: Any, what: Any, found: Any) -> None:
        """``found`` is what reading gives now, and must go on giving."""
        if (kind, id(owner), what) not in self._seen:
            self._seen.add((kind, id(owner), what))
            slot = self._add(Step(kind, self.root(owner), what, "is", found))
            self._slots.setdefault(id(found), slot)

    def length(self, value: Any) -> None:
        self._add(Step("slot", self.root(value), None, "length", len(value)))

    def method(self, owner: Any, name: str) -> bool:
        """Guard that ``owner.name`` is still the method of its class; a bound method itself is new each time."""
        function = getattr(type(owner), name, MISSING)
        if function is not getattr(type(owner), name, None):
            return False  # a method of the class itself
        self.read("attribute", type(owner), name, function)
        if getattr(owner, "__dict__", None) is not None:
            own = self._add(Step("own", self.root(owner)))
            self._add(Step("item", own, name, "absent"))
        return True

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1


def guard_contents(value: Any, guards: Guards) -> bool:
    """Guard what is in a list; False for contents that native code cannot compare."""
    if type(value) is list:
        guards.length(value)
        for k, item in enumerate(value):
            guards.read("index", value, k, item)
    if type(value) in (list, tuple):
        return all(guard_contents(item, guards) for item in value)
    return type(value) not in (dict, set, np.ndarray)


class GlobalRoot:
    """A global name of a module."""

    __slots__ = ("name", "namespace")

    def __init__(self, namespace: dict[str, Any], name: str) -> None:
        self.namespace, self.name = namespace, name

    def value(self) -> Any:
        return self.namespace.get(self.name, MISSING)

    def guard(self, guards: Guards) -> Any:
        found = self.value()
        if found is not MISSING:
            guards.read("item", self.namespace, self.name, found)
        return found

    @property
    def identity(self) -> Any:
        return id(self.namespace), self.name


class CellRoot:
    """A variable of an enclosing function."""

    __slots__ = ("cell", "name")

    def __init__(self, cell: types.CellType, name: str) -> None:
        self.cell, self.name = cell, name

    def value(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def guard(self, guards: Guards) -> Any:
        found = self.value()
        if found is not MISSING:
            guards.read("cell", self.cell, None, found)
        return found

    @property
    def identity(self) -> Any:
        return id(self.cell)


class InstanceRoot:
    """The instance of a method, held weakly."""

    __slots__ = ("name", "reference")

    def __init__(self, reference: Callable[[], Any], name: str) -> None:
        self.reference, self.name = reference, name

    def value(self) -> Any:
        return self.reference()

    def guard(self, guards: Guards) -> Any:
        return guards.weak_root(self.reference)

    @property
    def identity(self) -> Any:
        return id(self.reference())


Root = GlobalRoot | CellRoot | InstanceRoot


def in_class(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


def attribute_of(value: Any, name: str) -> Any:
    """The attribute as it is stored; MISSING when getting it would run code."""
    if isinstance(value, types.ModuleType):
        return value.__dict__.get(name, MISSING)
    if isinstance(value, type):
        found = in_class(value, name)
        return found.__func__ if isinstance(found, staticmethod) else found
    shared = in_class(type(value), name)
    if isinstance(shared, (types.MemberDescriptorType,)):
        return getattr(value, name, MISSING)
    if isinstance(shared, property) or (shared is not MISSING and hasattr(type(shared), "__set__")):
        return MISSING
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict) and name in own:
        return own[name]
    if isinstance(shared, (types.FunctionType, classmethod)):
        return getattr(value, name, MISSING)  # a bound method: binding runs none of the user's code
    if is_wrapper(shared):
        return types.MethodType(shared.unwrapped()[0], value)
    return shared.__func__ if isinstance(shared, staticmethod) else shared


def is_stored(value: Any, name: str) -> bool:
    """Whether an object or its class has the attribute, properties included."""
    own = getattr(value, "__dict__", None)
    return (own is not None and name in own) or in_class(
        value if isinstance(value, type) else type(value), name
    ) is not MISSING


def _item_of(value: Any, index: Any) -> Any:
    if type(value) not in (list, tuple, dict):
        return MISSING
    try:
        return value[index]
    except (LookupError, TypeError):
        return MISSING


def is_wrapper(value: Any) -> bool:
    """Whether it is an hf.function, or one bound to an instance: ``unwrapped()`` is (the user's function, a weak
    reference to the instance or None)."""
    return hasattr(type(value), "unwrapped")
