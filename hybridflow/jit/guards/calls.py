"""Calls: what is noted before something is called, and by what it is called in its place while recording.

Functions of the user's are followed, and called as they are.  What is written in C, or belongs to a library, is called
through ``_Consuming``, which notes all that it may read of its arguments; what may do anything else is a reason not to
use the trace again.
"""

from __future__ import annotations

import contextvars
import functools
import operator
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.core.context import current
from hybridflow.errors import TraceError
from hybridflow.jit.binding import name_of
from hybridflow.jit.guards import models
from hybridflow.jit.guards.attributes import (
    MISSING,
    before_attribute,
    in_class,
    lookup,
    read_attribute,
    read_plain_attribute,
)
from hybridflow.jit.guards.contents import (
    base_container,
    before_operator,
    consume,
    is_followed_class,
    is_plain,
    read_elements,
    read_item,
    read_items,
    read_length,
    read_state,
    read_text,
)
from hybridflow.jit.guards.libraries import is_recorded, is_users_class, is_users_function
from hybridflow.jit.guards.recognition import ATOMS, MAPPINGS, SameResult
from hybridflow.jit.guards.recording import Recording, caller_globals
from hybridflow.jit.guards.twins import follow
from hybridflow.runtime.calls.entry import Dispatcher
from hybridflow.tracing.symbolic import SymbolicTensor

_BUILTIN = (types.BuiltinFunctionType, types.MethodWrapperType)
_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)


def prepare(recording: Recording, f: Any) -> Any:
    """Note what calling ``f`` is known to read; what to call."""
    kind = type(f)
    if kind is types.FunctionType:
        return _python(recording, f)
    if kind is types.MethodType:
        return _bound(recording, f)
    if isinstance(f, type):
        return _class(recording, f)
    if isinstance(f, _BUILTIN):
        return _builtin(recording, f)
    if isinstance(f, _DESCRIPTORS):
        return _descriptor(recording, f)
    if kind is functools.partial:
        return _partial(recording, f)
    if kind is functools._lru_cache_wrapper:
        return functools.partial(_cached, recording, f)
    if isinstance(f, Dispatcher):
        prepare(recording, _python_of(f))
        return f
    if isinstance(f, weakref.ref):
        return functools.partial(_dereference, recording, f)
    if kind in (operator.attrgetter, operator.itemgetter, operator.methodcaller):
        return functools.partial(_getter, recording, f)
    if is_users_class(kind) or is_python(in_class(kind, "__call__")):
        before_operator(recording, f, "__call__")
        return f
    if not callable(f):
        return f  # the call will say so
    read_state(recording, f)
    if _is_pure(kind.__module__ or "", name_of(f)):
        return _Consuming(recording, f)
    return _unknown(recording, f)


def is_python(f: Any) -> bool:
    return isinstance(f, types.FunctionType) and is_recorded(f.__code__)


def _python_of(f: Any) -> Any:
    """The user's function behind an hf.function."""
    unwrapped = getattr(f, "unwrapped", None)
    return unwrapped()[0] if unwrapped is not None else f


def _python(recording: Recording, f: types.FunctionType) -> Any:
    if is_recorded(f.__code__):
        follow(recording, f)
        return f
    wrapped = getattr(f, "__wrapped__", None)  # a library's decorator around the user's function
    if isinstance(wrapped, types.FunctionType):
        prepare(recording, wrapped)
    module = f.__globals__.get("__name__", "")  # a decorator may have given the function another
    if _is_pure(module, f.__name__):
        ours = module.startswith("hybridflow.")
        live = module in models.TENSOR_MODULES or (ours and f.__name__ in models.TENSOR_FUNCTIONS)
        return _Consuming(recording, f, live, ours and module not in models.CALLING_MODULES)
    return _unknown(recording, f)


def _is_pure(module: str, name: str) -> bool:
    if module.startswith(models.IMPURE_MODULES):
        return False
    return models.is_pure_module(module) and (module.partition(".")[0], name) not in models.IMPURE


def _unknown(recording: Recording, f: Any) -> Any:
    module = getattr(f, "__module__", None) or type(f).__module__
    name = name_of(f)
    recording.reason(
        f"calls {name if module == 'builtins' else f'{module}.{name}'}, whose result may differ each time",
        "call it outside and pass the result as an argument",
    )
    return _Consuming(recording, f)


class _Consuming:
    """A callable that notes what may be read of its arguments, and calls another one.

    ``is_quiet`` says that the function itself calls nothing of the user's: then nothing is recorded while it runs,
    unless it is given something that it may call.
    """

    __slots__ = ("_function", "_is_live", "_is_quiet", "_recording")

    def __init__(
        self, recording: Recording, function: Callable[..., Any], is_live: bool = False, is_quiet: bool = False
    ) -> None:
        self._recording, self._function, self._is_live, self._is_quiet = recording, function, is_live, is_quiet

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._recording.note(self._note, args, kwargs) and self._is_quiet:
            return self._recording.note(lambda _: self._function(*args, **kwargs))
        if _calls_at_once(self._function):
            args = tuple([self._called(value) for value in args])
            kwargs = {name: self._called(value) for name, value in kwargs.items()}
        return self._function(*args, **kwargs)

    def _called(self, value: Any) -> Any:
        """What a function that calls ``value`` is given in its place."""
        replaced = value is type or isinstance(value, _REPLACED)
        return self._recording.note(prepare, value) if replaced else value

    def _note(self, recording: Recording, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether the function is given nothing that it may call."""
        values = [value for value in (*args, *kwargs.values()) if type(value) not in ATOMS]
        f = self._function
        whole = (getattr(f, "__module__", None) or "builtins") not in models.LOOKING_MODULES
        names_attributes = getattr(f, "__name__", "") in ("format", "format_map")  # in the fields of the text
        if names_attributes and any(isinstance(value, (type, types.ModuleType)) for value in values):
            recording.reason("formats the attributes of a class or a module", "read them into variables first")
        for value in values:
            if names_attributes or any(f is made for made in _TEXTS):
                read_text(recording, value)
            consume(recording, value, live=self._is_live, whole=whole or names_attributes)
        return all(map(is_plain, values))


_TEXTS = (str, repr, ascii, format)
_REPLACED = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    functools.partial,
    functools._lru_cache_wrapper,
    weakref.ref,
    operator.attrgetter,
    operator.itemgetter,
    operator.methodcaller,
)


def _calls_at_once(f: Any) -> bool:
    """Whether a function calls what it is given, and keeps it no longer than that."""
    return (getattr(f, "__module__", None) or "", getattr(f, "__name__", "")) in models.CALL_AT_ONCE


def _bound(recording: Recording, method: types.MethodType) -> Any:
    slot = recording.slot_of(method)
    if slot is not None:
        text = recording.texts[slot]
        recording.read(slot, "attribute", "__func__", method.__func__, f"{text}.__func__")
        recording.read(slot, "attribute", "__self__", method.__self__, f"{text}.__self__")
    function, owner = method.__func__, type(method.__self__).__module__ or ""
    if isinstance(function, functools._lru_cache_wrapper):
        return functools.partial(_cached, recording, function, method.__self__)
    if is_python(function):
        follow(recording, function)
        return method
    if isinstance(function, Dispatcher):
        prepare(recording, function)
        return method
    wrapped = getattr(function, "__wrapped__", None)  # a library's decorator around the user's function
    if isinstance(wrapped, types.FunctionType):
        prepare(recording, wrapped)
    if _is_stateful(owner) or not _is_pure(getattr(function, "__module__", None) or owner, name_of(method)):
        return _unknown(recording, method)
    consume(recording, method.__self__, whole=True)
    return _Consuming(recording, method)


def _is_stateful(module: str) -> bool:
    """Whether instances of a library's class, given by its module, hold a state that their methods read and change."""
    return module in models.STATEFUL_TYPES or module.startswith("numpy.random")


def _partial(recording: Recording, f: Any) -> Any:
    slot = recording.slot_of(f)
    if slot is not None:
        text = recording.texts[slot]
        recording.read(slot, "attribute", "func", f.func, f"{text}.func")
        for name in ("args", "keywords"):
            held = getattr(f, name)
            recording.read(slot, "attribute", name, held, f"{text}.{name}")
            read_items(recording, held)
    called = prepare(recording, f.func)
    return f if called is f.func else functools.partial(called, *f.args, **f.keywords)


def _class(recording: Recording, kind: type) -> Any:
    if kind is type:
        return functools.partial(_type_of, recording)
    if kind is super:
        return kind
    if is_users_class(kind) and is_followed_class(kind):
        call = in_class(type(kind), "__call__")
        if is_python(call):
            lookup(recording, type(kind), "__call__")
            follow(recording, call)
        return _constructor(recording, kind)(kind)
    if is_python(in_class(kind, "__init__")):
        follow(recording, in_class(kind, "__init__"))
        return kind
    module = kind.__module__ or ""
    if _is_stateful(module) or not _is_pure(module, kind.__name__):
        return kind if issubclass(kind, BaseException) else _unknown(recording, kind)
    return _Consuming(recording, kind)


def _constructor(recording: Recording, kind: type) -> Callable[[Any], Any]:
    """Note what making an instance of a user's class runs; how to call what makes it."""
    is_c = False
    for name in ("__new__", "__init__", "__post_init__"):
        function = lookup(recording, kind, name)
        function = function.__func__ if isinstance(function, staticmethod) else function
        if is_python(function):
            follow(recording, function)
        elif function is not MISSING and function is not object.__dict__[name]:
            is_c = True
    for field in getattr(kind, "__dataclass_fields__", {}).values():
        if callable(field.default_factory):
            prepare(recording, field.default_factory)
    return functools.partial(_Consuming, recording) if is_c else _as_it_is


def _as_it_is(f: Any) -> Any:
    return f


def _type_of(recording: Recording, *args: Any) -> Any:
    if len(args) == 1:
        recording.note(_note_class, args[0])
    return type(*args)


def _note_class(recording: Recording, value: Any) -> None:
    slot = recording.slot_of(value)
    if slot is not None:
        recording.read(slot, "class", None, type(value), f"type({recording.texts[slot]})")


# Functions written in C


def _builtin(recording: Recording, f: Any) -> Any:
    owner = f.__self__
    if owner is not None and not isinstance(owner, (types.ModuleType, type)):
        return _method(recording, f, owner)
    if f in _IDENTITY and current.trace is not None:
        current.trace.tells_apart = True
    name = f.__name__
    if isinstance(f, types.MethodWrapperType) and isinstance(owner, type):
        return _wrapper_of_class(recording, f, owner)
    module = f.__module__ or ("builtins" if owner is None else getattr(owner, "__module__", None) or "")
    if isinstance(owner, type):
        module = owner.__module__
    special = _SPECIAL.get(f) if module == "builtins" else None
    if special is not None:
        return functools.partial(special, recording)
    if f is globals or f is locals:
        recording.root(caller_globals(), "globals()")
        return f
    if f in _EXCEPTION_STATE:
        return functools.partial(_exception_state, recording, f)
    if (module, name) in models.OF_CALLER:
        _unknown(recording, f)
        return f  # it looks at the frame that calls it
    if (module, name) in models.EFFECTS:
        return functools.partial(_effect, recording, f)
    if _is_pure(module, name):
        return _Consuming(recording, f)
    return _unknown(recording, f)


def _wrapper_of_class(recording: Recording, f: Any, kind: type) -> Any:
    """A special method of a class's own class, as ``super().__call__`` in a metaclass finds it."""
    if f.__name__ == "__call__":
        return _constructor(recording, kind)(f)
    if f.__name__ == "__getattribute__":

        def get(attribute: str) -> Any:
            recording.note(read_attribute, kind, attribute, MISSING)
            return f(attribute)

        return get
    if f.__name__ in ("__setattr__", "__delattr__"):
        recording.effect(kind, "sets an attribute of {}")
    return _Consuming(recording, f)


def _descriptor(recording: Recording, f: Any) -> Any:
    """``list.append``, ``object.__setattr__``: methods taken from a class, which get their instance as an argument."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if f is object.__getattribute__ and len(args) == 2:
            recording.note(read_plain_attribute, *args)
            return f(*args)
        if f in (object.__setattr__, object.__delattr__) and args:
            recording.note(_note_write, args[0], str(args[1]) if len(args) > 1 else "")
            return f(*args)
        if args and not is_plain(args[0]):
            recording.note(_note_method, args[0], f.__name__, args[1:])
        return _Consuming(recording, f)(*args, **kwargs)

    return call


def _method(recording: Recording, f: Any, owner: Any) -> Any:
    """A method written in C, taken from its instance."""
    name = f.__name__
    if name == "__getattribute__" and not isinstance(f, types.BuiltinFunctionType):

        def get(attribute: str) -> Any:
            recording.note(read_plain_attribute, owner, attribute)
            return f(attribute)

        return get
    if name in ("__setattr__", "__delattr__"):
        _note_write(recording, owner, "an attribute")
        return f
    if name == "__get__" and isinstance(owner, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return lambda value, *kind: get_attribute(recording, value, owner.__name__)
    if isinstance(owner, contextvars.ContextVar):
        return _context_variable(recording, f, owner)
    if _is_stateful(type(owner).__module__ or ""):
        return _unknown(recording, f)
    if recording.slot_of(f) is not None and recording.slot_of(owner) is None:
        recording.root(owner, f"{recording.text_of(f)}.__self__")  # the method was kept, and its instance with it
    if name == "get" and base_container(owner) in MAPPINGS and not is_python(in_class(type(owner), "get")):
        return functools.partial(_get, recording, owner, f)
    _note_method(recording, owner, name, ())
    return _Consuming(recording, f)


def _note_method(recording: Recording, owner: Any, name: str, args: Any) -> None:
    """Note what a method written in C reads and changes of its instance."""
    outside = recording.slot_of(owner) is not None or recording.is_copy(owner)
    if not outside or is_plain(owner):
        return
    if isinstance(owner, np.ndarray):
        if name in models.ARRAY_MUTATORS:
            recording.effect(owner, f"calls {{}}.{name}")
        elif name in models.ARRAY_WRITERS:
            recording.reason(f"calls {name} of an array", "call it outside", is_effect=True)
        else:
            read_elements(recording, owner)
    elif base_container(owner) is not None:
        if name in models.MUTATORS:
            recording.effect(owner, f"calls {{}}.{name}")
        elif name == "__getitem__" and args:
            read_item(recording, owner, args[0], *_look_up(owner, args[0]))
        elif name in models.SHALLOW:
            read_items(recording, owner)
        else:
            consume(recording, owner)
    elif name in ("__next__", "send", "throw", "close"):
        recording.effect(owner, f"calls {{}}.{name}")
    elif is_users_class(type(owner)):
        consume(recording, owner)
    elif not _is_pure(type(owner).__module__ or "", name):
        recording.reason(
            f"calls {type(owner).__name__}.{name}, which is not known", "call it outside and pass the result"
        )


def _look_up(owner: Any, key: Any) -> tuple[Any, bool]:
    try:
        return owner[key], False
    except (LookupError, TypeError):
        return MISSING, True


def _get(recording: Recording, owner: Any, f: Any, key: Any, default: Any = None) -> Any:
    """``mapping.get``: one entry, or its absence."""
    recording.note(_note_entry, owner, key)
    return f(key, default)


def _note_entry(recording: Recording, owner: Any, key: Any) -> None:
    slot = recording.slot_of(owner)
    if slot is None:
        return
    found = dict.get(owner, key, MISSING)
    if found is MISSING:
        recording.absent(slot, "item", key, f"{recording.texts[slot]}[{key!r}]")
    else:
        read_item(recording, owner, key, found, False)


def _context_variable(recording: Recording, f: Any, variable: contextvars.ContextVar[Any]) -> Any:
    if f.__name__ != "get":
        recording.effect(variable, "changes the context variable {}")
        return f

    def get(*default: Any) -> Any:
        value = f(*default)
        recording.note(_note_result, variable, variable.name, lambda v: v.get(*default), value)
        return value

    return get


def _dereference(recording: Recording, reference: weakref.ref[Any]) -> Any:
    value = reference()
    recording.note(_note_result, reference, "a weak reference", lambda r: r(), value)
    return value


def _cached(recording: Recording, f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``functools.lru_cache``: what is in the cache counts, not what it was computed from."""
    value = recording.note(lambda _: f(*args, **kwargs))
    text = f.__wrapped__.__name__
    recording.note(_note_result, f, text, lambda g: g(*args, **kwargs), value, (args, tuple(kwargs.items())))
    return value


def _note_result(
    recording: Recording, source: Any, text: str, function: Callable[[Any], Any], value: Any, key: Any = None
) -> None:
    """What ``function(source)`` gave: asked again by a guard."""
    recording.check(recording.weak_root(source, text), "call", SameResult(function, value), ("result", key))
    if not is_plain(value):
        recording.weak_root(value, f"{text}()")


def _getter(recording: Recording, f: Any, value: Any) -> Any:
    """What ``operator.attrgetter``, ``itemgetter`` and ``methodcaller`` do, step by step."""
    _, args = f.__reduce__()[:2]
    if isinstance(f, operator.methodcaller):
        return recording.note(prepare, get_attribute(recording, value, args[0]))(*args[1:])
    found = []
    for name in args:
        part = value
        if isinstance(f, operator.attrgetter):
            for step in name.split("."):
                part = get_attribute(recording, part, step)
        else:
            part = get_item(recording, value, name)
        found.append(part)
    return found[0] if len(args) == 1 else tuple(found)


_EXCEPTION_STATE = frozenset(f for f in (sys.exc_info, getattr(sys, "exception", None)) if f is not None)


def _exception_state(recording: Recording, f: Any) -> Any:
    """``sys.exc_info``: that nothing is being handled can be asked again."""
    if sys.exc_info()[1] is None:
        recording.check(recording.root(f, f"sys.{f.__name__}"), "call", _nothing_is_handled)
    else:
        recording.note(_unknown, f)
    return f()


def _nothing_is_handled(_: Any) -> bool:
    return sys.exc_info()[1] is None


# Built-in functions that read one thing


def get_item(recording: Recording, value: Any, key: Any) -> Any:
    """``value[key]``, noted."""
    if isinstance(value, type):
        recording.note(before_operator, value, "__getitem__")
        return value[key]  # type: ignore[index]  # a generic class
    if type(key) not in ATOMS:
        recording.note(consume, key)
    if base_container(value) is None and not isinstance(value, np.ndarray):
        recording.note(read_item, value, key, None, False)
        return value[key]
    recording.note(before_operator, value, "__getitem__")
    was_missing = isinstance(value, dict) and not dict.__contains__(value, key)
    if was_missing:
        recording.note(read_item, value, key, None, True)
    try:
        given = value[key]
    except LookupError:
        recording.note(read_length, value)
        raise
    if not was_missing:
        recording.note(read_item, value, key, given, False)
    return given


def get_attribute(recording: Recording, value: Any, name: str, *default: Any) -> Any:
    """``getattr``, noted."""
    if type(name) is not str:
        return getattr(value, name, *default)
    recording.note(before_attribute, value, name)
    try:
        given = getattr(value, name)
    except AttributeError:
        recording.note(read_attribute, value, name, MISSING)
        if default:
            return default[0]
        raise
    recording.note(read_attribute, value, name, given)
    return given


def _hasattr(recording: Recording, value: Any, name: str) -> bool:
    return get_attribute(recording, value, name, MISSING) is not MISSING


def _note_write(recording: Recording, value: Any, name: str) -> None:
    if recording.slot_of(value) is not None:
        recording.effect(value, f"sets {{}}.{name}")


def _setattr(recording: Recording, value: Any, name: str, new: Any) -> None:
    recording.note(_note_write, value, name)
    recording.note(before_operator, value, "__setattr__")
    setattr(value, name, new)


def _delattr(recording: Recording, value: Any, name: str) -> None:
    recording.note(_note_write, value, name)
    recording.note(before_operator, value, "__delattr__")
    delattr(value, name)


def _isinstance(recording: Recording, value: Any, kinds: Any) -> bool:
    recording.note(_note_class, value)
    return _ask_kinds(recording, isinstance, value, kinds)


def _issubclass(recording: Recording, value: Any, kinds: Any) -> bool:
    return _ask_kinds(recording, issubclass, value, kinds)


def _ask_kinds(recording: Recording, question: Callable[..., bool], value: Any, kinds: Any) -> bool:
    """``isinstance`` and ``issubclass``: metaclasses of the user's are recorded as they answer; those of libraries are
    asked again by a guard, since abstract base classes may come to know a class, and protocols look at the instance."""
    asked = []
    for kind in _each_kind(kinds):
        answers = in_class(type(kind), _HOOKS[question])
        if is_users_function(answers):
            recording.note(before_operator, kind, "__instancecheck__", "__subclasscheck__")
        elif type(kind) is not type:
            asked.append(kind)
    found = question(value, kinds)
    if asked:
        recording.note(_note_kinds, question, value, kinds, asked, found)
    return found


_HOOKS: dict[Any, str] = {isinstance: "__instancecheck__", issubclass: "__subclasscheck__"}


def _each_kind(kinds: Any) -> Iterator[Any]:
    """The classes among what ``isinstance`` takes: a class, a tuple of such, a union."""
    if isinstance(kinds, (tuple, types.UnionType)):
        for part in kinds if isinstance(kinds, tuple) else kinds.__args__:
            yield from _each_kind(part)
    else:
        yield kinds


def _note_kinds(
    recording: Recording, question: Callable[..., bool], value: Any, kinds: Any, asked: list[Any], found: bool
) -> None:
    if question is isinstance and recording.slot_of(value) is None:  # made by the trace: what counts is its class
        question, value = issubclass, type(value)
        if any(getattr(kind, "_is_protocol", False) for kind in asked):
            return
    slot = recording.root(value, value.__name__) if question is issubclass else recording.slot_of(value)
    check = SameResult(lambda v: question(v, kinds), found)
    recording.check(slot or 0, "call", check, (question.__name__, *map(id, asked)))


def _len(recording: Recording, value: Any) -> int:
    recording.note(_note_length, value)
    return len(value)


def _note_length(recording: Recording, value: Any) -> None:
    if base_container(value) is not None and not isinstance(in_class(type(value), "__len__"), types.FunctionType):
        read_length(recording, value)
    elif isinstance(value, np.ndarray):
        read_attribute(recording, value, "shape", value.shape)
    else:
        before_operator(recording, value, "__len__")


def _vars(recording: Recording, *args: Any) -> Any:
    if args:
        return get_attribute(recording, args[0], "__dict__")
    raise TraceError(recording.name, "vars() without an argument cannot be used here. Use locals().")


def _iter(recording: Recording, value: Any, *sentinel: Any) -> Any:
    recording.note(iterate, value)
    return iter(value, *sentinel)


def _next(recording: Recording, iterator: Any, *default: Any) -> Any:
    recording.note(_note_next, iterator)
    return next(iterator, *default)


def _note_next(recording: Recording, iterator: Any) -> None:
    if recording.slot_of(iterator) is not None:
        recording.effect(iterator, "takes an item from {}, which outlives the call")
    before_operator(recording, iterator, "__next__")


def _effect(recording: Recording, f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``print``: done now, and again at each call."""
    if any(isinstance(value, SymbolicTensor) for value in (*args, *kwargs.values())):
        raise TraceError(
            recording.name,
            f"{f.__name__} of a tensor in a compiled function: it has no value while tracing. Return it and "
            f"{f.__name__} the result, or debug with hf.config.run_functions_eagerly(True).",
        )
    recording.reason(f"calls {f.__name__}", "leave it out of the compiled function", is_effect=True)
    return _Consuming(recording, f)(*args, **kwargs)


def iterate(recording: Recording, value: Any) -> None:
    """Note what iterating over a value reads."""
    if is_plain(value):
        return
    if isinstance(value, np.ndarray):
        read_elements(recording, value)
    elif base_container(value) is not None and not isinstance(in_class(type(value), "__iter__"), types.FunctionType):
        if recording.slot_of(value) is not None:
            read_items(recording, value)
    elif hasattr(type(value), "__next__") and recording.slot_of(value) is not None:
        recording.effect(value, "takes items from {}, which outlives the call")
        before_operator(recording, value, "__iter__", "__next__")
    else:
        before_operator(recording, value, "__iter__", "__next__", "__getitem__", "__len__", "keys")


_IDENTITY = (id, operator.is_, operator.is_not)
_SPECIAL: dict[Any, Callable[..., Any]] = {
    getattr: get_attribute,
    hasattr: _hasattr,
    setattr: _setattr,
    delattr: _delattr,
    isinstance: _isinstance,
    issubclass: _issubclass,
    len: _len,
    vars: _vars,
    iter: _iter,
    next: _next,
}
