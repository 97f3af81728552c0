"""Checks of programs that a GPU has not finished: their errors come when somebody waits for the GPU.

A program that checks anything copies its status to pinned memory of the host, and records an event.  Whoever needs a
value of that GPU waits, and then looks at all that is over by then.
"""

from __future__ import annotations

import ctypes
from collections import deque
from typing import NamedTuple

from hybridflow.compiler.program import Program
from hybridflow.runtime import argument_checks, fork_safe_locks
from hybridflow.runtime.cuda import gpu_memory
from hybridflow.runtime.cuda.driver import Driver
from hybridflow.runtime.cuda.events import Events

CHECK_SLOTS = 512  # statuses that may be on their way at once


class PendingCheck(NamedTuple):
    """A program under way: ``place`` is the address of where its status comes, ``event`` says that it is there."""

    program: Program
    place: int
    event: int


class PendingChecks:
    """The programs under way on one GPU whose checks are to be looked at."""

    def __init__(self, driver: Driver, events: Events) -> None:
        self._events = events
        self._memory = gpu_memory.cupy().cuda.alloc_pinned_memory(4 * CHECK_SLOTS)
        self._free = [self._memory.ptr + 4 * k for k in range(CHECK_SLOTS)]
        self._waiting: deque[PendingCheck] = deque()
        self._lock = fork_safe_locks.make()

    def begin(self, program: Program) -> PendingCheck:
        """A place for the status of a program that is about to be launched."""
        with self._lock:
            while not self._free:
                self._settle(self._waiting[0], wait=True)
            return PendingCheck(program, self._free.pop(), self._events.take())

    def abandon(self, check: PendingCheck) -> None:
        """Take back the place of a program that was not launched."""
        self._events.give(check.event)
        self._free.append(check.place)

    def add(self, check: PendingCheck) -> None:
        with self._lock:
            self._waiting.append(check)

    def settle(self, check: PendingCheck) -> None:
        """Wait for one program.  Raises the error of its check that failed."""
        self._settle(check, wait=True)

    def look(self) -> None:
        """Raise the error of the first program that is over, was not asked for yet, and failed."""
        if self._waiting:
            with self._lock:
                while self._waiting and self._settle(self._waiting[0], wait=False):
                    pass

    def settle_all(self) -> None:
        """Wait for all programs under way.  Raises the error of the first that failed."""
        while self._waiting:
            with self._lock:
                if self._waiting:
                    self._settle(self._waiting[0], wait=True)

    def _settle(self, check: PendingCheck, wait: bool) -> bool:
        """Whether a program is over.  Raises the error of its check that failed; it is not asked for again."""
        if wait:
            self._events.wait(check.event)
        elif not self._events.is_over(check.event):
            return False
        with self._lock:
            if check not in self._waiting:
                return True
            self._waiting.remove(check)
            status = -ctypes.c_int32.from_address(check.place).value
            self.abandon(check)
        if status:
            argument_checks.raise_check(check.program, status)
        return True

    def __len__(self) -> int:
        return len(self._waiting)
