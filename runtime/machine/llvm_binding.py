"""llvmlite, loaded when it is first needed, and made safe against interrupts.

llvmlite frees first and forgets then: an interrupt in between lets the finalizer free again, which ends the process.
Here it is the other way round, and an interrupt leaks.  A module goes with its context, whichever is closed first: the
collector of cycles finalizes in any order.  And llvmlite's lock is entered and left in C: an interrupt within methods
in Python would leave it taken for good.  As the process ends nothing is freed: llvmlite means it so, but does not hear
of the end where it is first imported during it, by work that the end waits for.

Our own code enters LLVM in threads that nobody interrupts (see ``apart``).  What is left is work that has to be done in
place, objects of others, and finalizers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hybridflow.runtime import uninterruptible


@uninterruptible.once
def binding() -> ModuleType:
    """The module ``llvmlite.binding``."""
    import llvmlite.binding as llvm

    llvm.ffi.OutputString.close = _close_text
    llvm.ffi.ObjectRef.close = _close_object
    llvm.ModuleRef._dispose = _dispose_module
    _lock_in_c(llvm.ffi)
    return llvm


def _close_object(self: Any, is_ending: Callable[..., Any] = sys.is_finalizing) -> None:
    """``ObjectRef.close`` of llvmlite, in another order."""
    if not self._closed:
        self._closed = True
        if (
            not is_ending() and not self._owned and "_as_parameter_" in self.__dict__
        ):  # not interrupted while it was made
            self._dispose()
        self.__dict__.pop("_as_parameter_", None)
        self._ptr = None


def _close_text(self: Any, is_ending: Callable[..., Any] = sys.is_finalizing) -> None:
    """``OutputString.close`` of llvmlite, in another order."""
    pointer, self._ptr = getattr(self, "_ptr", None), None  # None: interrupted while it was made
    if pointer is not None and not is_ending() and getattr(self, "_owned", True):
        self.__dict__.pop("_as_parameter_", None)
        binding().ffi.lib.LLVMPY_DisposeString(pointer)


def _dispose_module(self: Any) -> None:
    """``ModuleRef._dispose`` of llvmlite, where its context is still there; else that has freed it."""
    context = getattr(self, "_context", None)  # None: interrupted while it was made
    if context is not None and not context.closed:
        self._capi.LLVMPY_DisposeModule(self)


def _lock_in_c(ffi: Any) -> None:
    """Have llvmlite's functions take the lock inside of its own, unless somebody wants to be told of it."""
    kind: Any = ffi._LLVMLock
    register, unregister, wrapper = kind.register, kind.unregister, ffi._lib_fn_wrapper

    def chosen(outer: Any) -> Any:
        return outer if outer._cblist else outer._lock

    def choose() -> None:
        for function in list(ffi.lib._fntab.values()):
            function._lock = chosen(ffi.lib._lock)

    def registered(self: object, acq_fn: object, rel_fn: object) -> None:
        register(self, acq_fn, rel_fn)
        choose()

    def unregistered(self: object, acq_fn: object, rel_fn: object) -> None:
        unregister(self, acq_fn, rel_fn)
        choose()

    kind.register, kind.unregister = registered, unregistered
    ffi._lib_fn_wrapper = lambda outer, function: wrapper(chosen(outer), function)
    choose()
