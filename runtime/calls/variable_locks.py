"""Who may write a variable, and when: one writer at a time for each, while different ones are written side by side.

A variable's ``VariableLock`` holds words that native code reads and writes while it holds the interpreter's lock:

``CLAIMED``   not 0: a writer in Python has its turn, or waits for it.  Native calls leave the variable alone.
``RUNNING``   a program updates the variable without the interpreter's lock: ``IN_PLACE``, or into other memory
``READERS``   how many programs read its memory without that lock.  Nobody writes there meanwhile.

Writers in Python queue up by ``with_locks``.  A claim takes its place in the queues of all its variables at once, so
each waits only for claims that came before it: there is no circle in which they could wait for each other.  A claim is
over when its lock is open, which a ``with`` statement sees to whatever is raised, at any moment: nothing has to be
undone for others to go on.

A variable's slots ``_tensor``, its value, and ``_own`` say whose the value's memory is.  ``_own`` is set together with
``_tensor``, to one fresh object, and cleared by whoever lets the value be seen; so a value that is not the variable's
own never becomes so again.  (Its memory may, as that of another object, where nobody but the variable has the value or
its array any more: ``Variable._reclaim``.)  A program writes memory in place under four conditions, which it finds
while nobody else runs, or after it has set ``RUNNING``: the value is the variable's own, there are no ``READERS``, no
other program is ``RUNNING``, and there is no claim but its caller's.  Nobody gives a variable another value while a
program is ``RUNNING``.

A reader that keeps the value 1. takes it, 2. clears ``_own``, 3. waits while there is a program ``IN_PLACE``, or until
the variable has another value.  From then on nobody writes there.  If the value was still that of 1. at 2., no program
begins to write there after 2., and the one that had begun is over after 3.  If it was replaced before, no program was
writing there and none will.  That ``_own`` is clear says nothing by itself: another reader may have cleared it after a
program had begun.  Several variables have had their values at one moment if each has the same one before 1. and after
3. of all of them.  A reader in native code that gives up the interpreter's lock clears nothing, and is counted instead.

A forked child inherits no half-written value: programs that run without the interpreter's lock end before a fork.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import setitem
from typing import Any, TypeVar

from hybridflow.runtime import fork_safe_locks

T = TypeVar("T")

CLAIMED, RUNNING, READERS = range(3)
IN_PLACE, ELSEWHERE = 1, 2  # values of RUNNING

_Words = ctypes.c_int32 * 3
_SHORTEST, _LONGEST = 20e-6, 500e-6  # seconds between two looks at a word

closed = ctypes.c_int32(0)  # not 0: no native program may start to run without the interpreter's lock (_before_fork)
running = ctypes.c_int32(0)  # how many such programs of variables run; native code counts


class VariableLock:
    """The words of one variable, and the last claim to it."""

    __slots__ = ("address", "last", "words")

    def __init__(self) -> None:
        self.words = _Words()
        self.address = ctypes.addressof(self.words)
        self.last: _LockRequest | None = None

    def wait_while_written(self, replaced: Callable[[], bool]) -> bool:
        """Return when no program writes the variable's memory: after the one that does so now, if the caller has seen
        to it that no other begins; at the latest when the variable has been given other memory.

        False, at once, if it is this thread that writes: this is a finalizer, say, in the midst of its own call, before
        or after the program itself.
        """
        if holds_lock(self):
            return False
        _wait(lambda: self.words[RUNNING] != IN_PLACE or replaced())
        return True


class _LockRequest:
    """A turn to write some variables: asked for, had, or over (then nobody holds the lock)."""

    __slots__ = ("before", "lock", "locks", "thread")

    def __init__(self, locks: Sequence[VariableLock]) -> None:
        self.lock = threading.Lock()
        self.thread = threading.get_ident()
        self.before: list[_LockRequest] = []  # those that have to be over first; none once that has been waited for
        self.locks = locks

    @property
    def is_active(self) -> bool:
        return self.lock.locked()

    def enter(self) -> None:
        """Queue up at all gates.  If interrupted, what was queued up for is still known to those who come later."""
        before = self.before
        with _registry:
            _active.add(self)
            if _forks:
                before += [fork for fork in _forks if fork.thread != self.thread]
            for lock in self.locks:
                if lock.last is not None:
                    before.append(lock.last)
                lock.last = self
                lock.words[CLAIMED] = 1

    def wait(self, mine: Sequence[_LockRequest]) -> None:
        """Wait for all claims before, and for native programs; no other native one begins."""
        waiting, seen = list(self.before), set(mine)
        while waiting:
            earlier = waiting.pop()
            if earlier in seen or (mine and earlier.waits_for(mine)):
                continue  # what waits for a claim that this thread has would wait for ever
            seen.add(earlier)
            if earlier.thread != self.thread:  # else this is a signal handler, say, while the thread waits for a turn
                with earlier.lock:
                    pass
            waiting += earlier.before
        self.before = []
        for lock in self.locks:
            if lock.words[RUNNING]:
                _wait(lambda lock=lock: not lock.words[RUNNING])  # type: ignore[misc]

    def waits_for(self, others: Sequence[_LockRequest]) -> bool:
        """Whether it will not be over before one of these claims is."""
        stack, seen = [self], {self}
        while stack:
            request = stack.pop()
            if request in others:
                return True
            nested = [
                c for c in list(_active) if c.thread == request.thread
            ]  # a thread's later claims hold up the first
            new = [c for c in (*request.before, *nested) if c not in seen]
            seen.update(new)
            stack += new
        return False

    def leave(self) -> None:
        """Let native code have the variables again.  Without it, as after an interrupt, they are merely slower until
        the next claim is over.  One that did not come to its turn stays: others still have theirs."""
        with _registry:
            _active.discard(self)
            for lock in self.locks:
                if lock.last is self and not self.before:
                    # Of those before, one that has been overtaken by its own thread may be left (see ``wait``).
                    lock.last = next((c for c in _active if c.is_active and lock in c.locks), None)
                    lock.words[CLAIMED] = int(lock.last is not None)


class _ThreadClaims(threading.local):
    """The claims that a thread has: nested ones, if finalizers write variables."""

    def __init__(self) -> None:
        self.claims: tuple[_LockRequest, ...] = ()


_registry = fork_safe_locks.make()  # held for moments, while queues change
_own = _ThreadClaims()
_active: set[_LockRequest] = set()  # those that are waiting or have their turn; and a few that were interrupted
_forks: list[_LockRequest] = []  # of threads that are about to fork: everybody else waits


def holds_lock(lock: VariableLock | None = None) -> bool:
    """Whether this thread has the turn to write the variable of a gate, or any."""
    return any(request.is_active and (lock is None or lock in request.locks) for request in _own.claims)


def with_locks(locks: Sequence[VariableLock], action: Callable[[], T]) -> T:
    """``action()``, while nobody else writes the variables of these gates; also inside of another turn."""
    mine = _own.claims
    if mine:
        mine = tuple(request for request in mine if request.is_active)
        locks = [lock for lock in locks if not any(lock in request.locks for request in mine)]
        if not locks:
            return action()
    request = _LockRequest(locks)
    try:
        with request.lock:
            request.enter()
            request.wait(mine)
            _own.claims = (*mine, request)
            return action()
    finally:
        _own.claims = mine
        request.leave()


def try_with_lock(lock: VariableLock, action: Callable[..., T | None], *arguments: object) -> T | None:
    """``action(*arguments)``, which takes but a moment and calls nothing that could wait; None if somebody else has the
    turn to write this variable."""
    words = lock.words
    with _registry:
        last = lock.last
        if last is not None and (last.is_active or last.before) and last not in _own.claims:
            return None
        words[CLAIMED] = 1
        try:
            done = None if words[RUNNING] else action(*arguments)
            return done
        finally:
            words[CLAIMED] = 0 if last is None else 1  # no call, after which a signal handler could raise


def run_in_place(locks: Sequence[VariableLock], program: Callable[[], T]) -> T | None:
    """``program()``, which may write the memory of these gates' variables: readers wait.  The caller has its turn.

    Returns None, and runs nothing, where some other program is at work there.
    """
    words = [lock.words for lock in locks]
    if any(word[RUNNING] for word in words):
        return None  # this is a finalizer, say, in the midst of a call of the same thread
    # One call in C each, directly from here: no signal handler can raise between its beginning and its end, as it can
    # where a Python function begins.
    over = map(_set_item, words, repeat(RUNNING), repeat(0))
    try:
        _forget(map(_set_item, words, repeat(RUNNING), repeat(IN_PLACE)))
        if any(word[READERS] for word in words):
            return None
        done = program()
        return done
    finally:
        _forget(over)


def set_all(setter: Callable[[Any, Any], Any], objects: Iterable[Any], values: Iterable[Any]) -> None:
    """Call a setter written in C for each pair, with no moment between at which another thread or a signal handler
    could run."""
    _forget(map(setter, objects, values))


_forget: Callable[[Iterable[Any]], None] = deque[Any](maxlen=0).extend
_set_item: Callable[[Any, int, int], None] = setitem


def _wait(condition: Callable[[], bool]) -> None:
    """Native code wakes nobody, so that a call that nobody waits for costs nothing; it is over soon."""
    pause = _SHORTEST
    while not condition():
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)


def _before_fork() -> None:
    """Wait until nobody else writes; keep others from it until the fork is done."""
    request = _LockRequest(())
    request.lock.acquire()
    with _registry:
        request.before = [c for c in (*_active, *_forks) if c.thread != request.thread and c.is_active]
        _forks.append(request)
        closed.value = 1
    request.wait(tuple(c for c in _own.claims if c.is_active))
    _wait(lambda: not running.value)


def _after_fork() -> None:
    here = threading.get_ident()
    for request in [c for c in _forks if c.thread == here]:
        _forks.remove(request)
        request.lock.release()
    closed.value = int(bool(_forks))


def _after_fork_in_child() -> None:
    here = threading.get_ident()
    _forks[:] = [c for c in _forks if c.thread == here]
    _after_fork()
    for request in [c for c in _active if c.thread != here]:  # of threads that do not exist here
        request.lock, request.before = threading.Lock(), []
        request.leave()


fork_safe_locks.at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
