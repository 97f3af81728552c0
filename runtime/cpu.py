"""CPU programs: load them, and run them from Python.

The native entry (``runtime.calls.entry``) calls the same machine code without a Python frame; this is the path
for first calls, for interpreters that the native entry does not know, and for everything that is not hot.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.program import Program, Slot, shared_entry, value_at
from hybridflow.errors import CompileError
from hybridflow.runtime import argument_checks, fork_safe_locks, host_callbacks, host_interface, tiers, uninterruptible
from hybridflow.runtime.dtypes import NUMPY
from hybridflow.runtime.machine import host_target, machine_code
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.thread_pool_words import CORE_QUERY, LEAST, words

if TYPE_CHECKING:
    from hybridflow.runtime.machine import code_store
    from hybridflow.runtime.threads.thread_pool import ThreadPoolHost

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)  # releases the GIL


_sharing = fork_safe_locks.make()  # held while an entry for a host is made


@uninterruptible.loaded
def _team() -> ModuleType:
    from hybridflow.runtime.threads import thread_pool  # only where there is a program

    return thread_pool


@uninterruptible.loaded
def _store() -> ModuleType:
    from hybridflow.runtime.machine import code_store  # only where there is a program

    return code_store


@uninterruptible.loaded
def _interrupts() -> ModuleType:
    from hybridflow.runtime import interrupt_checks  # only where there are loops, or calls of Python

    return interrupt_checks


class Executable:
    """A program and its machine code, which is unloaded when the last reference goes.  ``functions`` are those that
    the program's callbacks call by their numbers; ``named`` finds the others.

    Two words are for native code.  ``plain`` is the address of the entry.  ``shared`` is that of the entry for a host;
    ``CORE_QUERY`` while it is not there but can be made (see ``share``), 0 where it cannot, or comes with better code.
    Both may change at any time: what is loaded quickly is replaced by better code as soon as there is some (see
    ``tiers``).
    """

    def __init__(
        self,
        program: Program,
        code: machine_code.Code,
        functions: host_callbacks.Functions = (),
        named: host_callbacks.Named = host_callbacks.no_names,
    ) -> None:
        host_callbacks.check(program, functions)
        self.program, self.functions, self.named = program, tuple(functions), named
        self.plain = ctypes.c_int64()
        self.shared = ctypes.c_int64(CORE_QUERY if program.sharing else 0)
        self.tiers = tiers.Tiers(self._take)
        self._codes: list[machine_code.Code] = []  # those before the last one may still run
        self._shared_call: Callable[..., int] | None = None
        self._take(code)
        self.updated, self.in_place = argument_checks.updated(program), argument_checks.in_place(program)
        self._pointers = ctypes.c_void_p * (len(program.inputs) + len(program.outputs) + len(self.updated))
        self._extents = ctypes.c_int64 * len(program.dims)

    def _take(self, code: machine_code.Code) -> None:
        """Have calls that begin from now on run this code of the program.  Two threads may come at once: one with the
        entry for a host, one with better code."""
        self._codes.append(code)  # in one step: code that got lost here would be unloaded
        plain, shared = map(code.addresses.get, (self.program.entry, shared_entry(self.program.entry)))
        if plain:
            self._call = _ENTRY(plain)
            self.plain.value = plain
        if shared:
            self._shared_call = _ENTRY(shared)
            self.shared.value = shared

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on ``arrays``, one per input slot, and return fresh outputs.  State inputs are updated in place, if
        nothing is raised.

        Raises ShapeError or DTypeError where an array is not of its slot's type, the error of a run-time check that
        fails, and what a function in Python raises.
        """
        dims = argument_checks.bind_dims(self.program, arrays)
        for i in self.updated:
            flags = arrays[i].flags
            if not (flags.c_contiguous and flags.aligned and flags.writeable):
                raise argument_checks.not_updatable(self.program, i)
        inputs = self._without_aliases([self._checked(i, array, dims) for i, array in enumerate(arrays)])
        slots = self.program.inputs
        targets = [inputs[i] if slots[i].in_place else self._empty(slots[i], dims) for i in self.updated]
        outputs = self._run(inputs, targets, dims)
        for i, target in zip(self.updated, targets):
            if target is not inputs[i]:
                inputs[i][...] = target
        return outputs

    def compute(
        self, arrays: Sequence[np.ndarray], in_place: Collection[int] = (), runner: host_interface.Host | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The outputs, and the new values of the state: fresh arrays, or those of the old ones for inputs ``in_place``,
        whose slots allow it.  ``runner`` is the host to run on, for this once.  Raises as ``run`` does; what is raised
        leaves the state as it was."""
        dims = argument_checks.bind_dims(self.program, arrays)
        inputs = [self._checked(i, array, dims) for i, array in enumerate(arrays)]
        assert all(i in self.in_place and inputs[i] is arrays[i] for i in in_place)
        targets = [inputs[i] if i in in_place else self._empty(self.program.inputs[i], dims) for i in self.updated]
        return self._run(inputs, targets, dims, runner), targets

    @property
    def needs_python(self) -> bool:
        """Whether it calls functions in Python."""
        return self.program.needs_python

    def _run(
        self,
        inputs: Sequence[np.ndarray],
        targets: Sequence[np.ndarray],
        dims: dict[str, int],
        runner: host_interface.Host | None = None,
    ) -> list[np.ndarray]:
        program = self.program
        outputs = [self._empty(slot, dims) for slot in program.outputs]
        pointers = self._pointers(*(array.ctypes.data for array in (*inputs, *outputs, *targets)))
        calls = host_callbacks.HostCallbacks(program, self.functions, self.named, dims) if program.callbacks else None
        runner = runner or host_interface.current()
        asked = host_interface.calling(_interrupts().keeping(calls.answer), runner) if calls else runner
        if runner is None and (crew := self._team(dims)) is not None:
            if asked is not None:
                crew.callback = asked.callback
            runner = asked = crew
        arena = memory_pool.empty((value_at(program.memory(runner.workers if runner else 1), dims),), NUMPY["u8"])
        address = ctypes.addressof(asked) if asked else None
        call = self._call_for_host() if runner else self._call
        status = call(pointers, self._extents(*dims.values()), arena.ctypes.data, address)
        if status:
            if calls:
                calls.raise_error(program.checks[status - 1].place)
            self.raise_check(status)
        return outputs

    def _team(self, dims: dict[str, int]) -> ThreadPoolHost | None:
        """The host of a run that threads can be of use to."""
        return self._team_for(dims) if self.shared.value else None

    def _team_for(self, dims: dict[str, int]) -> ThreadPoolHost | None:
        work = value_at(self.program.work, dims)
        return _team().host(work) if work >= words[LEAST] else None

    def timing_team(self, arrays: Sequence[np.ndarray]) -> ThreadPoolHost | None:
        """The threads that a run on ``arrays`` has, for one that is timed."""
        return self._team_for(argument_checks.bind_dims(self.program, arrays))

    def share(self) -> None:
        """Have the entry for a host, where there are threads, for native code that asks for it."""
        if _team().is_on():
            self._call_for_host()
        elif _team().threads() > 1:
            self.shared.value = 0

    def _call_for_host(self) -> Callable[..., int]:
        """The entry for a host, compiled when there is one."""
        if not self.program.sharing:
            return self._call
        if self._shared_call is None:
            with _sharing:
                if self._shared_call is None:
                    symbol = shared_entry(self.program.entry)
                    loaded = _compiled(self.program, self.program.text + self.program.sharing, symbol)
                    self._take(loaded.code)
                    self.tiers.add(loaded)
        assert self._shared_call is not None
        return self._shared_call

    @staticmethod
    def _empty(slot: Slot, dims: dict[str, int]) -> np.ndarray:
        return memory_pool.empty(argument_checks.extents(slot, dims), NUMPY[slot.dtype])

    def raise_check(self, status: int) -> None:
        """Raise the error of the check that a nonzero status stands for, or what interrupted the program."""
        _interrupts().raise_pending()
        place = self.program.checks[status - 1].place if 1 <= status <= len(self.program.checks) else None
        if place is not None and self.program.callbacks[place].exchange:
            self._function(place).explain()
        argument_checks.raise_check(self.program, status)

    def _function(self, place: int) -> Any:
        number = self.program.callbacks[place].function
        assert isinstance(number, int)
        return self.functions[number]

    def _checked(self, i: int, array: np.ndarray, dims: dict[str, int]) -> np.ndarray:
        """The array as machine code may read it: of the slot's type, contiguous, aligned."""
        argument_checks.check(self.program, i, array, dims)
        return array if array.flags.c_contiguous and array.flags.aligned else array.copy()

    def _without_aliases(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Copies in the place of inputs that overlap one that is written in place."""
        for u in self.updated:
            for i, array in enumerate(inputs):
                if i == u or not np.may_share_memory(array, inputs[u]):
                    continue
                if i in self.updated:
                    raise argument_checks.both_updated(self.program, u, i)
                inputs[i] = array.copy()
        return inputs


def load(
    program: Program, functions: host_callbacks.Functions = (), named: host_callbacks.Named = host_callbacks.no_names
) -> Executable:
    """Machine code of a CPU program, loaded; compiled only where the disk cache does not hold it.  ``functions`` are
    those that its callbacks call by number, ``named`` finds those that they call by name."""
    if not host_target.can_run(program.target):
        raise CompileError(
            program.name,
            f"this machine ({host_target.detect().cpu}) cannot run code for "
            f"{program.target.kind} {program.target.cpu}; "
            "compile for runtime.host.target().",
        )
    text, symbols = program.text, [program.entry]
    if program.sharing and isinstance(program.work, int) and program.work >= words[LEAST] and _team().is_on():
        text, symbols = text + program.sharing, [*symbols, shared_entry(program.entry)]
    loaded = _compiled(program, text, *symbols)
    executable = Executable(program, loaded.code, functions, named)
    if len(symbols) > len(loaded.code.addresses):
        executable.shared.value = 0  # until there is better code
    executable.tiers.add(loaded)
    return executable


def _imports() -> dict[str, int]:
    """The functions of the process that programs call, by name."""
    return {**_interrupts().imports(), **host_interface.functions}


def _compiled(program: Program, text: str, *symbols: str) -> code_store.Loaded:
    more = lambda: int(_team().threads()), _imports, program.name
    if tiers.starts_quickly(program, text):
        quick: code_store.Loaded
        if len(symbols) > 1 and tiers.shares_later(program):
            quick = _store().load_quickly(program.text, program.target, symbols[:1], *more, later=(text, symbols))
        else:
            quick = _store().load_quickly(text, program.target, symbols, *more)
        return quick
    return _store().Loaded(_store().load(text, program.target, symbols, *more), machine_code.level_of())
