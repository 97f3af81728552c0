"""Objects that hold a state in C, which neither their dict nor their slots show: files, queues, contexts, exceptions.

The user's class may extend such a class, and the instance then has a dict besides.
"""

from __future__ import annotations

import decimal
import functools
import threading
import types
import weakref
from typing import Any

from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.guards import c_function_models
from hybridflow.guards.attribute_reads import IMMUTABLE
from hybridflow.guards.code_ownership import is_of_hybridflow
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.guards.value_checks import SameResult
from hybridflow.runtime.calls.entry import Dispatcher

# Classes whose instances show what they hold, or which are looked at in ways of their own.
_SHOWN = (BaseException, types.SimpleNamespace, threading.local, weakref.ref, functools.partial)
_SHOWN_WHOLLY = (Tensor, Variable, Dispatcher, type, types.ModuleType)
_WITH_STATE = frozenset((("_sre", "SRE_Scanner"), ("functools", "_lru_cache_wrapper"), ("decimal", "SignalDictMixin")))


def is_written_in_c(kind: type) -> bool:
    return bool(kind.__flags__ & IMMUTABLE) or isinstance(kind.__dict__.get("__new__"), types.BuiltinFunctionType)


def hiding_base(recording: GuardBuilder, kind: type) -> type | None:
    """The class written in C, among a class and its bases, whose instances hold a state that nothing shows."""
    if issubclass(kind, _SHOWN_WHOLLY):
        return None
    for base in kind.__mro__:
        if base is object or issubclass(base, _SHOWN) or not is_written_in_c(base) or is_of_hybridflow(base):
            continue
        module: str = base.__module__ or ""
        is_known = c_function_models.is_pure_module(module, recording.pure_packages)
        if not is_known or module.startswith("numpy.random") or (module, base.__name__) in _WITH_STATE:
            return base
    return None


def note_c_state(recording: GuardBuilder, value: object) -> bool:
    """Note the state in C of an outside object; whether it has one that no guard can watch."""
    slot = recording.slot_of(value)
    if slot is None:
        return False
    if isinstance(value, decimal.Context):
        note_context(recording, slot, value)
        return False
    base = hiding_base(recording, type(value))
    if base is None:
        return False
    text = f"uses an object of {base.__module__}.{base.__name__}, whose state is not known"
    recording.reason(text, "use it outside and pass the result")
    return True


def note_context(recording: GuardBuilder, slot: int, context: object, get: Any = lambda held: held) -> None:
    """Note how a decimal context rounds; ``get`` finds it in what the slot holds."""

    def text(held: object) -> str:
        one = get(held)
        return repr((one.prec, one.rounding, one.Emin, one.Emax, one.clamp, one.capitals, one.traps))

    recording.add_guard(slot, "call", SameResult(text, text(context)), "context")


def fields_of_exceptions(kind: type) -> list[str]:
    """Names of what exceptions of a class hold in C."""
    kinds = types.GetSetDescriptorType, types.MemberDescriptorType
    bases = [base for base in kind.__mro__ if base.__flags__ & IMMUTABLE]
    return [
        name for base in bases for name, part in base.__dict__.items() if isinstance(part, kinds) and name[0] != "_"
    ]
