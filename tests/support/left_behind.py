"""What a test leaves behind in the process, which a later one would meet: the one that leaves it is the one that fails.

Other names in modules of the package are looked for where the tests of a module end: there are some thousand values.

What grows by itself, as caches and plans do, is not looked at: a test to which it matters begins with
``fresh_functions``, or with a cache of its own.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow import flags
from hybridflow.core import context
from hybridflow.core.context import everywhere, now
from hybridflow.guards import guard_builder, untracked_code
from hybridflow.runtime import gc_pause, host_interface, uninterruptible
from hybridflow.runtime.calls import variable_locks
from hybridflow.runtime.machine import host_target

_POLICIES = "hybridflow.layers.dtype_policy"
_PATIENCE = 120.0  # seconds in which threads that were told to end may do so
_OURS = (untracked_code._collection_starts, untracked_code._collection_stops)  # for as long as a trace goes on
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGCHLD")]


def seed() -> None:
    """Let all generators of the process begin at the same place."""
    random.seed(0)
    np.random.seed(0)
    hf.random.set_seed(0)


def freeze() -> None:
    """Modules, tests and caches stay: collections need not look through half a million objects time and again."""
    gc.collect()
    gc.freeze()


def _scopes() -> dict[str, Any]:
    state = now()
    return {
        "open tapes": state.tapes,
        "an open trace": state.trace,
        "an open device scope": state.device,
        "a layer's dtype": state.narrow,
        "functions run eagerly": hf.config.functions_run_eagerly(),
        "reasons everywhere": everywhere.value,
        "states that count as busy": context.busy.value,
        "a recording": guard_builder.active.recording,
        "a host of programs": host_interface.current(),
        "another target": host_target._override,
        "claims to variables": [
            claim for claim in (*variable_locks._active, *variable_locks._forks) if claim.is_active
        ],
        "programs of variables": (variable_locks.running.value, variable_locks.closed.value),
        "a collector held back": bool(gc_pause._holders),
        "threads": {thread for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)},
    }


def policy() -> Any:
    """The name of the policy that new layers follow, if anything has asked for layers."""
    module = sys.modules.get(_POLICIES)
    return "float32" if module is None else module._global.name


def _settings() -> dict[str, Any]:
    logger = logging.getLogger("hybridflow")
    return {
        **{flag.name: flag.value for flag in flags.ALL},
        "hf.config.memory_limit": hf.config.memory_limit(),
        "hf.config.cache_limit": hf.config.cache_limit(),
        "hf.mixed_precision.global_policy": policy(),
        "NumPy's errors": np.geterr(),
        "NumPy's print options": np.get_printoptions(),
        "the logger": (logger.level, logger.disabled, logger.propagate, tuple(logger.handlers), tuple(logger.filters)),
        "the environment": {name: text for name, text in os.environ.items() if name.startswith(("HF_", "PYTHON"))},
        "the folder": os.getcwd(),
    }


def _interpreter() -> dict[str, Any]:
    return {
        "sys.getswitchinterval": sys.getswitchinterval(),
        "sys.gettrace": sys.gettrace(),
        "sys.getprofile": sys.getprofile(),
        "sys.getrecursionlimit": sys.getrecursionlimit(),
        "hooks": (sys.excepthook, sys.displayhook, sys.unraisablehook),
        "sys.path": sys.path[:],
        "the collector": (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
        "callbacks of the collector": [f for f in gc.callbacks if f in _OURS or gc.callbacks.count(f) > 1],
        "signal handlers": [signal.getsignal(number) for number in _SIGNALS],
        "a timer": signal.getitimer(signal.ITIMER_REAL)[0] > 0,
    }


class Net:
    """Compares the process after a test with that before it, and modules of the package with how they were loaded."""

    def __init__(self) -> None:
        self._constants: dict[str, dict[str, Any]] = {}  # by module: functions, classes and names in capitals
        self._contents: dict[str, list[Any]] = {}  # by module: all that was in it when it was last looked through
        self._before: dict[str, Any] = {}
        self._modules = 0  # how many there were when they were last looked through

    def begin(self) -> None:
        seed()
        if context.busy.value:  # of traces that are garbage by now
            gc.collect()
        self._note_modules()
        self._before = _state()

    def left(self) -> list[str]:
        """What is another than it was, in words."""
        changed = self._changed()
        for generation in (1, 2):  # what was caught may hold a block open; mostly it is young
            if changed:
                gc.collect(generation)
                changed = self._changed()
        if changed:
            end = time.monotonic() + _PATIENCE
            while (changed := self._changed()) and time.monotonic() < end and _ends_by_itself(changed):
                time.sleep(0.01)
        return changed

    def _changed(self) -> list[str]:
        after = _state()
        return [
            f"{name}: {_difference(self._before[name], value)}"
            for name, value in after.items()
            if not _same(name, self._before[name], value)
        ]

    def _note_modules(self) -> None:
        if len(sys.modules) == self._modules:
            return
        self._modules = len(sys.modules)
        for name, module in list(sys.modules.items()):
            if name.startswith("hybridflow.compat.tf"):
                continue  # its functions build graphs as soon as TensorFlow 1's rooms are loaded
            if name.startswith("hybridflow") and name not in self._constants:
                self._constants[name] = {
                    key: value for key, value in vars(module).items() if callable(value) or key.strip("_").isupper()
                }

    def patched(self) -> list[str]:
        """The functions, classes and constants of the package that are others than when they were loaded, in words."""
        found = []
        for name, constants in self._constants.items():
            module = sys.modules.get(name)
            if module is None:
                continue
            # Most modules are as they were, which one step says.
            contents = list(vars(module).values())
            if _equal(contents, self._contents.get(name)):
                continue
            self._contents[name] = contents
            for key, value in constants.items():
                if vars(module).get(key) is not value:
                    found.append(f"{name}.{key} is another one")
                    constants[key] = vars(module).get(key)
        return found


def _ends_by_itself(changed: list[str]) -> bool:
    """Whether it may be because of threads that are about to end: those of work that was left hold the collector."""
    return any(text.startswith("threads: ") for text in changed) or bool(uninterruptible._jobs)


def _equal(values: list[Any], others: list[Any] | None) -> bool:
    try:
        return values == others
    except Exception:  # arrays, and whatever else has no answer
        return False


def _state() -> dict[str, Any]:
    return {**_scopes(), **_settings(), **_interpreter()}


def _same(name: str, before: Any, after: Any) -> bool:
    return after <= before if name == "threads" else bool(before == after)


def _difference(before: Any, after: Any) -> str:
    if isinstance(before, dict):
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        before, after = ({name: side[name] for name in names if name in side} for side in (before, after))
    return f"{before!r:.300} before, {after!r:.300} after"
