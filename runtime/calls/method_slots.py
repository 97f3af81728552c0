"""Functions called, and taken from instances, by slots in native code (see ``method_code``)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hybridflow import flags
from hybridflow.errors import CompileError
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.calls import entry
from hybridflow.runtime.native import native_functions, object_layout
from hybridflow.runtime.native.records import MethodOffsets


def install(function_type: type, bound_type: type, table_type: type, held_type: type) -> bool:
    """Give Dispatcher a native ``__call__``, and ``function_type``, a Dispatcher, a native ``__get__``; once.  Whether
    that worked.

    ``function._instances`` is a ``table_type``, whose ``_held`` maps the id of an instance to a ``held_type``: its
    ``instance`` is a weak reference to it, its ``strong`` the function of that instance, or None.  What comes out is a
    ``bound_type``, a Dispatcher, with the instance as ``__self__`` and its function as ``_function``.  Everything else
    is answered by the ``__get__`` that ``function_type`` had.
    """
    addresses = entry.enable()
    if addresses is None:
        return False
    call, get = entry.Dispatcher.__dict__["__call__"], function_type.__dict__["__get__"]
    try:
        loaded = _loaded(addresses["call"], call, get, function_type, bound_type, table_type, held_type)
        kinds = object_layout.slot_kind("__call__", type), object_layout.slot_kind("__get__", type(lambda: None))
        slots = [
            native_functions.slot(owner, kind, loaded[symbol])
            for owner, kind, symbol in zip((entry.Dispatcher, function_type), kinds, ("slot_call", "slot_get"))
        ]
    except (AttributeError, CompileError, OSError, TypeError):
        return False
    for method in (call, get):  # native code calls them for what it does not know
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    entry.Dispatcher.__call__, function_type.__get__ = slots  # type: ignore[method-assign, attr-defined]
    return True


def _loaded(
    address: int,
    call: Callable[..., Any],
    get: Callable[..., Any],
    function: type,
    bound: type,
    table: type,
    held: type,
) -> dict[str, int]:
    offsets = MethodOffsets(
        dispatch=object_layout.slot_offset(entry.Dispatcher, "_dispatch"),
        instances=object_layout.slot_offset(function, "_instances"),
        held=object_layout.slot_offset(table, "_held"),
        instance=object_layout.slot_offset(held, "instance"),
        strong=object_layout.slot_offset(held, "strong"),
        bound_function=object_layout.slot_offset(bound, "_function"),
        bound_self=object_layout.slot_offset(bound, "__self__"),
    )
    imports = {"call": address, "Call_method": id(call), "Get_method": id(get)}
    imports |= {"Function_Type": id(function), "Bound_Type": id(bound)}
    checked = bool(flags.VERIFY.value)
    settings = ("methods", offsets, *object_layout.SETTINGS, checked)
    return native_functions.load(
        lambda: _method_code().build(offsets, checked), settings, ("slot_call", "slot_get"), imports
    )


@uninterruptible.loaded
def _method_code() -> ModuleType:
    from hybridflow.runtime.calls import method_code  # only where the disk cache has no machine code for it

    return method_code
