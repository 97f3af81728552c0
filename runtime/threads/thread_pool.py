"""The team of threads that programs of this process run on: how many they are, and the host that hands them tasks.

The native code (``thread_pool_code``) is loaded when a program is to be shared for the first time, and makes threads
when there is work for them.  In a child of a fork there are none at first.
"""

from __future__ import annotations

import ctypes
from types import ModuleType

from hybridflow import flags
from hybridflow.errors import CompileError
from hybridflow.runtime import background, fork_safe_locks, uninterruptible
from hybridflow.runtime.host_interface import I64, TYPES, Host
from hybridflow.runtime.native import native_functions
from hybridflow.runtime.thread_pool_words import PARALLEL_FOR, THREADS, words
from hybridflow.runtime.threads import thread_count

_NEEDED = ("pthread_create", "pthread_detach", "pthread_attr_setstacksize", "pthread_sigmask", "sched_yield")
_SYMBOLS = ("team_for", "team_forget", "team_started", "team_refused")


class ThreadPoolHost(Host):
    """The host of one run, and behind its words the work of the program."""

    _fields_ = [("work", I64)]
    work: int


def threads() -> int:
    """How many threads a program may run on, its caller among them."""
    if not words[THREADS]:
        words[THREADS] = thread_count.number()
    return words[THREADS]


def set_threads(number: int) -> None:
    """Have programs that start from now on run on so many threads.  For a single one, it first waits for what is at
    work behind.  Raises ArgumentError for other things."""
    wanted = thread_count.checked("set_num_threads", number)
    if wanted == 1:
        background.wait()
    words[THREADS] = wanted
    for loaded in _loaded.made:
        if isinstance(loaded, dict):
            ctypes.c_int64.from_address(loaded["team_refused"]).value = 0


def started() -> int:
    """How many threads there are now besides those that Python has."""
    loaded_dicts = [loaded for loaded in _loaded.made if isinstance(loaded, dict)]
    return ctypes.c_int64.from_address(loaded_dicts[0]["team_started"]).value if loaded_dicts else 0


def host(work: int) -> ThreadPoolHost | None:
    """A host for one run of a program of so much work; None where it runs on one thread."""
    if not is_on():
        return None
    result = ThreadPoolHost(workers=threads(), work=work)
    result.parallel_for = TYPES["parallel_for"](words[PARALLEL_FOR])
    return result


def is_on() -> bool:
    """Whether programs run on several threads: there should be some, and the native code for them loads."""
    return threads() > 1 and isinstance(_loaded(), dict)


def problem() -> str | None:
    """Why programs run on one thread, None where they can run on more.  Loads the native code."""
    loaded = _loaded()
    return loaded if isinstance(loaded, str) else None


@uninterruptible.loaded
def _team_code() -> ModuleType:
    from hybridflow.runtime.threads import thread_pool_code  # only where the disk cache has no machine code for it

    return thread_pool_code


@uninterruptible.once
def _loaded() -> dict[str, int] | str:
    """Addresses by symbol, or what is wrong."""
    try:
        process = ctypes.CDLL(None)
        missing = [name for name in _NEEDED if not hasattr(process, name)]
        if missing:
            return f"this system has no {missing[0]}"
        futex, placed = thread_count.has_futex(), thread_count.has_places()
        imports = {"team_words": ctypes.addressof(words)}
        checked = bool(flags.VERIFY.value)
        settings = "team", futex, placed, checked
        result = native_functions.load(lambda: _team_code().build(*settings[1:]), settings, _SYMBOLS, imports)
    except (AttributeError, CompileError, ImportError, OSError, TypeError) as error:
        return f"native code does not load: {error}"
    forget = ctypes.CFUNCTYPE(None)(result["team_forget"])
    forget()
    fork_safe_locks.at_fork(after_in_child=forget)
    words[PARALLEL_FOR] = result["team_for"]
    return result
