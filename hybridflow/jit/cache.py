"""The signatures of one Function: bounded, each made once however many threads want it, with native shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hybridflow.jit.concrete import ConcreteFunction
from hybridflow.jit.native_calls import Form
from hybridflow.jit.retracing import Key
from hybridflow.runtime import locks
from hybridflow.runtime.calls.native_call import Signature
from hybridflow.runtime.calls.steps import Step, holds


class Guards(NamedTuple):
    """What a program depends on besides its arguments: where each value is found, and how users would write it."""

    steps: Sequence[Step]
    texts: Sequence[str]


class Entry:
    """One cached signature.  ``guards`` say when it may answer; None if it never may, but for the call that made it.
    ``shortcuts`` maps forms of calls to what answers them natively, or None."""

    __slots__ = ("_native_calls_seen", "concrete", "guards", "made", "python_calls", "shortcuts", "used")

    def __init__(self, concrete: ConcreteFunction, guards: Guards | None) -> None:
        self.concrete, self.guards = concrete, guards
        self.shortcuts: dict[Form, Signature | None] = {}
        self.python_calls = 0
        self.made = self.used = 0  # the ticks when it was made, and of the last known use
        self._native_calls_seen = 0

    @property
    def native_calls(self) -> int:
        return sum(s.calls for s in self.shortcuts.values() if s is not None)

    @property
    def hits(self) -> int:
        """Calls that were answered without tracing: all but the first."""
        return max(0, self.python_calls - 1) + self.native_calls

    def note_native_use(self, tick: int) -> None:
        """Native calls leave a count only: if it moved since the last look, the entry counts as used at ``tick``."""
        calls = self.native_calls
        if calls != self._native_calls_seen:
            self._native_calls_seen, self.used = calls, tick


class SignatureCache:
    """Entries by key and guards, at most ``size`` of them; the least recently used ones are dropped."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: dict[Key, list[Entry]] = {}  # the latest first
        self._making: dict[Key, Any] = {}
        self._lock = locks.make()
        self._tick = 0

    def find(self, key: Key) -> Entry | None:
        """The entry of ``key`` whose guards hold, which counts as used.  Raises what the user's code in guards raises,
        but for exceptions, which tell that a value is not what it was."""
        for entry in self._entries.get(key, ()):
            if entry.guards is not None and holds(entry.guards.steps):
                self._tick += 1
                entry.used = self._tick
                return entry
        return None

    def find_or_make(self, key: Key, make: Callable[[], Entry]) -> Entry:
        """The entry of ``key``; one thread makes it while the others that want it wait."""
        with self._lock:
            making = self._making.setdefault(key, locks.make())
        with making:
            entry = self.find(key)
            if entry is None:
                entry = make()
                with self._lock:
                    if entry.guards is not None:
                        self._entries[key] = [entry, *self._entries.get(key, ())]
                        self._tick += 1
                        entry.made = entry.used = self._tick
                        self._evict()
                    self._making.pop(key, None)  # after an error it stays, for the threads that try again
        return entry

    def _evict(self) -> None:
        entries = [entry for found in self._entries.values() for entry in found]
        for entry in entries:
            entry.note_native_use(self._tick)
        entries.sort(key=lambda entry: entry.used)
        for entry in entries[: len(entries) - self._size]:
            left = [other for other in self._entries[entry.concrete.key] if other is not entry]
            if left:
                self._entries[entry.concrete.key] = left
            else:
                del self._entries[entry.concrete.key]

    def entries(self) -> list[Entry]:
        """Oldest first."""
        with self._lock:
            found = [entry for entries in self._entries.values() for entry in entries]
        return sorted(found, key=lambda entry: entry.made)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._making.clear()

    def shortcuts(self) -> tuple[Signature, ...]:
        """What native code tries, the latest first."""
        found = [s for entry in self.entries() for s in entry.shortcuts.values() if s is not None]
        return tuple(reversed(found))
