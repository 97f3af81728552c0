"""Tiers: which of LLVM's levels of code generation the code of a program has, and when it gets a better one.

A program whose first run is short starts with code that is made quickly (level 0), which runs slower, and has the same
bits.  That of level 2 is compiled in the background (see ``background``), and swapped in while the program runs.  Who
wants it from the start says so (``full``).  Where the process runs on one thread there is no background, and all
programs start at level 2; ``HF_OPT`` says a level for all of them.
"""

from __future__ import annotations

import contextlib
import contextvars
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hybridflow import flags
from hybridflow.compiler.program import Program
from hybridflow.runtime import background, fork_safe_locks, uninterruptible
from hybridflow.runtime.machine import machine_code

if TYPE_CHECKING:
    from hybridflow.runtime.machine.code_store import Loaded
    from hybridflow.runtime.machine.machine_code import Code

# What starting at level 0 saves: 13 us a line (22 us at level 2, 9 at level 0).  What it costs: code that takes up to
# five times as long, which is 4 times the work of a run, some 500 of which take a nanosecond.
_WORK_FOR_LINE = 13_000 * 500 // 4

_is_full: contextvars.ContextVar[bool] = contextvars.ContextVar("is_full", default=False)


@contextlib.contextmanager
def full() -> Iterator[None]:
    """Programs that are loaded in here start at the last level."""
    token = _is_full.set(True)
    try:
        yield
    finally:
        _is_full.reset(token)


def starts_quickly(program: Program, text: str) -> bool:
    """Whether a program starts with code that is made quickly: its first run is short, and better code follows.  A
    program for any extents is thought to begin with short ones; one with loops that turn nobody knows how often is
    not."""
    if flags.OPT.value != "auto" or _is_full.get() or program.tasks is not None or not background.is_on():
        return False
    if program.is_unbounded:
        return False
    return not isinstance(program.work, int) or program.work < _WORK_FOR_LINE * text.count("\n")


def shares_later(program: Program) -> bool:
    """Whether what a program that starts quickly has for several threads comes with its better code: compiling it takes
    longer than what threads save in the first run."""
    return isinstance(program.work, int) and program.work < _WORK_FOR_LINE * program.sharing.count("\n")


class Tiers:
    """The tiers of one executable, which ``take``s better code."""

    def __init__(self, take: Callable[[Code], None]) -> None:
        self._take = weakref.WeakMethod(take)
        self._lock = fork_safe_locks.make()  # taken by work that is apart alone
        self._levels: list[int] = []
        self._open: list[Loaded] = []  # what better code will take the place of
        self.failure: str | None = None  # why there is none, where it could not be made

    @property
    def level(self) -> int:
        """LLVM's level of code generation that its code has now, at the least."""
        return min(self._levels, default=machine_code.FULL)

    @property
    def is_last(self) -> bool:
        """Whether no better code follows."""
        return not self._open

    def add(self, loaded: Loaded) -> None:
        """Code that the executable has besides; better code is compiled in the background."""
        self._levels.append(loaded.level)
        if loaded.better is not None:
            self._open.append(loaded)
            reference = weakref.ref(self)
            if not background.begin(lambda: _improve(reference, background.check)):
                self.finish()

    def finish(self) -> None:
        """Have the best code now, made by several threads."""
        if self._open:
            uninterruptible.run_uninterruptible(lambda: self._improve(None))

    def _improve(self, check: Callable[[], None] | None) -> None:
        def go_on() -> None:
            if check is not None:
                check()
                if self._take() is None:  # nobody is kept for code alone
                    raise background.StoppedError

        for loaded in list(self._open):
            assert loaded.better is not None
            code = loaded.better(None if check is None else go_on)
            with self._lock:
                take = self._take()
                if loaded in self._open and take is not None:
                    take(code)
                    self._open.remove(loaded)
                    self._levels.remove(loaded.level)
                    self._levels.append(machine_code.FULL)


def _improve(reference: weakref.ref[Tiers], check: Callable[[], None]) -> None:
    tiers = reference()
    if tiers is not None and tiers._take() is not None:  # who looks at tiers may keep them longer than the code
        try:
            tiers._improve(check)
        except background.StoppedError:
            raise
        except BaseException as error:
            tiers.failure = f"{type(error).__name__}: {error}"
            raise
        tiers.failure = None
