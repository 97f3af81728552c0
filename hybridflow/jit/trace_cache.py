"""The traces of one Function: bounded, each made once however many threads want it, with their native calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hybridflow.core.tier_up import is_tried_again
from hybridflow.jit.cache_key import Key
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.runtime import fork_safe_locks
from hybridflow.runtime.calls import entry
from hybridflow.runtime.calls.guard_steps import GuardStep, holds

if TYPE_CHECKING:
    from hybridflow.jit.native_entry import Refusal
    from hybridflow.runtime.calls.guard_program import GuardProgram
    from hybridflow.runtime.calls.native_call import NativeCall

CallForm = tuple[int, tuple[str, ...]]  # how a call was written: arguments by position, and the names of the others


class Guards:
    """What a program depends on besides its arguments: where each value is found, and how users would write it."""

    __slots__ = ("_holds", "_program", "steps", "texts")

    def __init__(self, steps: Sequence[GuardStep], texts: Sequence[str]) -> None:
        self.steps, self.texts = steps, texts
        self._program: GuardProgram | None = None
        self._holds: Callable[[], bool] | None = None

    @property
    def program(self) -> GuardProgram | None:
        """The steps for native code; None where there are none."""
        if self._program is None and self.steps:
            from hybridflow.runtime.calls.guard_program import GuardProgram  # where something is called natively

            self._program = GuardProgram(self.steps)
        return self._program

    def counts(self) -> tuple[int, int]:
        """How many values are watched, and how many checks a call makes for that while none of them changes."""
        watched = sum(step.check != "any" or step.read not in ("root", "weak") for step in self.steps)
        return watched, 0 if self.program is None else self.program.checks

    def hold(self) -> bool:
        """Whether every step passes.  Raises what the user's code raises, but for exceptions."""
        if self._holds is None:
            program = self.program if len(self.steps) >= _MANY else None
            if program is not None and not entry.is_due():
                return holds(self.steps)
            native = None if program is None else entry.checking(program)
            self._holds = functools.partial(holds, self.steps) if native is None else native
        return self._holds()


_MANY = 64  # steps, from which on native code looks at them where Python answers a call


class Variant:
    """One cached trace of a signature.  ``guards`` say when it may answer; None if it never may, but for the call that
    made it.  ``native_calls`` maps forms of calls to what answers them natively, ``refusals`` those that go by way of
    Python to the reason."""

    __slots__ = (
        *("_misses", "_native_hits_seen", "concrete", "guards", "made", "native_calls", "python_calls", "refusals"),
        *("undo", "used"),
    )

    def __init__(self, concrete: ConcreteFunction, guards: Guards | None) -> None:
        self.concrete, self.guards = concrete, guards
        # What gives objects that outlive the call what they held before it: where the program, which may raise an
        # error, repeats not all that was done to them.
        self.undo: Callable[[], None] | None = None
        self.native_calls: dict[CallForm, NativeCall] = {}
        self.refusals: dict[CallForm, Refusal] = {}
        self._misses: dict[CallForm, int] = {}
        self.python_calls = 0
        self.made = self.used = 0  # the ticks when it was made, and of the last known use
        self._native_hits_seen = 0

    @property
    def native_hits(self) -> int:
        return sum(s.calls for s in self.native_calls.values())

    @property
    def calls(self) -> int:
        """Calls that were answered."""
        return self.python_calls + self.native_hits

    def is_missed(self, form: CallForm) -> bool:
        """Notes a call that native code did not answer; whether to tell it (again) what such calls look like.

        A value may be another object that is the same, and the first call may have had arguments that native code does
        not take.  It may also be the tenth object in ten calls, so that the pauses between such times double.
        """
        misses = self._misses[form] = self._misses.get(form, 0) + 1
        return is_tried_again(misses)

    def is_refused_again(self, form: CallForm, refusal: Refusal | None) -> bool:
        """Notes why calls of a form are answered by way of Python, or that they are not; whether that is so again."""
        if refusal is None:
            self.refusals.pop(form, None)
            return False
        self.refusals[form] = refusal
        return self._misses.get(form, 0) > 1

    @property
    def refusal(self) -> Refusal | None:
        """Why some calls are answered by way of Python; None where none is known to be."""
        return next(iter(self.refusals.values()), None)

    @property
    def hits(self) -> int:
        """Calls that were answered without tracing: all but the first."""
        return max(0, self.python_calls - 1) + self.native_hits

    def note_native_use(self, tick: int) -> None:
        """Native calls leave a count only: if it moved since the last look, the variant counts as used at ``tick``."""
        calls = self.native_hits
        if calls != self._native_hits_seen:
            self._native_hits_seen, self.used = calls, tick


class _Making:
    """The lock that is held while a variant is made, and how many threads hold it or wait for it."""

    __slots__ = ("lock", "threads")

    def __init__(self) -> None:
        self.lock, self.threads = fork_safe_locks.make(), 0


class TraceCache:
    """Variants by key and guards, at most ``size`` of them; the least recently used ones are dropped."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._variants: dict[Key, list[Variant]] = {}  # the latest first
        self._making: dict[Key, _Making] = {}
        self._lock = fork_safe_locks.make()
        self._tick = 0
        self._calls_of_dropped = 0

    def lookup(self, key: Key, leaves: Sequence[Any]) -> Variant | None:
        """The variant of ``key`` for these leaves whose guards hold, which counts as used.  Raises what the user's code
        in guards raises, but for exceptions, which tell that a value is not what it was."""
        for variant in self._variants.get(key, ()):
            if variant.guards is not None and variant.concrete.fits(leaves) and variant.guards.hold():
                self.note_use(variant)
                return variant
        return None

    def note_use(self, variant: Variant) -> None:
        self._tick += 1
        variant.used = self._tick

    def lookup_or_trace(self, key: Key, leaves: Sequence[Any], make: Callable[[], Variant]) -> Variant:
        """The variant of ``key`` for these leaves; one thread makes it while the others that want it wait."""
        with self._lock:
            making = self._making.setdefault(key, _Making())
            making.threads += 1
        try:
            with making.lock:
                variant = self.lookup(key, leaves)
                if variant is None:
                    variant = make()
                    if variant.guards is not None:
                        self.add(key, variant)
        finally:  # after an error the threads that wait try again, with the same lock
            with self._lock:
                making.threads -= 1
                if not making.threads:
                    del self._making[key]
        return variant

    def add(self, key: Key, variant: Variant) -> None:
        """Keep a variant, which is tried before those of its key that are known."""
        with self._lock:
            self._variants[key] = [variant, *self._variants.get(key, ())]
            self._tick += 1
            variant.made = variant.used = self._tick
            self._evict()

    def _evict(self) -> None:
        variants = [variant for siblings in self._variants.values() for variant in siblings]
        for variant in variants:
            variant.note_native_use(self._tick)
        variants.sort(key=lambda variant: variant.used)
        for variant in variants[: len(variants) - self._size]:
            self._calls_of_dropped += variant.calls
            left = [other for other in self._variants[variant.concrete.key] if other is not variant]
            if left:
                self._variants[variant.concrete.key] = left
            else:
                del self._variants[variant.concrete.key]

    def variants(self) -> list[Variant]:
        """Oldest first."""
        with self._lock:
            all_variants = [variant for variants in self._variants.values() for variant in variants]
        return sorted(all_variants, key=lambda variant: variant.made)

    def count_calls(self) -> int:
        """How many calls the variants have answered, those that were dropped too."""
        return self._calls_of_dropped + sum(variant.calls for variant in self.variants())

    def valid_variants(self) -> list[Variant]:
        """Those whose guards hold now, oldest first."""
        return [one for one in self.variants() if one.guards is not None and holds(one.guards.steps)]

    def variant_of(self, concrete: ConcreteFunction) -> Variant | None:
        """The variant that a concrete function belongs to; None where it was made for one call, or dropped."""
        return next((variant for variant in self.variants() if variant.concrete is concrete), None)

    def clear(self) -> None:
        with self._lock:
            self._variants.clear()
            self._calls_of_dropped = 0

    def native_calls(self) -> tuple[NativeCall, ...]:
        """What native code tries, the latest first."""
        calls = [s for variant in self.variants() for s in variant.native_calls.values()]
        return tuple(reversed(calls))

    def bindings(self) -> list[tuple[Callable[..., Any], Variant]]:
        """What finds the variants of calls where native code does not answer, see ``entry.binding``, the latest
        first."""
        calls = [(call, v) for v in self.variants() for call in v.native_calls.values() if call.python is None]
        pairs = [(entry.binding(call), v) for call, v in calls]
        return [(bind, variant) for bind, variant in reversed(pairs) if bind is not None]
