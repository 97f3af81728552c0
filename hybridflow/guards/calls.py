"""Calls: what is noted before something is called, and by what it is called in its place while recording.

Functions of the user's are followed, and called as they are; for the rest see ``consuming``, ``classes`` and
``c_calls``.
"""

from __future__ import annotations

import functools
import operator
import types
import weakref
from collections.abc import Callable
from typing import Any

from hybridflow import code_traits
from hybridflow.core.call_binding import name_of, unwrapped
from hybridflow.eager.public_op import PublicOp
from hybridflow.effects.printing import print as hf_print
from hybridflow.guards import c_function_models
from hybridflow.guards.attribute_reads import (
    in_class,
)
from hybridflow.guards.c_calls import (
    BUILTIN,
    DESCRIPTORS,
    builtin,
    call_lru_cache,
    dereference,
    descriptor,
    getter,
    logs,
    prints,
)
from hybridflow.guards.class_calls import class_
from hybridflow.guards.code_ownership import is_recorded, is_users_class
from hybridflow.guards.container_reads import (
    before_operator,
    consume,
    read_items,
    read_state,
)
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.guards.instrumented_code import follow
from hybridflow.guards.module_reads import NOTED
from hybridflow.guards.opaque_calls import Consuming, is_pure, is_python, is_stateful, unknown
from hybridflow.runtime.calls.entry import Dispatcher


def prepare(recording: GuardBuilder, f: Any) -> Any:
    """Note what calling ``f`` is known to read; what to call."""
    kind = type(f)
    if kind is types.FunctionType:
        return _python(recording, f)
    if kind is types.MethodType:
        return _guard_bound_method(recording, f)
    if isinstance(f, type):
        return class_(recording, f)
    if isinstance(f, BUILTIN):
        return builtin(recording, f)
    if isinstance(f, DESCRIPTORS):
        return descriptor(recording, f)
    if isinstance(f, functools.partial) and in_class(kind, "__call__") is functools.partial.__call__:
        if kind is not functools.partial:
            before_operator(recording, f, "__call__")  # which its class may be given later
        return _partial(recording, f)
    if kind is functools._lru_cache_wrapper:
        return functools.partial(call_lru_cache, recording, f)
    if isinstance(f, PublicOp):
        return prepare(recording, f.__wrapped__)
    if isinstance(f, Dispatcher):
        prepare(recording, unwrapped(f)[0])
        return f
    if isinstance(f, weakref.ref):
        return functools.partial(dereference, recording, f)
    if kind in (operator.attrgetter, operator.itemgetter, operator.methodcaller):
        return functools.partial(getter, recording, f)
    if is_users_class(kind) or is_python(in_class(kind, "__call__")):
        before_operator(recording, f, "__call__")
        return f
    if not callable(f):
        return f  # the call will say so
    read_state(recording, f)
    if is_pure(recording, kind.__module__ or "", name_of(f)):
        return Consuming(recording, f)
    return unknown(recording, f)


def _python(recording: GuardBuilder, f: types.FunctionType) -> Consuming | Callable[..., Any]:
    if is_recorded(f.__code__):
        follow(recording, f)
        return f
    noted = NOTED.get(f)
    if noted is not None:
        return functools.partial(noted, recording)
    wrapped = getattr(f, "__wrapped__", None)  # a library's decorator around the user's function
    if isinstance(wrapped, types.FunctionType):
        prepare(recording, wrapped)
    module = f.__globals__.get("__name__", "")  # a decorator may have given the function another
    if f is hf_print:
        return functools.partial(prints, recording, f)
    if is_pure(recording, module, f.__name__):
        traits = code_traits.of_module(module).union(code_traits.of_function(f))
        return Consuming(recording, f, "makes tensors" in traits, "quiet" in traits)
    return unknown(recording, f)


def _guard_bound_method(recording: GuardBuilder, method: types.MethodType) -> Consuming | Callable[..., Any]:
    slot = recording.slot_of(method)
    if slot is not None:
        text = recording.texts[slot]
        recording.guard_read(slot, "attribute", "__func__", method.__func__, f"{text}.__func__")
        recording.guard_read(slot, "attribute", "__self__", method.__self__, f"{text}.__self__")
    function, owner = method.__func__, type(method.__self__).__module__ or ""
    if isinstance(function, PublicOp):
        function = function.__wrapped__
    if isinstance(function, functools._lru_cache_wrapper):
        return functools.partial(call_lru_cache, recording, function, method.__self__)
    if is_python(function):
        follow(recording, function)
        return method
    if isinstance(function, Dispatcher):
        prepare(recording, function)
        return method
    name = name_of(method)
    if getattr(function, "__module__", None) == "logging" and (
        name in c_function_models.LEVELS or name in ("log", "isEnabledFor")
    ):
        return logs(recording, method)
    wrapped = getattr(function, "__wrapped__", None)  # a library's decorator around the user's function
    if isinstance(wrapped, types.FunctionType):
        prepare(recording, wrapped)
    if is_stateful(owner) or not is_pure(recording, getattr(function, "__module__", None) or owner, name):
        return unknown(recording, method)
    consume(recording, method.__self__, whole=True)
    return Consuming(recording, method)


def _partial(recording: GuardBuilder, f: Any) -> Any:
    slot = recording.slot_of(f)
    if slot is not None:
        text = recording.texts[slot]
        recording.guard_read(slot, "attribute", "func", f.func, f"{text}.func")
        for name in ("args", "keywords"):
            held = getattr(f, name)
            recording.guard_read(slot, "attribute", name, held, f"{text}.{name}")
            read_items(recording, held)
    called = prepare(recording, f.func)
    return f if called is f.func else functools.partial(called, *f.args, **f.keywords)
