"""Tapes as native code knows them: what opens and closes them at the price of a call.

Each method is there in Python too, which answers whatever native code does not know, and which is all there is where
native code cannot run.  A native one is over before the interpreter looks for signals again: an interrupt leaves no
tape open.
"""

from __future__ import annotations

from types import GeneratorType, ModuleType
from typing import Any

from hybridflow import flags
from hybridflow.errors import CompileError
from hybridflow.runtime import locks
from hybridflow.runtime.calls import entry, front_end
from hybridflow.runtime.machine import machine_code
from hybridflow.runtime.memory import blocks
from hybridflow.runtime.native import functions, layout
from hybridflow.runtime.native.records import TapeOffsets


class Recording:
    """Base of tapes.  A subclass defines ``__enter__`` and ``__exit__``, which are ``_enter`` and ``_exit`` as well.

    ``_recording`` is whether the tape is told of what happens, ``takes_wholes`` whether it may be of public functions
    in the place of the ops that they consist of.
    """

    __slots__ = ("_recording", "takes_wholes")
    _recording: bool
    takes_wholes: bool


_METHODS = {"__enter__": "enter", "__exit__": "exit"}
_NAMES = ("_enter", "_exit")  # whose addresses native code holds


def make_native(tape_type: type[Recording]) -> bool:
    """Let native code open and close tapes of a class; whether it does.  There is one such class."""
    addresses = _addresses()
    if addresses is None:
        return False
    for name, symbol in _METHODS.items():
        definition = functions.method_def(name, addresses[symbol])
        setattr(tape_type, name, functions.method(definition, tape_type))
    return True


@locks.once
def _addresses() -> dict[str, int] | None:
    """Addresses by symbol, or None where tapes stay in Python.  States leave the count natively from then on."""
    pool = blocks.pool()
    if pool is None or entry.enable() is None:
        return None
    checked = bool(flags.VERIFY.value)
    state_type: Any = type(front_end.known().reasons.idle)
    try:
        places = _offsets(state_type)
        imports = {**entry.common_imports(pool), "State_Type": id(state_type)}
        imports |= {f"Name{name}": id(name) for name in _NAMES}
        settings = ("tapes", places, *layout.SETTINGS, checked)
        symbols = (*_METHODS.values(), "forget_state")
        found = functions.load(lambda: _tape_code().build(places, checked), settings, symbols, imports)
        forget = functions.slot(state_type, layout.slot_kind("__del__", GeneratorType), found["forget_state"])
    except (AttributeError, CompileError, OSError, TypeError):
        return None
    state_type.__del__ = forget
    return found


def _offsets(state: type) -> TapeOffsets:
    return TapeOffsets(
        recording=layout.slot_offset(Recording, "_recording"),
        takes_wholes=layout.slot_offset(Recording, "takes_wholes"),
        **{name: layout.slot_offset(state, name) for name in ("trace", "tapes", "device", "only_tape")},
        is_counted=layout.slot_offset(state, "_is_counted"),
    )


def _tape_code() -> ModuleType:
    from hybridflow.runtime.calls import tape_code  # only where the disk cache has no machine code for it

    return tape_code


machine_code.import_before_fork(_tape_code)
