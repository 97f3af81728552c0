"""What a Python function reads from outside its arguments, so that a change of it is not overlooked.

A trace bakes in the Python values that it meets: module globals, closure cells, attributes of ``self``, elements of
lists.  They are found in the byte code of the function and of the user's functions that it calls, as paths such as
``CONFIG["rate"]`` or ``self.layers[0].units``.  The present values behind the paths are part of the cache key: another
value is another signature, as it would be another result in eager mode.

Where an object of a user's class is used in a way that the byte code does not tell (it is an argument, has another
name, is an element in a loop), all its attributes whose names occur anywhere in that code count as read.  What a call
returns is not seen.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow import pytree
from hybridflow.bytecode import is_library_module, is_users, is_users_class, loads, names, stored
from hybridflow.paths import (
    MISSING,
    CellRoot,
    GlobalRoot,
    Guards,
    InstanceRoot,
    Path,
    guard_contents,
    in_class,
    is_stored,
    is_wrapper,
)
from hybridflow.runtime.guards import Step
from hybridflow.spec import IdentityKey, LeafKey, ValueKey, value_key
from hybridflow.tensor import SymbolicTensor, Tensor
from hybridflow.variable import Variable

_MOST_PATHS = 500  # of one function: beyond, code is not followed further
_MOST_LEAVES = 256  # of a container whose contents are compared
_MOST_BYTES = 4096  # of an array whose contents are compared

_NEVER_CHANGE = (
    types.ModuleType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    np.ufunc,
)


class Environment:
    """The paths that a callable reads, as far as they can be known before it runs."""

    __slots__ = ("_arguments", "_names", "_opaque", "_seen", "paths")

    def __init__(self, function: Callable[..., Any] | None) -> None:
        self.paths: list[Path] = []
        self._names: set[str] = set()  # that occur in the code
        self._opaque: list[Path] = []  # objects of which any attribute may be read
        self._arguments: dict[int, tuple[weakref.ref[Any], Environment]] = {}
        self._seen: set[Any] = set()
        if function is not None:
            self._callable(function, None)
        self._expand()

    def _of_argument(self, value: Any) -> Environment:
        """What the function reads from an object that it is given; found once per object."""
        known = self._arguments.get(id(value))
        if known is not None and known[0]() is value:
            return known[1]
        found = Environment(None)
        found._names = set(self._names)
        arguments, number = self._arguments, id(value)
        reference = weakref.ref(value, lambda _: arguments.pop(number, None))
        found._reads(Path(InstanceRoot(reference, "argument")), value)
        found._expand()
        arguments[number] = reference, found
        return found

    def names(self, objects: Sequence[Any]) -> list[str]:
        """What the entries of a key are called."""
        inside = [path.text for value in objects for path in self._of_argument(value).paths]
        return [path.text for path in self.paths] + inside

    def key(self, objects: Sequence[Any] = ()) -> tuple[LeafKey, ...]:
        """What is behind the paths now, those into the argument ``objects`` included."""
        own = tuple([_key(path.value()) for path in self.paths])
        return sum([self._of_argument(value).key() for value in objects], own)

    def guards(self, expected: tuple[LeafKey, ...]) -> list[Step] | None:
        """Native guards for the values of now, or None where native code cannot compare them.

        None as well when the values are not those of the key ``expected``.
        """
        if len(expected) != len(self.paths):
            return None  # of an earlier environment
        found = Guards()
        for path, key in zip(self.paths, expected):
            value = path.guard(found)
            if value is MISSING or _key(value) != key or not guard_contents(value, found):
                return None
        return found.steps

    # Search

    def _callable(self, function: Any, path: Path | None) -> None:
        """Follow what calling ``function``, found at ``path``, reads."""
        if isinstance(function, functools.partial):
            self._callable(function.func, None)
            return
        if isinstance(function, types.FunctionType):
            self._function(function, None)
        elif isinstance(function, types.MethodType):
            owner = Path(path.root, path.steps[:-1], path.text.rpartition(".")[0]) if path and path.steps else None
            self._method(function.__func__, function.__self__, owner)
        elif is_wrapper(function):
            python, instance = function.unwrapped()
            if instance is None:
                self._callable(python, None)
            elif isinstance(python, types.FunctionType):
                self._function(python, Path(InstanceRoot(instance, _first_parameter(python))))
        else:
            call = in_class(type(function), "__call__")
            if isinstance(call, types.FunctionType):
                self._method(call, function, path)

    def _method(self, function: Any, instance: Any, path: Path | None) -> None:
        if isinstance(function, types.FunctionType) and not isinstance(instance, type):
            try:
                reference = weakref.ref(instance)
            except TypeError:
                return
            self._function(function, path or Path(InstanceRoot(reference, _first_parameter(function))))

    def _function(self, function: types.FunctionType, self_path: Path | None) -> None:
        code = function.__code__
        if not is_users(code):
            wrapped = getattr(function, "__wrapped__", None)  # a library's decorator around the user's function
            if wrapped is not None:
                self._callable(wrapped, None)
            return
        seen = (code, id(function.__closure__), self_path.identity if self_path else None)
        if seen in self._seen or len(self.paths) >= _MOST_PATHS:
            return
        self._seen.add(seen)
        scope: dict[str, Path] = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            scope[name] = Path(CellRoot(cell, name))
        if self_path is not None and code.co_argcount:
            scope[code.co_varnames[0]] = self_path
        self._code(code, function.__globals__, scope)

    def _code(self, code: types.CodeType, namespace: dict[str, Any], scope: dict[str, Path]) -> None:
        assigned = stored(code)
        inner = {name: path for name, path in scope.items() if name not in assigned or name in code.co_freevars}
        self._names |= names(code)
        for kind, name, steps in loads(code):
            path = inner.get(name) if kind == "local" else Path(GlobalRoot(namespace, name))
            if path is not None:
                self._chain(path, steps)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):  # lambdas, comprehensions and inner functions
                own = set(constant.co_varnames) - set(constant.co_freevars)
                self._code(constant, namespace, {n: p for n, p in inner.items() if n not in own})

    def _chain(self, path: Path, steps: tuple[tuple[str, Any], ...]) -> None:
        """Guard what a chain leads to, and follow it where it is code."""
        value = path.value()
        for kind, what in steps:
            if isinstance(value, types.ModuleType) and is_library_module(value):
                return
            if type(value) in _READERS and kind == "attribute":
                if what in _READERS[type(value)]:
                    self._guard(path, value)
                return
            longer = path.then(kind, what)
            found = longer.value()
            if found is MISSING:
                prop = in_class(type(value), what) if kind == "attribute" else MISSING
                if isinstance(prop, property) and isinstance(prop.fget, types.FunctionType):
                    self._function(prop.fget, path)
                if kind == "attribute" and (prop is not MISSING or value is MISSING):
                    return  # a property, or an attribute of nothing
                if kind == "attribute" and not hasattr(value, "__dict__"):
                    return
            path, value = longer, found
        self._guard(path, value)

    def _guard(self, path: Path, value: Any) -> None:
        if path.identity in self._seen or len(self.paths) >= _MOST_PATHS:
            return
        self._seen.add(path.identity)
        if value is MISSING and isinstance(path.root, GlobalRoot) and not path.steps:
            return  # a builtin
        if isinstance(value, _NEVER_CHANGE):
            return
        if isinstance(value, types.FunctionType) and not is_users(value.__code__):
            self._callable(value, path)
            return
        self.paths.append(path)
        self._reads(path, value)

    def _reads(self, path: Path, value: Any) -> None:
        """Note what may be read of a value when all that is known is that it is used."""
        if type(value) in (list, tuple):
            for k, item in enumerate(value[:_MOST_LEAVES]):
                self._reads(path.then("item", k), item)
        elif type(value) is dict:
            for k, item in list(value.items())[:_MOST_LEAVES]:
                if type(k) in (str, int):
                    self._reads(path.then("item", k), item)
        else:
            if callable(value) and not isinstance(value, type):
                self._callable(value, path)
            if _is_users_object(value):
                self._opaque.append(path)

    def _expand(self) -> None:
        """Guard the attributes of opaque objects whose names occur in the code; what they lead to adds to both."""
        tried: set[tuple[Any, str]] = set()
        while found := [(p, n) for p in self._opaque for n in sorted(self._names) if (p.identity, n) not in tried]:
            for path, name in found:
                tried.add((path.identity, name))
                if is_stored(path.value(), name):
                    self._chain(path, (("attribute", name),))
        self._opaque.clear()
        self._seen.clear()


NOTHING = Environment(None)

# Methods of containers that read what is in them.
_READERS: dict[type, set[str]] = {
    list: {"copy", "count", "index"},
    dict: {"copy", "get", "items", "keys", "values"},
    tuple: {"count", "index"},
    set: {"copy", "issubset", "issuperset"},
}
_NO_STATE = (types.ModuleType, types.FunctionType, types.MethodType, functools.partial, Tensor, Variable, weakref.ref)


def _is_users_object(value: Any) -> bool:
    """Whether it is an object, or a class, whose attributes the user may change."""
    if isinstance(value, _NO_STATE) or is_wrapper(value):
        return False
    return is_users_class(value if isinstance(value, type) else type(value))


def _first_parameter(function: types.FunctionType) -> str:
    return function.__code__.co_varnames[0] if function.__code__.co_argcount else "self"


def _key(value: Any) -> LeafKey:
    """The key of an outside value: by value where it is plain data, else by identity."""
    plain = value_key(value)
    if plain is not None:
        return plain
    if value is MISSING:
        return ValueKey(value, None)
    if isinstance(value, types.MethodType):
        value = value.__func__
    kind = type(value)
    if isinstance(value, np.generic) or (
        kind is np.ndarray and value.nbytes <= _MOST_BYTES and not value.dtype.hasobject
    ):
        bits = value.shape, value.dtype.str, value.tobytes()
        return ValueKey(value, bits, f"array {value.dtype}{list(value.shape)}")
    if kind in (list, tuple, dict):
        leaves, structure = pytree.flatten(value)
        if len(leaves) <= _MOST_LEAVES:
            return ValueKey(value, (structure, tuple(map(_leaf_key, leaves))), f"of {len(value)}")
    if kind in (set, frozenset) and len(value) <= _MOST_LEAVES:
        return ValueKey(value, frozenset(map(_leaf_key, value)), f"of {len(value)}")
    if isinstance(value, SymbolicTensor):
        return ValueKey(value, None, "left by a trace")
    return _leaf_key(value)


def _leaf_key(value: Any) -> LeafKey:
    plain = value_key(value)
    if plain is not None:
        return plain
    try:
        return IdentityKey(value)
    except TypeError:
        return ValueKey(value, None, "object")  # cannot be told from others of its type
