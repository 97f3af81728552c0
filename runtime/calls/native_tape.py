"""Tapes in native code: what opens, closes and asks them at the price of a call.

Each method is there in Python too, which answers whatever native code does not know, and which is all there is where
native code cannot run.  A native one is over before the interpreter looks for signals again: an interrupt leaves no
tape open.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from hybridflow import flags
from hybridflow.errors import CompileError
from hybridflow.runtime import fork_safe_locks, uninterruptible
from hybridflow.runtime.calls import entry, front_end, tape_log
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.native import native_functions, object_layout
from hybridflow.runtime.native.records import PassOffsets

_METHODS = ("__enter__", "__exit__", "watch", "gradient")
_LOG = ("entry", "place", "track")  # functions on logs, see ``tape_log.natives``
_NAMES = ("_enter", "_exit", "_watch", "_gradient")  # the same methods in Python, whose addresses native code holds


class BackwardPass:
    """A backward pass that native code may do: the call ``_native``, None where Python has to do it, on the values of
    the log whose ``_numbers`` are given, in 64 bits each.  Its results are those of the sources, in order."""

    __slots__ = ("_native", "_numbers")
    _native: Any
    _numbers: bytes


def make_native(tape_type: type[tape_log.Recording], passes: dict[bytes, Any]) -> bool:
    """Let native code answer the methods of a class, of which there is one; whether it does.  ``passes`` holds a Pass
    for the words of a log and of what is asked for (see ``TapeLog._key``)."""
    addresses = _addresses(tape_type, passes)
    if addresses is None:
        return False
    for name in _METHODS:
        symbol = name.strip("_")
        behind = getattr(tape_type, f"_{symbol}")
        definition = native_functions.method_def(name, addresses[symbol], keywords=True, doc=_documented(name, behind))
        setattr(tape_type, name, native_functions.method(definition, tape_type))
    return True


def _documented(name: str, method: Any) -> str:
    """The docstring of a native method, which begins with what ``inspect.signature`` makes of one."""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(method).parameters.values()]
    given = str(inspect.Signature(parameters)).replace("(self", "($self", 1)
    return f"{name}{given}\n--\n\n{inspect.getdoc(method) or ''}"


_made: list[dict[str, int] | None] = []
_making = fork_safe_locks.make()


def _addresses(tape_type: type, passes: dict[bytes, Any]) -> dict[str, int] | None:
    """Addresses by symbol, or None where tapes stay in Python; for the first class that there is."""
    if not _made or _made[0] is None:  # what native code needs may have come since
        uninterruptible.run_uninterruptible(lambda: _make(passes))
    return _made[0]


def _make(passes: dict[bytes, Any]) -> None:
    with _making:
        if not _made or _made[0] is None:
            _made[:] = [_loaded(passes)]


def _loaded(passes: dict[bytes, Any]) -> dict[str, int] | None:
    """Load the code.  Logs are looked at natively from then on."""
    pool, entries = memory_pool.pool(), entry.enable()
    if pool is None or entries is None:
        return None
    checked = bool(flags.VERIFY.value)
    try:
        places = (
            entry.offsets(),
            PassOffsets(*(object_layout.slot_offset(BackwardPass, name) for name in BackwardPass.__slots__)),
        )
        imports = {**entry.common_imports(pool), "State_Type": id(type(front_end.known().reasons.idle))}
        imports |= {f"Name{name}": id(name) for name in _NAMES}
        imports |= {"Passes": id(passes), **{name: entries[name] for name in entry.TAPE_SYMBOLS}}
        settings = ("tapes", places, *object_layout.SETTINGS, checked)
        symbols = (*(name.strip("_") for name in _METHODS), *(f"call_{name}" for name in _LOG))
        result = native_functions.load(lambda: _tape_code().build(*places, checked), settings, symbols, imports)
    except (AttributeError, CompileError, OSError, TypeError):
        return None
    for name in _LOG:
        _definitions.append(native_functions.method_def(name, result[f"call_{name}"]))
        tape_log.natives[name] = native_functions.builtin(_definitions[-1], None)
    return result


_definitions: list[native_functions.MethodDef] = []


@uninterruptible.loaded
def _tape_code() -> ModuleType:
    from hybridflow.runtime.calls import native_tape_code  # only where the disk cache has no machine code for it

    return native_tape_code
