"""``hf.profile``: what a block of a program does and when, as a file for viewers of traces."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from hybridflow import spans
from hybridflow.core.context import add_process_reason
from hybridflow.errors import ArgumentError, ArgumentTypeError, entered, short_location
from hybridflow.runtime import fork_safe_locks

_MOST_EVENTS = 1_000_000
_PIECES = 256  # of a task for each thread that are noted, at most
# Numbers in the file: of threads that run pieces of kernels, which have no Python, and of rows of brief threads.
_WORKERS, _COMPILERS = 1 << 24, 1 << 25

_open: list[profile] = []  # the one that records
_gate = fork_safe_locks.make()


class profile:  # called like a function, and entered
    """Record what the block does, as a timeline: https://ui.perfetto.dev and ``chrome://tracing`` show the file.

    The timeline has tracing, passes of the compiler, machine code, calls of compiled functions with their kernels on
    each thread, datasets, and callbacks of ``fit``. Results keep their bits. Calls take longer than they do otherwise:
    they go by way of Python, and each kernel notes when it ran. Kernels are compiled anew at the first call in a block,
    so call what matters twice.

    Args:
        path: the file that is written when the block ends, be it by an error. A file of that name is replaced.

    Raises:
        ArgumentError: where another block records already, or the folder does not exist.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "timeline.json")
    >>> f = hf.function(lambda x: hf.sum(hf.exp(x)))
    >>> with hf.profile(path) as timeline:
    ...     _ = f(hf.ones(1000))
    ...     with timeline.span("save"):
    ...         pass
    >>> os.path.exists(path)
    True
    """

    @entered
    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentTypeError("profile", f"the path is {path!r:.60}. Give the name of a file.")
        self._path = os.path.abspath(os.fsdecode(path))  # the block may go to another folder
        self._reset()

    def _reset(self) -> None:
        folder = os.path.dirname(self._path)
        if not os.path.isdir(folder):
            raise ArgumentError("profile", f"there is no folder {folder!r} for the timeline.")
        self._events: list[tuple[Any, ...]] = []
        self._kernels: list[tuple[_Recorded, Any, int, list[list[int]]]] = []
        self._executables: dict[Any, _Recorded] = {}
        self._threads: dict[int, str] = {}
        self._count = self._left_out = self._begin = 0
        self._is_closed = False

    @entered
    def __enter__(self) -> profile:
        with _gate:
            if _open:
                raise ArgumentError("profile", f"a timeline is recorded already, for {_open[0]._path!r}.")
            self._reset()  # entered again, it begins anew
            _open.append(self)
        self._begin = time.monotonic_ns()
        spans.recorder = self
        add_process_reason(1)  # native calls tell of nothing
        return self

    def __exit__(self, *error: object) -> None:
        add_process_reason(-1)
        spans.recorder = None
        with _gate:
            self._is_closed = True  # from here on nothing is kept of what other threads tell
        try:
            self._write()
        finally:
            _open.clear()

    def span(self, name: str) -> Any:
        """A part of the block, for ``with``, which the timeline shows by this name.

        Args:
            name: what it is called.

        Returns:
            A context manager.

        >>> hf.profile("timeline.json").span("load")  # doctest: +ELLIPSIS
        <contextlib._GeneratorContextManager object at ...>
        """
        return spans.span(str(name), "user")

    def add(self, name: str, category: str, start: int, end: int, details: dict[str, Any]) -> None:
        """Keep a span: see ``spans.Recorder``.

        Args:
            name: what was done.
            category: its kind.
            start: when it began, in nanoseconds.
            end: when it ended, in nanoseconds.
            details: more about it, by name.
        """
        thread = threading.get_native_id()
        row = self._threads.get(thread) or threading.current_thread().name
        with _gate:
            if self._has_room(1):
                self._threads[thread] = row
                self._events.append((name, category, start, end, thread, details))

    def record(self, graph: object, executable: object, functions: object, fastmath: bool) -> Any:
        """An executable whose runs are recorded: see ``spans.Recorder``.

        Args:
            graph: the program.
            executable: what runs it.
            functions: the functions of its kernels.
            fastmath: whether it was compiled so.

        Returns:
            What runs in its place.
        """
        result = self._executables.get(executable)
        if result is None:
            result = self._executables[executable] = _Recorded(self, graph, executable, functions, fastmath)
        return result

    def add_kernels(self, recorded: _Recorded, program: object, thread: int, notes: list[list[int]]) -> None:
        """Keep what the kernels of a run noted.

        Args:
            recorded: the executable that is recorded.
            program: the program that it ran.
            thread: the number of the thread.
            notes: times of the kernels.
        """
        with _gate:
            if self._has_room(len(notes)):
                self._kernels.append((recorded, program, thread, notes))

    def _has_room(self, events: int) -> bool:
        if self._is_closed:
            return False
        has_room = self._count + events <= _MOST_EVENTS
        if has_room:
            self._count += events
        else:
            self._left_out += events
        return has_room

    def _write(self) -> None:
        pid = os.getpid()
        lines: list[dict[str, Any]] = [_named("process_name", pid, 0, "hybridflow")]
        rows = self._rows()
        lines += [_named("thread_name", pid, number, name) for number, name in sorted(set(rows.values()))]
        workers: set[int] = set()

        def complete(name: str, category: str, start: int, end: int, thread: int, details: dict[str, Any]) -> None:
            times = {"ts": (start - self._begin) / 1e3, "dur": (end - start) / 1e3}
            lines.append({"name": name, "cat": category, "ph": "X", **times, "pid": pid, "tid": thread} |
                         ({"args": details} if details else {}))  # fmt: skip

        for name, category, start, end, thread, details in self._events:
            complete(name, category, start, end, rows[thread][0], details)
        for recorded, program, caller, notes in self._kernels:
            for task, worker, start, end in notes:
                if worker:
                    workers.add(worker)
                name, details = recorded.describe(program, task)
                complete(name, "kernel", start, end, _WORKERS + worker if worker else caller, details)
        lines += [_named("thread_name", pid, _WORKERS + worker, f"worker {worker}") for worker in sorted(workers)]
        other = {"left out": self._left_out} if self._left_out else {}
        beside = f"{self._path}.{pid}.part"
        try:
            with open(beside, "w", encoding="utf-8") as file:
                json.dump({"traceEvents": lines, "displayTimeUnit": "ns", "otherData": other}, file)
            os.replace(beside, self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise

    def _rows(self) -> dict[int, tuple[int, str]]:
        """The row of each thread: a number, and what it is called.  Threads that compile are brief, and share rows."""
        rows = {thread: (thread, name) for thread, name in self._threads.items() if not name.startswith("Dummy-")}
        lives: dict[int, list[int]] = {}
        for _, _, start, end, thread, _ in self._events:
            if thread not in rows:
                life = lives.setdefault(thread, [start, end])
                life[:] = min(start, life[0]), max(end, life[1])
        ends: list[int] = []
        for thread, (start, end) in sorted(lives.items(), key=lambda item: item[1]):
            free = next((k for k, until in enumerate(ends) if until <= start), len(ends))
            ends[free : free + 1] = [end]
            rows[thread] = _COMPILERS + free, f"compiler {free}"
        return rows


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


class _Recorded:
    """An executable that tells a timeline when its kernels run."""

    def __init__(self, timeline: profile, graph: Any, executable: Any, functions: Any, fastmath: bool) -> None:
        self._timeline, self._graph, self._plain = timeline, graph, executable
        self._functions, self._fastmath = functions, fastmath
        self._timed: dict[tuple[tuple[int, ...], ...], Any] = {}  # by extents, which say how work is cut
        self._details: dict[tuple[int, int], tuple[str, dict[str, Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def compute(
        self, arrays: Sequence[np.ndarray], in_place: Collection[int] = ()
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As ``runtime.cpu.Executable.compute``."""
        from hybridflow.eager.executable import timed_executable_for
        from hybridflow.runtime.recording_host import RecordingHost  # native code, loaded when somebody asks

        shapes = tuple(array.shape for array in arrays)
        timed = self._timed.get(shapes)
        if timed is None:
            with spans.span(f"kernels of {self._graph.name}", "compile"):
                timed = self._timed[shapes] = timed_executable_for(self._graph, arrays, self._fastmath, self._functions)
        result: tuple[list[np.ndarray], list[np.ndarray]]
        if not timed.in_place.issuperset(in_place):
            result = self._plain.compute(arrays, in_place)
            return result
        team = timed.timing_team(arrays)
        host = RecordingHost(len(timed.program.tasks or ()) * _PIECES * (team.workers if team else 1), team)
        try:
            result = timed.compute(arrays, in_place, host.struct)
        finally:
            self._timeline.add_kernels(self, timed.program, threading.get_native_id(), host.notes())
        return result

    def describe(self, program: Any, task: int) -> tuple[str, dict[str, Any]]:
        """The name of the kernel of a task of a program, and what there is to say of it."""
        description = self._details.get((id(program), task))  # programs live as long as the notes of their runs
        if description is None:
            info = program.kernels[program.tasks[task]]
            details: dict[str, Any] = {"function": self._graph.name, "ops": ", ".join(info.ops)}
            details["where"] = ", ".join(map(short_location, info.lines))
            details |= {name: value for name in ("bytes", "flops") if (value := getattr(info, name)) is not None}
            description = self._details[id(program), task] = info.name, details
        return description
