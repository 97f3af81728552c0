"""What a Python function reads from outside its arguments, so that a change of it is not overlooked.

A trace bakes in the Python values that it meets: module globals, closure cells, attributes of ``self``, elements of
lists.  They are found in the byte code of the function and of the user's functions that it calls, as paths such as
``CONFIG["rate"]`` or ``self.layers[0].units``.  The present values behind the paths are part of the cache key: another
value is another signature, as it would be another result in eager mode.

Paths are followed without running the user's code: properties and ``__getattr__`` are not called.  A path that goes
through a local variable or a call is not seen.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hybridflow import pytree
from hybridflow.errors import is_internal
from hybridflow.runtime.guards import AbsentGuard, AttributeGuard, CellGuard, Guard, ItemGuard, ListGuard
from hybridflow.spec import IdentityKey, LeafKey, ValueKey, value_key
from hybridflow.tensor import SymbolicTensor

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
_LIBRARIES = tuple(
    os.path.join(os.path.realpath(folder), "")
    for folder in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


class _Missing:
    """Stands for a value that is not there."""

    def __repr__(self) -> str:
        return "missing"


MISSING = _Missing()


class Path:
    """A way to a value: a root (see ``Environment``), then attributes and constant subscripts."""

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
                return found if _guard_method(owner, what, guards, self._guards_for(owner, guards)) else MISSING
            if kind == "attribute":
                self._guards_for(owner, guards).append(AttributeGuard(owner, what, found))
            elif type(owner) is dict:
                if not isinstance(what, str):
                    return MISSING
                guards.held.append(ItemGuard(owner, what, found))
            elif type(owner) is list:
                guards.held.append(ListGuard(owner, tuple(owner)))
        return found

    def _guards_for(self, owner: Any, guards: Guards) -> list[Guard]:
        """Where guards on ``owner`` go: those on the instance of a method must not keep it alive."""
        is_instance = isinstance(self.root, InstanceRoot) and owner is self.root.value()
        return guards.borrowed if is_instance else guards.held

    @property
    def identity(self) -> Any:
        return self.root.identity, self.steps


class Guards(NamedTuple):
    """For native code: guards that keep their objects alive, and guards on the instance of a method, which do not."""

    held: list[Guard]
    borrowed: list[Guard]


def _guard_method(owner: Any, name: str, guards: Guards, on_owner: list[Guard]) -> bool:
    """Guard that ``owner.name`` is still the method of its class; a bound method itself is new each time."""
    function, own = getattr(type(owner), name, MISSING), getattr(owner, "__dict__", None)
    if function is not getattr(type(owner), name, None):
        return False  # a method of the class itself
    guards.held.append(AttributeGuard(type(owner), name, function))
    if own is not None:
        on_owner.append(AbsentGuard(own, name))
    return True


def _guard_contents(value: Any, guards: Guards) -> bool:
    """Guard what is in a list; False for contents that native code cannot compare."""
    if type(value) is list:
        guards.held.append(ListGuard(value, tuple(value)))
    if type(value) in (list, tuple):
        return all(_guard_contents(item, guards) for item in value)
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
            guards.held.append(ItemGuard(self.namespace, self.name, found))
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
            guards.held.append(CellGuard(self.cell, found))
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
        return self.reference()  # always the same

    @property
    def identity(self) -> Any:
        return id(self.reference())


Root = GlobalRoot | CellRoot | InstanceRoot


def _in_class(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


def attribute_of(value: Any, name: str) -> Any:
    """The attribute as it is stored; MISSING when getting it would run code."""
    if isinstance(value, types.ModuleType):
        return value.__dict__.get(name, MISSING)
    if isinstance(value, type):
        found = _in_class(value, name)
        return found.__func__ if isinstance(found, staticmethod) else found
    shared = _in_class(type(value), name)
    if isinstance(shared, (types.MemberDescriptorType,)):
        return getattr(value, name, MISSING)
    if isinstance(shared, property) or (shared is not MISSING and hasattr(type(shared), "__set__")):
        return MISSING
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict) and name in own:
        return own[name]
    if isinstance(shared, (types.FunctionType, classmethod)):
        return getattr(value, name, MISSING)  # a bound method: binding runs none of the user's code
    if _is_wrapper(shared):
        return types.MethodType(shared.unwrapped()[0], value)
    return shared.__func__ if isinstance(shared, staticmethod) else shared


def _item_of(value: Any, index: Any) -> Any:
    if type(value) not in (list, tuple, dict):
        return MISSING
    try:
        return value[index]
    except (LookupError, TypeError):
        return MISSING


def _is_users(code: types.CodeType) -> bool:
    """Whether code is the user's own, whose constants may change, and not a library's."""
    filename = code.co_filename
    if is_internal(filename) or filename.startswith("<frozen"):
        return False
    return not os.path.realpath(filename).startswith(_LIBRARIES) if os.sep in filename else True


def _is_library_module(module: types.ModuleType) -> bool:
    filename = getattr(module, "__file__", None)
    if filename is None:
        return module.__name__ != "__main__" and module.__name__.partition(".")[0] in sys.stdlib_module_names
    return is_internal(filename) or os.path.realpath(filename).startswith(_LIBRARIES)


def _loads(code: types.CodeType) -> Iterator[tuple[str, str, tuple[tuple[str, Any], ...]]]:
    """Each chain of a name, attributes and constant subscripts that the code loads: (kind of name, name, steps)."""
    kind = name = ""
    steps: list[tuple[str, Any]] = []
    constant: Any = MISSING
    for instruction in dis.get_instructions(code):
        op, value = instruction.opname, instruction.argval
        if name and op in ("LOAD_ATTR", "LOAD_METHOD"):
            steps.append(("attribute", value))
            continue
        if name and op in ("LOAD_CONST", "LOAD_SMALL_INT"):
            if constant is MISSING and isinstance(value, (str, int)):
                constant = value
                continue
        elif name and constant is not MISSING and (op == "BINARY_SUBSCR" or instruction.argrepr == "[]"):
            steps.append(("item", constant))
            constant = MISSING
            continue
        if name:
            yield kind, name, tuple(steps)
        kind = name = ""
        constant = MISSING
        if op in ("LOAD_GLOBAL", "LOAD_NAME"):
            kind, name, steps = "global", value, []
        elif op.startswith(("LOAD_DEREF", "LOAD_FAST", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")):
            kind, name, steps = "local", value[-1] if isinstance(value, tuple) else value, []
    if name:
        yield kind, name, tuple(steps)


def _stored(code: types.CodeType) -> set[str]:
    """The local names that the code assigns to."""
    names: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith(("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")):
            value = instruction.argval
            names.update(value if isinstance(value, tuple) else (value,))
    return names


class Environment:
    """The paths that a callable reads, as far as they can be known before it runs."""

    __slots__ = ("_seen", "paths")

    def __init__(self, function: Callable[..., Any] | None) -> None:
        self.paths: list[Path] = []
        self._seen: set[Any] = set()
        if function is not None:
            self._callable(function, None)
        self._seen.clear()

    @property
    def identity(self) -> Any:
        """Equal for environments with the same paths."""
        return tuple([path.identity for path in self.paths])

    @property
    def names(self) -> list[str]:
        return [path.text for path in self.paths]

    def key(self) -> tuple[LeafKey, ...]:
        """What is behind the paths now."""
        return tuple([_key(path.value()) for path in self.paths])

    def guards(self, expected: tuple[LeafKey, ...]) -> Guards | None:
        """Native guards for the values of now, or None where native code cannot compare them.

        None as well when the values are not those of the key ``expected``.
        """
        if len(expected) != len(self.paths):
            return None  # of an earlier environment
        found = Guards([], [])
        for path, key in zip(self.paths, expected):
            value = path.guard(found)
            if value is MISSING or _key(value) != key or not _guard_contents(value, found):
                return None
        return found

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
        elif _is_wrapper(function):
            python, instance = function.unwrapped()
            if instance is None:
                self._callable(python, None)
            elif isinstance(python, types.FunctionType):
                self._function(python, Path(InstanceRoot(instance, _first_parameter(python))))
        else:
            call = _in_class(type(function), "__call__")
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
        if not _is_users(code):
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
        stored = _stored(code)
        inner = {name: path for name, path in scope.items() if name not in stored or name in code.co_freevars}
        for kind, name, steps in _loads(code):
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
            if isinstance(value, types.ModuleType) and _is_library_module(value):
                return
            longer = path.then(kind, what)
            found = longer.value()
            if found is MISSING:
                prop = _in_class(type(value), what) if kind == "attribute" else MISSING
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
        if isinstance(value, types.FunctionType) and not _is_users(value.__code__):
            self._callable(value, path)
            return
        self.paths.append(path)
        if callable(value) and not isinstance(value, type):
            self._callable(value, path)
        elif type(value) in (list, tuple):
            for k, item in enumerate(value[:_MOST_LEAVES]):
                if callable(item) and not isinstance(item, type):
                    self._callable(item, path.then("item", k))


NOTHING = Environment(None)


def _is_wrapper(value: Any) -> bool:
    """Whether it is an hf.function, or one bound to an instance: ``unwrapped()`` is (the user's function, a weak
    reference to the instance or None)."""
    return hasattr(type(value), "unwrapped")


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
