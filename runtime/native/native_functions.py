"""Loading of the runtime's own native modules, and Python callables made from their functions."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from typing import Any

from hybridflow.runtime import uninterruptible
from hybridflow.runtime.machine import disk_cache, host_target, machine_code

_METHOD_FASTCALL, _METHOD_KEYWORDS = 0x0080, 0x0002
MISS = ctypes.c_int64()  # what native functions give back for what they do not know; its address says so


class MethodDef(ctypes.Structure):
    """PyMethodDef.  CPython keeps a pointer to it for as long as the function object lives."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def method_def(name: str, address: int, keywords: bool = False, doc: str | None = None) -> MethodDef:
    """Definition of a native function ``f(self, args, nargs[, kwnames])``."""
    flags = _METHOD_FASTCALL | (_METHOD_KEYWORDS if keywords else 0)
    return MethodDef(name.encode(), address, flags, doc.encode() if doc else None)


def builtin(definition: MethodDef, self: object) -> Callable[..., Any]:
    """A builtin function object.  The caller keeps ``definition`` alive; the function keeps ``self``."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    return make(ctypes.addressof(definition), self, None)


def method(definition: MethodDef, owner: type) -> Callable[..., Any]:
    """A method of ``owner`` made of a native function; it and the definition live as long as the process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.argtypes, make.restype = [ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    return make(owner, ctypes.addressof(definition))


def slot(owner: type, kind: int, address: int) -> Callable[..., Any]:
    """A special method of ``owner`` that stands for a slot: as its attribute it makes the function at ``address`` that
    slot, also of the classes below.  For ``kind`` see ``object_layout.slot_kind``."""
    make = ctypes.pythonapi.PyDescr_NewWrapper
    make.argtypes, make.restype = [ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p], ctypes.py_object
    return make(owner, kind, address)


def source() -> str | None:
    """What stands for the runtime's source in keys of the disk cache; None where it is not to be found."""
    return disk_cache.fingerprint(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load(
    build: Callable[[], str], settings: Iterable[object], symbols: tuple[str, ...], imports: dict[str, int]
) -> dict[str, int]:
    """Compile one of the runtime's own modules and load it for the life of the process; addresses by symbol.

    The text is a function of the runtime's source and of ``settings``, so it is built only where the disk cache has
    no machine code for these.
    """
    return uninterruptible.run_uninterruptible(lambda: _load(build, settings, symbols, imports))


def is_kept(settings: Iterable[object], symbols: tuple[str, ...]) -> bool:
    """Whether the disk cache has the machine code of such a module."""
    key = key_of(settings, symbols)
    return key is not None and disk_cache.get(key) is not None


def key_of(settings: Iterable[object], symbols: tuple[str, ...]) -> str | None:
    """The key in the disk cache; None where there is none."""
    known = source()
    if known is None:
        return None
    return machine_code.object_key(f"{symbols} {known} {tuple(settings)}", host_target.detect(), use="runtime")


def _load(
    build: Callable[[], str], settings: Iterable[object], symbols: tuple[str, ...], imports: dict[str, int]
) -> dict[str, int]:
    key = key_of(settings, symbols)
    return link(key, lambda: compiled(text_of(build)), symbols, imports).addresses


def link(
    key: str | None, compile_: Callable[[], bytes], symbols: tuple[str, ...], imports: dict[str, int]
) -> machine_code.Code:
    """The code as the disk cache has it under the key, or else that of ``compile_``, for the life of the process.

    Objects that outlive every module (an array freed at interpreter exit) still call it: it is never unloaded."""
    code = machine_code.cached_code(key, compile_, *symbols, imports={"miss": ctypes.addressof(MISS), **imports})
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    return code


def text_of(build: Callable[[], str]) -> str:
    from hybridflow.runtime import gc_pause  # only where the disk has no machine code for it

    with gc_pause.paused():  # in this thread it would run finalizers of the user's
        return build()


def compiled(text: str, level: int = machine_code.FULL) -> bytes:
    """Machine code of a module for this machine."""
    from hybridflow.runtime import gc_pause

    with gc_pause.give_way():  # as work behind holds the collector back
        if level != machine_code.FULL:
            return machine_code.compile_image([text], host_target.detect(), "runtime", level)
        return machine_code.compile_object(text, host_target.detect(), use="runtime")
