"""``hybridflow run --engine``: processes that an engine places on the machines of a cluster, and that meet by sockets.

An engine only places watchers, and says when one is lost.  Where a process fails, or its machine is gone, all are
started again from their last backup, with as many as there is room for then.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from hybridflow.core import processes
from hybridflow.distribute.launcher import MOST, check
from hybridflow.distribute.watcher import News
from hybridflow.errors import ArgumentError, WorkerLost

_PATIENCE = 60.0  # seconds that it waits for room for as many as are wanted, before fewer begin
_AGAIN = 0.2
_LATER = 2.0  # seconds in which the one that failed may still say so, after another has missed it
_KEPT = 1 << 16  # bytes of errors that are kept of each rank but the first
_TOLD = 128 + signal.SIGTERM  # the exit code where none has begun


class Engine(Protocol):
    """What places watchers.  A watcher is asked by name: ``begin`` returns at once, and ``value`` the answer."""

    def room(self) -> int:
        """How many processes there is room for now."""

    def place(self, count: int) -> list[Any]:
        """So many watchers.  Raises WorkerLost where they find no place in time."""

    def begin(self, watcher: Any, method: str, *arguments: Any) -> Any:
        """Have a watcher do something."""

    def wait(self, begun: Sequence[Any], timeout: float | None = None) -> Any:
        """The first one of what was begun that is done; None where none is within some seconds."""

    def value(self, begun: Any) -> Any:
        """What came out.  Raises WorkerLost where the watcher is gone."""

    def remove(self, watchers: Sequence[Any]) -> None:
        """End watchers, and the processes that they watch."""


def counts(text: str) -> tuple[int, int]:
    """How many processes there are to be at least and at the most: ``4``, or ``2:8``.  Raises ArgumentError."""
    least, _, most = text.partition(":")
    try:
        limits = int(least), int(most or least)
    except ValueError:
        raise ArgumentError("run", f"-n is {text!r}. Expected a number of processes, or LEAST:MOST.") from None
    if not 1 <= limits[0] <= limits[1] <= MOST:
        raise ArgumentError("run", f"-n is {text}. Expected 1 to {MOST} processes.")
    return limits


def launch(
    engine: Engine,
    command: Sequence[str],
    least: int,
    most: int,
    timeout: float,
    restarts: int = 0,
    environment: Mapping[str, str] | None = None,
    patience: float = _PATIENCE,
    shown: Callable[[bytes, bool], None] | None = None,
) -> int:
    """Run ``SCRIPT ARGUMENTS ...`` in ``least`` to ``most`` processes; the exit code.

    ``shown`` is given what is printed, and whether it is of errors.  Raises ArgumentError for what cannot be, and where
    there is no room.
    """
    check(command, timeout)
    if restarts < 0:
        raise ArgumentError("run", f"--restarts is {restarts}. Expected 0 or more.")
    show = shown or _show
    told = threading.Event()
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, lambda number, frame: told.set())
    try:
        while True:
            count = _room(engine, least, most, patience, told)
            if told.is_set():
                return _TOLD
            code = _Run(engine, command, count, timeout, environment or {}, show, told).watch()
            if code in (0, processes.COME_AGAIN) or told.is_set() or not restarts:
                return code
            restarts -= 1
            show(f"[run] all are started again; restarts left: {restarts}.\n".encode(), True)
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _room(engine: Engine, least: int, most: int, patience: float, told: threading.Event) -> int:
    """How many processes begin: the most that there is room for within some time, or until ``told``."""
    deadline = time.monotonic() + patience
    while (room := engine.room()) < most and not told.is_set() and time.monotonic() < deadline:
        time.sleep(_AGAIN)  # not told.wait: the signal's handler would wait for the lock which that holds
    if room < least and not told.is_set():
        raise ArgumentError("run", f"the cluster has room for {room} processes. Expected room for {least}.")
    return min(room, most)


def _show(text: bytes, is_error: bool) -> None:
    stream = sys.stderr if is_error else sys.stdout
    stream.flush()
    stream.buffer.write(text)  # as it came: a character may be cut where a chunk ends
    stream.buffer.flush()


class _Run:
    """The processes, from when they are placed until all have ended."""

    def __init__(
        self,
        engine: Engine,
        command: Sequence[str],
        count: int,
        timeout: float,
        environment: Mapping[str, str],
        show: Callable[[bytes, bool], None],
        told: threading.Event,
    ) -> None:
        self._engine, self._count, self._show, self._told = engine, count, show, told
        self._arguments = ["--timeout", f"{timeout:g}", os.path.abspath(command[0]), *command[1:]]
        self._environment = environment
        self._errors: dict[int, bytearray] = {}  # the last that others than the first have printed as errors
        self._cut: set[int] = set()  # who has printed more
        self._watchers: list[Any] = []

    def watch(self) -> int:
        """The exit code: that of the first which fails, and does not merely miss another."""
        try:
            return self._watch()
        finally:
            self._engine.remove(self._watchers)

    def _watch(self) -> int:
        engine, rank = self._engine, 0
        try:
            self._watchers = list(engine.place(self._count))
            host, port = engine.value(engine.begin(self._watchers[0], "address"))
            begun = []
            for rank, watcher in enumerate(self._watchers):
                place = {
                    "TF_CONFIG": "",
                    "RANK": rank,
                    "WORLD_SIZE": self._count,
                    "MASTER_ADDR": host,
                    "MASTER_PORT": port,
                }
                environment = {**self._environment, **{name: str(value) for name, value in place.items()}}
                begun.append(engine.begin(watcher, "start", self._arguments, environment, os.getcwd()))
            for rank, one in enumerate(begun):  # noqa: B007  (an error is of that rank)
                engine.value(one)
        except WorkerLost as error:
            return self._failed(rank, str(error), 1)
        asked = {engine.begin(watcher, "news"): rank for rank, watcher in enumerate(self._watchers)}
        codes: dict[int, int] = {}
        is_told = False
        missed: tuple[int, str, int] | None = None  # the first that waits in vain for another
        deadline = math.inf
        while asked and (left := deadline - time.monotonic()) > 0:
            done = engine.wait(list(asked), None if missed is None else left)
            if done is None:
                break
            rank = asked.pop(done)
            try:
                news = engine.value(done)
            except WorkerLost as error:
                return self._failed(rank, str(error), 1)
            self._note(rank, news)
            if news.code is None:
                asked[engine.begin(self._watchers[rank], "news")] = rank
            elif news.code in (0, processes.COME_AGAIN):
                codes[rank] = news.code
            else:
                how = f"ended by signal {-news.code}" if news.code < 0 else f"ended with exit code {news.code}"
                if news.code != processes.MISSED:
                    return self._failed(rank, how, 1 if news.code < 0 else news.code)
                if missed is None:
                    deadline, missed = time.monotonic() + _LATER, (rank, how, news.code)
            if self._told.is_set() and not is_told:
                is_told = True
                for watcher in self._watchers:
                    engine.begin(watcher, "tell")
        return max(codes.values()) if missed is None else self._failed(*missed)

    def _note(self, rank: int, news: News) -> None:
        if rank == 0:
            for text, is_error in ((news.out, False), (news.err, True)):
                if text:
                    self._show(text, is_error)
        elif news.err:
            kept = self._errors.setdefault(rank, bytearray())
            kept += news.err
            if len(kept) > _KEPT:
                del kept[:-_KEPT]
                self._cut.add(rank)

    def _failed(self, rank: int, how: str, code: int) -> int:
        for one in sorted(self._errors, key=lambda one: (one == rank, one)):  # what has failed comes last
            text = bytes(self._errors[one])
            if one in self._cut:
                text = f"[run] rank {one} of {self._count} has printed more before:\n".encode() + text
            self._show(text if text.endswith(b"\n") else text + b"\n", True)
        self._show(f"[run] rank {rank} of {self._count}: {how}.\n".encode(), True)
        return code
