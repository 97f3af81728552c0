"""Twins: the instrumented code of the user's functions, which takes the place of their own while a trace goes on.

A function keeps its identity and merely runs its twin's code, so that whoever calls it (an operator, a property,
``sorted``, a library) runs what is recorded.  Other threads may run the twin meanwhile: it does what the function does,
since the recorder takes note of the thread that traces only.
"""

from __future__ import annotations

import functools
import types
import weakref
from typing import Any

from hybridflow.autograph.source.code_builder import Rebuilder
from hybridflow.autograph.source.code_unit import Function
from hybridflow.autograph.source.lookup import ByCode, Missing, Source
from hybridflow.autograph.transform.instrument import instrument
from hybridflow.autograph.transform.instrument_bytecode import Unknown, instrument_code, original_of
from hybridflow.guards.code_ownership import is_recorded
from hybridflow.guards.guard_builder import GuardBuilder
from hybridflow.runtime import fork_safe_locks
from hybridflow.runtime.calls.guard_steps import stand_ins

_lock = fork_safe_locks.make()
_instrumented: dict[int, weakref.ref[types.CodeType]] = {}  # twins, and the code of what is defined in them, by id
_of_code: ByCode[types.CodeType | str] = ByCode()  # twins made of byte code, or why there is none
_swapped: dict[
    int, list[Any]
] = {}  # by id of the function: [function, its code, twin, count of the traces that need it]


def is_instrumented(code: types.CodeType) -> bool:
    """Whether code is instrumented."""
    known = _instrumented.get(id(code))
    return known is not None and known() is code


def is_converted(code: types.CodeType) -> bool:
    """Whether code is instrumented, and its statements take tensors."""
    return is_instrumented(code) and original_of(code) is None


def original_code(function: types.FunctionType) -> types.CodeType:
    """The function's own code, whatever runs now."""
    swapped = _swapped.get(id(function))
    return swapped[1] if swapped is not None and function.__code__ is swapped[2] else function.__code__


def follow(recording: GuardBuilder, function: Any) -> None:
    """Record what the Python function ``function`` will read when it runs, and that it is what it is."""
    code = original_code(function)
    if is_instrumented(code) or not is_recorded(code):
        return  # made by the trace itself, or a library's
    slot = recording.slot_of(function)
    if slot is None:
        slot = recording.weak_root(function, function.__name__)
    text = recording.texts[slot]
    known = recording.guard_read(slot, "code", None, code, f"{text}.__code__")
    if known < len(recording.steps) - 1 and id(function) in recording.followed:
        return
    recording.followed[id(function)] = function
    recording.closure_of(function, slot)
    read_defaults(recording, function, slot)
    run_recorded(recording, function)


def run_recorded(recording: GuardBuilder, function: types.FunctionType) -> None:
    """Let the function run its twin while the trace goes on."""
    why = recording.swaps.add(function)
    if why is not None and not is_generated(function.__code__):
        code = original_code(function)
        recording.reason(
            f"runs {function.__qualname__}, of which neither the source nor the byte code can be read: {why}",
            "define it in a file, or set HF_KEEP_TEXT=1 before hybridflow is imported",
            where=f"{code.co_filename}:{code.co_firstlineno}",
        )


def read_defaults(recording: GuardBuilder, function: types.FunctionType, slot: int) -> None:
    """Note the default values of a function's parameters."""
    text = recording.texts[slot]
    for name, read in (("__defaults__", "defaults"), ("__kwdefaults__", "keyword defaults")):
        held = getattr(function, name)
        if not held:
            continue
        where = recording.guard_read(slot, read, None, held, f"{text}.{name}")
        recording.add_guard(where, "length", len(held))
        pairs = held.items() if isinstance(held, dict) else enumerate(held)
        for key, item in pairs:
            recording.guard_read(
                where, "item" if isinstance(held, dict) else "index", key, item, f"{text}.{name}[{key!r}]"
            )


def is_generated(code: types.CodeType) -> bool:
    """Whether a method was written by ``dataclasses`` or ``collections.namedtuple``: it reads the fields alone."""
    return code.co_filename == "<string>" and (
        code.co_qualname.startswith("__create_fn__.<locals>.__") or code.co_names == ("_tuple_new",)
    )


class CodeSwaps:
    """The functions that run their twins for one trace; ``undo`` gives them their own code back."""

    def __init__(self, recorder: object, code_recorder: object) -> None:
        self._recorders = recorder, code_recorder
        self._functions: list[types.FunctionType] = []

    def add(self, function: types.FunctionType) -> str | None:
        """Let the function run its twin.  The reason if there is none."""
        with _lock:
            swapped = _swapped.get(id(function))
            if swapped is not None and function.__code__ is swapped[2]:
                swapped[3] += 1
                self._functions.append(function)
                return None
            code = function.__code__
            twin = instrument_function(function, *self._recorders)
            if isinstance(twin, str):
                return twin
            _swapped[id(function)] = [function, code, twin, 1]
            self._functions.append(function)
            stand_ins[id(twin)] = code
            function.__code__ = twin
            return None

    def undo(self) -> None:
        with _lock:
            while self._functions:
                function = self._functions[-1]
                swapped = _swapped.get(id(function))
                if swapped is not None:
                    swapped[3] -= 1
                    if swapped[3] <= 0:
                        if function.__code__ is swapped[2]:  # else the user gave it another code meanwhile
                            function.__code__ = swapped[1]
                        del _swapped[id(function)]
                        if all(other[2] is not swapped[2] for other in _swapped.values()):
                            stand_ins.pop(id(swapped[2]), None)
                self._functions.pop()


def instrument_function(function: types.FunctionType, recorder: object, code_recorder: object) -> types.CodeType | str:
    """A function's code with calls of ``recorder`` in it, or of ``bytecode_recorder`` if its source is not known.

    The reason if there is none.
    """
    code = function.__code__
    twin: types.CodeType | Missing | str = _rebuilder(recorder).code(code, function)
    if isinstance(twin, Missing):
        twin = _instrumented_code(code, code_recorder, twin.reason)
    if isinstance(twin, types.CodeType) and not is_instrumented(twin):
        _note(twin)
    return twin


def _instrumented_code(code: types.CodeType, recorder: object, missing: str) -> types.CodeType | str:
    known = _of_code.get(code)
    if known is not None:
        return known
    if is_generated(code):
        return missing  # nothing needs to be recorded
    try:
        return _of_code.put(code, instrument_code(code, recorder))
    except Unknown as error:
        return _of_code.put(code, f"{missing}; {error}")


def _note(twin: types.CodeType) -> None:
    number = id(twin)
    _instrumented[number] = weakref.ref(twin, functools.partial(_instrumented.pop, number))
    for constant in twin.co_consts:
        if isinstance(constant, types.CodeType):
            _note(constant)


_RECORDER = "hybridflow recorder \N{LOCK}"  # stands for the recorder in a tree


@functools.cache
def _rebuilder(recorder: object) -> Rebuilder:
    return Rebuilder(_instrumented_tree, {_RECORDER: recorder})


def _instrumented_tree(node: Function, source: Source) -> Function:
    return instrument(node, frozenset(source.code.co_freevars), source.owner, _RECORDER)
