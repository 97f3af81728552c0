"""``hybridflow run`` on one machine: it makes what a group needs, starts its processes, and watches them.

The first error is shown and ends all.  Nothing that is made has a name, so nothing is left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hybridflow.core import processes
from hybridflow.distribute.group import VARIABLE, Inherited, board, half_of, outbox
from hybridflow.errors import ArgumentError

MOST = 64
_PATIENCE = 2.0  # seconds between asking processes to end and ending them
_LATER = 0.5  # seconds in which the one that failed may still say so, after another has missed it


def launch(
    command: Sequence[str],
    count: int,
    timeout: float,
    threads: int | None = None,
    environment: Mapping[str, str] | None = None,
    restarts: int = 0,
) -> int:
    """Run ``SCRIPT ARGUMENTS ...`` in ``count`` processes that share the replicas out; the exit code.

    Where one fails, all are started again, ``restarts`` times at the most.  Raises ArgumentError for a number of
    processes that cannot be, and a script that is not there.
    """
    if not 1 <= count <= MOST:
        raise ArgumentError("run", f"-n is {count}. Expected 1 to {MOST} processes.")
    if restarts < 0:
        raise ArgumentError("run", f"--restarts is {restarts}. Expected 0 or more.")
    check(command, timeout)
    variables = dict(os.environ if environment is None else environment)
    if threads is None:
        threads = max(1, _cores() // count)
    variables.setdefault("HF_NUM_THREADS", str(threads))
    seed = int.from_bytes(os.urandom(7), "little")
    with _sigterm_passed_on() as current:
        while True:
            with _Workers(command, count, timeout, variables, seed) as workers:
                current[:] = [workers]
                code = workers.watch()
            current.clear()
            if code in (0, processes.COME_AGAIN) or workers.are_told or not restarts:
                return code
            restarts -= 1
            print(f"[run] all are started again; restarts left: {restarts}.", file=sys.stderr, flush=True)


def check(command: Sequence[str], timeout: float) -> None:
    """Raise ArgumentError for a deadline that cannot be, and a script that is not there."""
    if not timeout > 0:
        raise ArgumentError("run", f"--timeout is {timeout:g}. Expected a number of seconds above 0.")
    if not os.path.isfile(command[0]):
        raise ArgumentError("run", f"there is no script {command[0]!r}.")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Workers:
    """The processes, from when they are started until all have ended."""

    def __init__(
        self, command: Sequence[str], count: int, timeout: float, environment: dict[str, str], seed: int
    ) -> None:
        self.are_told = False  # to end
        self._reports: list[int] = []
        self._pending: dict[int, bytes] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._errors: list[dict[str, Any]] = []
        self._is_preempted = False
        try:
            self._start(command, count, timeout, environment, seed)
        except BaseException:
            self.end()
            raise

    def _start(
        self, command: Sequence[str], count: int, timeout: float, environment: dict[str, str], seed: int
    ) -> None:
        with contextlib.ExitStack() as opened:
            pairs: dict[tuple[int, int], tuple[int, int]] = {}
            for a in range(count):
                for b in range(a + 1, count):
                    one, two = socket.socketpair()
                    opened.callback(one.close)
                    opened.callback(two.close)
                    pairs[a, b] = one.fileno(), two.fileno()
            *outboxes, board = _shared_memory(count, opened)
            for rank in range(count):
                reading, writing = os.pipe()
                self._reports.append(reading)
                opened.callback(os.close, writing)
                peers = [-1 if k == rank else pairs[min(k, rank), max(k, rank)][int(rank > k)] for k in range(count)]
                inherited = Inherited(rank, count, peers, outboxes, board, writing, seed, timeout)
                self._processes.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "hybridflow.distribute.worker", *command],
                        env={**environment, VARIABLE: inherited.text()},
                        pass_fds=[*(fd for fd in peers if fd >= 0), *outboxes, board, writing],
                    )
                )

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def tell(self) -> None:
        """Ask all to end: those that can save what they need to go on do so."""
        self.are_told = True
        for process in self._processes:
            if process.poll() is None:
                process.terminate()

    def watch(self) -> int:
        """Wait until all have ended, or one has failed."""
        with selectors.DefaultSelector() as selector:
            for rank, report in enumerate(self._reports):
                selector.register(report, selectors.EVENT_READ, rank)
                self._pending[rank] = b""
            running = set(range(len(self._processes)))
            while running and not self._first_error():
                for key, _ in selector.select():
                    if self._read(key.fd, key.data):
                        continue
                    selector.unregister(key.fd)
                    running.discard(key.data)
                    self._note_end(key.data)
            return self._exit_code(selector)

    def _read(self, descriptor: int, rank: int) -> bool:
        """Take what a process reports; False where it has ended."""
        data = os.read(descriptor, 1 << 16)
        *lines, self._pending[rank] = (self._pending[rank] + data).split(b"\n")
        self._errors += [json.loads(line) for line in lines]
        return bool(data)

    def _note_end(self, rank: int) -> None:
        code = self._processes[rank].wait()
        known = any(error["rank"] == rank for error in self._errors)
        if code == processes.COME_AGAIN:  # the others are about to end so, too
            self._is_preempted = True
        elif code and not known:
            how, shown = (
                (f"by {_signal(-code)}", 128 - code if self.are_told else 1)
                if code < 0
                else (f"with exit code {code}", code)
            )
            self._errors.append({"rank": rank, "error": f"ended {how}.", "is_later": False, "code": shown})

    def _first_error(self) -> dict[str, Any] | None:
        return next((error for error in self._errors if not error["is_later"]), None)

    def _exit_code(self, selector: selectors.BaseSelector) -> int:
        deadline = time.monotonic() + _LATER
        while self._errors and not self._first_error() and selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(max(0.0, deadline - time.monotonic())):
                if not self._read(key.fd, key.data):
                    selector.unregister(key.fd)
                    self._note_end(key.data)
        first = self._first_error() or next(iter(self._errors), None)
        if first is None:
            return processes.COME_AGAIN if self._is_preempted else 0
        self.end()
        print(f"[run] rank {first['rank']} of {len(self._processes)}: {first['error']}", file=sys.stderr, flush=True)
        return int(first.get("code", 1))

    def end(self) -> None:
        """End those that still run, and close what is open."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
                process.send_signal(signal.SIGCONT)  # a stopped one does not heed the other
        deadline = time.monotonic() + _PATIENCE
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        while self._reports:
            os.close(self._reports.pop())


def _shared_memory(count: int, opened: contextlib.ExitStack) -> list[int]:
    """The outbox of each process, and the board."""
    if not hasattr(os, "memfd_create"):
        raise ArgumentError("run", "this system has no memory that processes share without a name; use Linux.")
    descriptors: list[int] = []
    try:
        for rank in range(count + 1):
            descriptors.append(outbox(f"hybridflow-{rank}", count) if rank < count else board(count))
            opened.callback(os.close, descriptors[-1])
    except OSError as error:
        raise ArgumentError(
            "run",
            f"there is no memory for {count} processes to share, 2 x {half_of(count)} bytes each: {error.strerror}.",
        ) from None
    return descriptors


def _signal(number: int) -> str:
    try:
        return f"signal {number}, {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"


@contextlib.contextmanager
def _sigterm_passed_on() -> Iterator[list[_Workers]]:
    """A block in which SIGTERM is passed on to the processes of the list; where there are none, or were told before, it
    ends the block as Ctrl-C does."""
    current: list[_Workers] = []
    if threading.current_thread() is not threading.main_thread():
        yield current
        return

    def tell(number: int, frame: object) -> None:
        if not current or current[0].are_told:
            raise KeyboardInterrupt
        current[0].tell()

    before = signal.signal(signal.SIGTERM, tell)
    try:
        yield current
    finally:
        signal.signal(signal.SIGTERM, before)
