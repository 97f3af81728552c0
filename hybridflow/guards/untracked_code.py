"""The net: notices the user's code that runs while tracing although nothing records what it reads.

Such code is called in ways that no instrumented code sees: by a C function with a callback, by a library.  A trace that
met it cannot be used again; the next one knows the functions and records them (see ``observe``).

What an import runs that begins while tracing is no such code: finders, loaders and bodies of modules run once, for the
trace as without it, and what they leave in modules is guarded where it is read.

``sys.monitoring`` tells which code starts from Python 3.12 on, ``sys.settrace`` before.  Both are on while tracing
only.
"""

from __future__ import annotations

import gc
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from hybridflow.core.context_manager import Nested, block
from hybridflow.guards.code_ownership import USER, owner_of
from hybridflow.guards.guard_builder import GuardBuilder, active, set_trace
from hybridflow.guards.instrumented_code import is_generated, is_instrumented
from hybridflow.runtime import fork_safe_locks


def _is_safe(code: types.CodeType) -> bool:
    """Whether code is a library's, or records what it reads."""
    return owner_of(code.co_filename) != USER or is_instrumented(code) or is_generated(code)


_IMPORTS = "<frozen importlib._bootstrap>"


def _count_imports() -> int:
    """How deep the caller is in imports."""
    count, frame = 0, sys._getframe(1)
    while frame is not None:
        count += frame.f_code.co_filename == _IMPORTS
        frame = frame.f_back  # type: ignore[assignment]
    return count


def _is_seen_by_none(code: types.CodeType, recording: GuardBuilder) -> bool:
    return active.recording is recording and not _is_safe(code) and _count_imports() <= recording.imports


@block
def watch_untracked_code(recording: GuardBuilder) -> Iterator[None]:
    """Add code that runs unseen in this thread to ``recording.unseen``."""
    recording.imports = _count_imports()
    with _collections_apart(), (_monitor_code if _tool() is not None else _trace_calls)(recording):
        yield


# A collection of garbage may begin anywhere, and runs finalizers and callbacks that are no part of what is traced.


class _Apart(threading.local):
    """The recording that waits in this thread for the end of a collection."""

    recording: GuardBuilder | None = None


_apart = _Apart()
_apart_lock = fork_safe_locks.make()
_apart_users = 0


def _collection_starts(phase: str, _: object) -> None:
    if phase != "start":
        return
    if _apart.recording is not None:  # an interrupt came as the end of the last one was told: it went on unrecorded
        _apart.recording.reason("was not recorded to its end", "call it again: an interrupt came while tracing")
        _apart.recording = None
    if active.recording is not None:
        _apart.recording, active.recording = active.recording, None


def _collection_stops(phase: str, _: object) -> None:
    if phase == "stop" and _apart.recording is not None:
        active.recording, _apart.recording = _apart.recording, None


# Python drops an interrupt that comes as a callback of the collector begins, and the callback with it.
_STOPS = (_collection_stops,) * 3


@block
def _collections_apart() -> Iterator[None]:
    """Record nothing while garbage is collected: ours are the first callback when it starts, the last when it stops."""
    global _apart_users
    with _apart_lock:
        _apart_users += 1
        if _apart_users == 1:
            gc.callbacks.extend(_STOPS)  # first: a collection may begin right here
            gc.callbacks.insert(0, _collection_starts)
    try:
        yield
    finally:
        with _apart_lock:
            _apart_users -= 1
            if not _apart_users:
                gc.callbacks.remove(_collection_starts)
                for stops in _STOPS:
                    gc.callbacks.remove(stops)


# Python 3.12 and later

_TOOLS = (4, 3, 5)  # ids that no standard tool takes
_recordings: dict[int, GuardBuilder] = {}  # by thread
_watched: dict[int, Nested] = {}  # the blocks in which they go on
_tool_id: int | None = None


def _tool() -> int | None:
    """The id under which this module is known to sys.monitoring; None where there is none to be had."""
    global _tool_id
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        return None
    if _tool_id is not None and monitoring.get_tool(_tool_id) == "hybridflow":
        return _tool_id
    for number in _TOOLS:
        if monitoring.get_tool(number) is None:
            monitoring.use_tool_id(number, "hybridflow")
            monitoring.register_callback(number, monitoring.events.PY_START, _start_traced)
            _tool_id = number
            return number
    return None


def _start_traced(code: types.CodeType, offset: int) -> Any:
    if _is_safe(code):
        return sys.monitoring.DISABLE  # type: ignore[attr-defined]  # for good: it stays safe
    recording = _recordings.get(threading.get_ident())
    if recording is not None and _is_seen_by_none(code, recording):
        recording.untracked.add(code)
    return None


@block
def _monitor_code(recording: GuardBuilder) -> Iterator[None]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
    tool, thread = _tool(), threading.get_ident()
    # Where nothing is recorded around it, what is there was left behind by an interrupt.
    outer = None if active.innermost is None else _watched.get(thread)
    before, here = None if outer is None else _recordings.get(thread), Nested(outer)
    _recordings[thread], _watched[thread] = recording, here
    if len(_recordings) == 1:
        monitoring.set_events(tool, monitoring.events.PY_START)
    try:
        yield
    finally:
        if not here.is_open(_watched.get(thread)):
            pass
        elif before is not None and outer is not None:
            _recordings[thread], _watched[thread] = before, outer
        else:
            _watched.pop(thread, None)
            _recordings.pop(thread, None)
            if not _recordings:
                monitoring.set_events(tool, 0)


# Python 3.11, and where all ids are taken

_of_libraries: dict[int, types.CodeType] = {}  # code that was seen and is safe for good, by its id, which it keeps so
_MOST_OF_LIBRARIES = 1 << 14


def _look(code: types.CodeType, recording: GuardBuilder) -> None:
    if owner_of(code.co_filename) != USER:
        if len(_of_libraries) >= _MOST_OF_LIBRARIES:
            _of_libraries.clear()
        _of_libraries[id(code)] = code
    elif _is_seen_by_none(code, recording):
        recording.untracked.add(code)


def end_trace(before: object) -> None:
    """After a trace: let ``sys.gettrace()`` be what it was before it.  An interrupt may have come after the block that
    sees to that was left, and before the generator of the block went on."""
    now = sys.gettrace()
    if now is not before and getattr(now, "__module__", None) == __name__:
        set_trace(before)


@block
def _trace_calls(recording: GuardBuilder) -> Iterator[None]:
    other: Callable[..., Any] | None = sys.gettrace()
    known = _of_libraries

    def started(frame: types.FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if id(code) not in known:  # asked for each call of a function in Python that the trace makes
            _look(code, recording)
        return None if other is None else other(frame, event, argument)

    recording.tracer = started if other is None else None
    try:
        set_trace(started)  # in here: an interrupt comes as soon as it is set
        yield
    finally:
        recording.tracer = None
        if sys.gettrace() is started:  # it may be over long since, see ``end_trace``
            set_trace(other)
