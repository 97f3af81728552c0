"""The signatures of one Function: bounded, each made once however many threads want it, with native shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridflow.concrete import ConcreteFunction
from hybridflow.retracing import Key
from hybridflow.runtime import locks
from hybridflow.runtime.signature import Signature
from hybridflow.shortcuts import Form


class Entry:
    """One cached signature.  ``shortcuts`` maps forms of calls to what answers them natively, or None."""

    __slots__ = ("_native_calls_seen", "concrete", "python_calls", "shortcuts", "used")

    def __init__(self, concrete: ConcreteFunction) -> None:
        self.concrete = concrete
        self.shortcuts: dict[Form, Signature | None] = {}
        self.python_calls = 0
        self.used = 0  # the tick of the last known use
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
    """Entries by key, at most ``size`` of them; the least recently used ones are dropped."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: dict[Key, Entry] = {}
        self._making: dict[Key, Any] = {}
        self._lock = locks.make()
        self._tick = 0

    def find(self, key: Key) -> Entry | None:
        """The entry of ``key``, which counts as used."""
        entry = self._entries.get(key)
        if entry is not None:
            self._tick += 1
            entry.used = self._tick
        return entry

    def find_or_make(self, key: Key, make: Callable[[], ConcreteFunction]) -> Entry:
        """The entry of ``key``; one thread makes it while the others that want it wait."""
        with self._lock:
            making = self._making.setdefault(key, locks.make())
        with making:
            entry = self.find(key)
            if entry is None:
                concrete = make()  # its key may be another: see Function._trace
                entry = Entry(concrete)
                with self._lock:
                    self._entries[concrete.key] = entry
                    self._tick += 1
                    entry.used = self._tick
                    self._evict()
                    self._making.pop(key, None)  # after an error it stays, for the threads that try again
        return entry

    def _evict(self) -> None:
        for entry in self._entries.values():
            entry.note_native_use(self._tick)
        while len(self._entries) > self._size:
            del self._entries[min(self._entries, key=lambda key: self._entries[key].used)]

    def keys(self) -> list[Key]:
        with self._lock:
            return list(self._entries)

    def entries(self) -> list[Entry]:
        """Oldest first."""
        with self._lock:
            return list(self._entries.values())

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._making.clear()

    def shortcuts(self) -> tuple[Signature, ...]:
        """What native code tries, the latest first."""
        found = [s for entry in self.entries() for s in entry.shortcuts.values() if s is not None]
        return tuple(reversed(found))
