"""What loops of programs look with: whether the user has interrupted the process, or somebody this thread.

Python runs handlers of signals, raises what was set for a thread and lets other threads have the lock when one of its
functions begins.  So a program that has run for a while takes the lock and calls one that does nothing.  What is raised
there is kept until the program has ended, and raised by its caller.

A program that holds the lock all the time is a small one, and its caller has told nobody that it works on variables: it
is over before Python can run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import ModuleType

from hybridflow import flags
from hybridflow.compiler.program import INTERRUPT_POLL
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.native import native_functions

_pending = threading.local()  # its ``error``; not by threads' numbers, which systems give to later ones


def _attend() -> None:
    """As this begins, Python sees to what is pending."""


def raise_pending() -> None:
    """Raise what interrupted the program that ran last in this thread, if anything did."""
    error = _pending.__dict__.pop("error", None)
    if error is not None:
        try:
            raise error
        finally:
            del error  # whose traceback holds this frame


@uninterruptible.loaded
def _code() -> ModuleType:
    from hybridflow.runtime import interrupt_checks_code  # only where the disk cache has no machine code for it

    return interrupt_checks_code


@uninterruptible.once
def _loaded() -> dict[str, int]:
    """Addresses by symbol."""
    imports = {"attend": id(_attend), "kept": id(_pending)}
    checked = bool(flags.VERIFY.value)
    settings = "interrupts", time.CLOCK_MONOTONIC, checked
    return native_functions.load(lambda: _code().build(checked), settings, (INTERRUPT_POLL, "answer"), imports)


def imports() -> dict[str, int]:
    """The function that programs look with, by its name."""
    return {INTERRUPT_POLL: _loaded()[INTERRUPT_POLL]}


@uninterruptible.once
def _definition() -> native_functions.MethodDef:
    return native_functions.method_def("answer", _loaded()["answer"])


def keeping(function: Callable[..., int]) -> Callable[..., int]:
    """A function for native code to call, which takes arguments by position.  What ``function`` raises, be it as it
    begins, where no statement of its own could catch it, is kept; then 1 is returned."""
    return native_functions.builtin(_definition(), function)
