"""Calls of what is known to read its arguments alone, and of what may do anything.

What is written in C, or belongs to a library, is called through ``Consuming``, which notes all that it may read of its
arguments; what may do anything else is a reason not to use the trace again.
"""

from __future__ import annotations

import functools
import operator
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybridflow import code_traits
from hybridflow.autograph.runtime import branch_stack
from hybridflow.core.call_binding import name_of
from hybridflow.errors import ConcretizationError
from hybridflow.guards import c_function_models
from hybridflow.guards.attribute_reads import note_mro
from hybridflow.guards.code_ownership import is_recorded
from hybridflow.guards.container_reads import (
    consume,
    is_plain,
    read_text,
)
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.guards.value_checks import ATOMS


def is_python(f: object) -> bool:
    return isinstance(f, types.FunctionType) and is_recorded(f.__code__)


def is_pure(recording: GuardBuilder, module: str, name: str) -> bool:
    if module.startswith(c_function_models.IMPURE_MODULES) or "impure" in code_traits.of_module(module):
        return False
    known = module.partition(".")[0], name
    if known in c_function_models.PURE:
        return True
    is_module = c_function_models.is_pure_module(module, recording.pure_packages)
    return is_module and known not in c_function_models.IMPURE


def is_stateful(module: str) -> bool:
    """Whether instances of a library's class, given by its module, hold a state that their methods read and change."""
    return module in c_function_models.STATEFUL_TYPES or module.startswith("numpy.random")


def unknown(recording: GuardBuilder, f: Callable[..., Any]) -> Any:
    module = getattr(f, "__module__", None) or type(f).__module__
    name = name_of(f)
    calls = f"calls {name if module == 'builtins' else f'{module}.{name}'}"
    if branch_stack.depends_on_tensor():
        _check_conditional(f, module, calls)
    recording.reason(
        f"{calls}, whose result may differ each time", "call it outside and pass the result as an argument"
    )
    return Consuming(recording, f)


def _check_conditional(f: object, module: str, calls: str) -> None:
    """Raise ConcretizationError for what changes a state of the process or of a generator.  That is one that eager code
    would leave alone where the condition does not hold, and would change at each iteration."""
    modules = module, type(getattr(f, "__self__", None)).__module__
    if module == "_warnings" or any(m.startswith("numpy.random") or m in ("random", "_random") for m in modules):
        fix = "Call it outside of that block" + ("." if module == "_warnings" else ", or use hf.random.")
        raise ConcretizationError("convert", f"a block {calls} under a condition that is a tensor. {fix}")


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


class Consuming:
    """A callable that notes what may be read of its arguments, and calls another one.

    ``is_quiet`` says that the function itself calls nothing of the user's: then nothing is recorded while it runs,
    unless it is given something that it may call.
    """

    __slots__ = ("_function", "_is_live", "_is_quiet", "_recording")

    def __init__(
        self, recording: GuardBuilder, function: Callable[..., Any], is_live: bool = False, is_quiet: bool = False
    ) -> None:
        self._recording, self._function, self._is_live, self._is_quiet = recording, function, is_live, is_quiet

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        if self._recording.note(self._note, args, kwargs) and self._is_quiet:
            return self._recording.note(lambda _: self._function(*args, **kwargs))
        if _calls_at_once(self._function):
            args = tuple([self._called(value) for value in args])
            kwargs = {name: self._called(value) for name, value in kwargs.items()}
        return self._function(*args, **kwargs)

    def _called(self, value: object) -> Any:
        """What a function that calls ``value`` is given in its place."""
        replaced = value is type or isinstance(value, _REPLACED)
        return self._recording.note(self._recording.prepare, value) if replaced else value

    def _note(self, recording: GuardBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether the function is given nothing that it may call."""
        values = [value for value in (*args, *kwargs.values()) if type(value) not in ATOMS]
        f = self._function
        whole = (getattr(f, "__module__", None) or "builtins") not in c_function_models.LOOKING_MODULES
        names_attributes = getattr(f, "__name__", "") in ("format", "format_map")  # in the fields of the text
        if names_attributes and any(isinstance(value, (type, types.ModuleType)) for value in values):
            recording.reason("formats the attributes of a class or a module", "read them into variables first")
        for value in values:
            if names_attributes or any(f is method for method in _TEXTS):
                read_text(recording, value)
            consume(recording, value, live=self._is_live, whole=whole or names_attributes)
            if whole and isinstance(value, type):
                note_mro(recording, value)
        return all(map(is_plain, values))


def _calls_at_once(f: object) -> bool:
    """Whether a function calls what it is given, and keeps it no longer than that."""
    return (getattr(f, "__module__", None) or "", getattr(f, "__name__", "")) in c_function_models.CALL_AT_ONCE
