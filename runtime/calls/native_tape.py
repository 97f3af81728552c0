"""Tapes in native code: what opens, closes and asks them at the price of a call.

Each method is there in Python too, which answers whatever native code does not know, and which is all there is where
native code cannot run.  A native one is over before the interpreter looks for signals again: an interrupt leaves no
tape open.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hybridflow import flags
from hybridflow.errors import CompileError
from hybridflow.runtime import fork_safe_locks, uninterruptible
from hybridflow.runtime.calls import background_code, entry, front_end, tape_log
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.native import native_functions, object_layout
from hybridflow.runtime.native.records import Offsets, PassOffsets

if TYPE_CHECKING:
    from hybridflow.runtime.calls.native_call import NativeCall


_METHODS = ("__enter__", "__exit__", "watch", "gradient")
_LOG = ("entry", "place", "track")  # functions on logs, see ``tape_log.natives``
_NAMES = ("_enter", "_exit", "_watch", "_gradient")  # the same methods in Python, whose addresses native code holds


class BackwardPass:
    """A backward pass that native code may do: the call ``_native``, None where Python has to do it, on the values of
    the log whose ``_numbers`` are given, in 64 bits each.  Its results are those of the sources, in order."""

    __slots__ = ("_native", "_numbers")
    _native: NativeCall | None
    _numbers: bytes


def make_native(tape_type: type[tape_log.Recording], passes: dict[bytes, Any]) -> bool:
    """Let native code answer the methods of a class, of which there is one; whether it does.  ``passes`` holds a Pass
    for the words of a log and of what is asked for (see ``TapeLog._key``)."""
    addresses = _addresses(passes)
    if addresses is None:
        return False
    for name in _METHODS:
        symbol = name.strip("_")
        behind = getattr(tape_type, f"_{symbol}")
        definition = native_functions.method_def(name, addresses[symbol], keywords=True, doc=_documented(name, behind))
        setattr(tape_type, name, native_functions.method(definition, tape_type))
    return True


def _documented(name: str, method: Callable[..., Any]) -> str:
    """The docstring of a native method, which begins with what ``inspect.signature`` makes of one."""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(method).parameters.values()]
    signature = str(inspect.Signature(parameters)).replace("(self", "($self", 1)
    return f"{name}{signature}\n--\n\n{inspect.getdoc(method) or ''}"


def is_ready(passes: dict[bytes, Any]) -> bool:
    """Whether ``make_native`` does not wait, or is to; else what it needs is being compiled."""
    are_entries, is_own = entry.is_ready(), bool(_is_kept()) or _native_code(passes).is_ready()  # both begin
    return bool(_made) or (are_entries and is_own)


_made: list[dict[str, int]] = []
_making = fork_safe_locks.make()


def _addresses(passes: dict[bytes, Any]) -> dict[str, int] | None:
    """Addresses by symbol, or None where tapes stay in Python.  What native code needs may come later."""
    if not _made:
        uninterruptible.run_uninterruptible(lambda: _make(passes))
    return _made[0] if _made else None


def _make(passes: dict[bytes, Any]) -> None:
    """Load the code.  Logs are looked at natively from then on."""
    with _making:
        if _made or entry.enable() is None:
            return
        try:
            result = _native_code(passes).get()
        except (AttributeError, CompileError, OSError, TypeError):
            return
        for name in _LOG:
            _definitions.append(native_functions.method_def(name, result[f"call_{name}"]))
            tape_log.natives[name] = native_functions.builtin(_definitions[-1], None)
        _made.append(result)


def _native_code(passes: dict[bytes, Any]) -> background_code.BackgroundCode[dict[str, int]]:
    """For the first class that there is."""
    code = _codes.get("tape")
    if code is None:
        code = _codes.setdefault("tape", background_code.BackgroundCode(lambda: _loaded(passes)))
    return code


_codes: dict[str, background_code.BackgroundCode[dict[str, int]]] = {}


@uninterruptible.once
def _is_kept() -> bool:
    return background_code.is_kept(_module)


def _module(checked: bool) -> tuple[tuple[Offsets, PassOffsets], tuple[object, ...], tuple[str, ...]]:
    """What decides the text of the module; and its symbols."""
    slots = (object_layout.slot_offset(BackwardPass, name) for name in BackwardPass.__slots__)
    places = entry.offsets(), PassOffsets(*slots)
    symbols = (*(name.strip("_") for name in _METHODS), *(f"call_{name}" for name in _LOG))
    return places, ("tapes", places, *object_layout.SETTINGS, checked), symbols


def _loaded(passes: dict[bytes, Any]) -> dict[str, int]:
    pool, entries, checked = memory_pool.pool(), entry.native_code.get(), bool(flags.VERIFY.value)
    assert pool is not None  # or there were no entries
    places, settings, symbols = _module(checked)
    imports = {**entry.common_imports(pool), "State_Type": id(type(front_end.known().reasons.idle))}
    imports |= {f"Name{name}": id(name) for name in _NAMES}
    imports |= {"Passes": id(passes), **{name: entries[name] for name in entry.TAPE_SYMBOLS}}
    return background_code.load(lambda: _tape_code().build(*places, checked), settings, symbols, imports)


_definitions: list[native_functions.MethodDef] = []


@uninterruptible.loaded
def _tape_code() -> ModuleType:
    from hybridflow.runtime.calls import native_tape_code  # only where the disk cache has no machine code for it

    return native_tape_code
