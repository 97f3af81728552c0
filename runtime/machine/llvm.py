"""llvmlite, loaded when it is first needed, and closed in an order that interrupts cannot turn into a double free.

llvmlite frees first and forgets then: an interrupt in between lets the finalizer free again, which ends the process.
Here it is the other way round, and an interrupt leaks.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def binding() -> Any:
    """The module ``llvmlite.binding``."""
    import llvmlite.binding as llvm

    llvm.ffi.OutputString.close = _close_text
    llvm.ffi.ObjectRef.close = _close_object
    return llvm


def _close_object(self: Any) -> None:
    """``ObjectRef.close`` of llvmlite, in another order."""
    if not self._closed:
        self._closed = True
        if not self._owned and "_as_parameter_" in self.__dict__:  # not interrupted while it was made
            self._dispose()
        self.__dict__.pop("_as_parameter_", None)
        self._ptr = None


def _close_text(self: Any) -> None:
    """``OutputString.close`` of llvmlite, in another order."""
    pointer, self._ptr = self._ptr, None
    if pointer is not None and self._owned:
        self.__dict__.pop("_as_parameter_", None)
        binding().ffi.lib.LLVMPY_DisposeString(pointer)
