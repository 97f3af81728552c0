"""Loading of the runtime's own native modules, and Python callables made from their functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from hybridflow.runtime import host, machine_code

_METHOD_FASTCALL, _METHOD_KEYWORDS = 0x0080, 0x0002


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


def builtin(definition: MethodDef, self: Any) -> Callable[..., Any]:
    """A builtin function object.  The caller keeps ``definition`` alive; the function keeps ``self``."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    return make(ctypes.addressof(definition), self, None)


def load(build: Callable[[], str], symbols: tuple[str, ...], imports: dict[str, int]) -> dict[str, int]:
    """Compile one of the runtime's own modules and load it for the life of the process; addresses by symbol."""
    image = machine_code.compile_object(build(), host.detect(), optimize=True)
    code = machine_code.load_object(image, *symbols, imports=imports)
    # Objects that outlive every module (an array freed at interpreter exit) still call this code: never unload it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    return code.addresses
