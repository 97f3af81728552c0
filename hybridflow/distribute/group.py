"""The processes that share out the replicas: how they exchange arrays, notice a loss, and agree on what they do.

``hybridflow run`` makes what a group needs before it starts its processes, and they inherit it: a pair of sockets
between any two, whose ends say that a process has ended; memory without a name for what each one hands out; and a board
on which each says where it is.  So nothing has a name, and nothing is left behind, whoever dies.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import math
import mmap
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hybridflow.compiler.ops.replica_tree import canonical_nodes, finished
from hybridflow.core import processes
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, CollectiveTimeout, ReplicaError, WorkerLost, short_location, user_location
from hybridflow.runtime import fork_safe_locks, interrupt_checks, process_exchange, process_exchange_words as words
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.threads import thread_count

VARIABLE = "HF_GROUP"  # the environment variable that says what was inherited
_PAGE = mmap.PAGESIZE
_HALF, _ALL = 1 << 22, 1 << 27  # bytes of half an outbox, and of halves of all processes, at the most
_SPINS = 2000  # looks of a process that waits, some 50 us, before it sleeps


class Inherited(NamedTuple):
    """What a process finds when it starts: file descriptors, and who it is."""

    rank: int
    size: int
    peers: list[int]  # of the socket to each other process; -1 for itself
    outboxes: list[int]
    board: int
    report: int  # to the launcher
    seed: int
    timeout: float

    def text(self) -> str:
        """For the environment."""
        return json.dumps(self._asdict())

    @classmethod
    def read(cls, text: str) -> Inherited:
        """What ``text`` made.  Raises ArgumentError for what did not come from there."""
        try:
            result = cls(**json.loads(text))
            if not 0 <= result.rank < result.size or len(result.peers) != result.size:
                raise ValueError
        except (ValueError, TypeError):
            raise ArgumentError("run", f"{VARIABLE} is {text!r:.60}. It is set by 'hybridflow run'.") from None
        return result


def half_of(size: int) -> int:
    """Bytes of half an outbox, where there are so many processes: what is longer is exchanged in several rounds."""
    return min(_HALF, _ALL // size) // _PAGE * _PAGE


def outbox(name: str, size: int) -> int:
    """The descriptor of memory without a name among files, which goes with the last process that has it.  Raises
    OSError where there is no memory."""
    return _memory(name, 2 * half_of(size))


def board(size: int) -> int:
    """The same, with a slot for each of so many processes."""
    return _memory("hybridflow-board", size * words.SLOT)


def _memory(name: str, count: int) -> int:
    descriptor = os.memfd_create(name)
    try:
        os.ftruncate(descriptor, count)
        os.posix_fallocate(descriptor, 0, count)  # else a full memory ends the process as it writes
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class _Shared:
    """Memory that processes share, mapped for as long as this lives."""

    def __init__(self, descriptor: int) -> None:
        self._map = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self._first = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._first)

    def read(self, format: str, offset: int) -> tuple[Any, ...]:
        return struct.unpack_from(format, self._map, offset)

    def text(self, offset: int, length: int) -> str:
        return self._map[offset : offset + length].decode("utf-8", "replace")


class Processes:
    """The processes of a run, as one of them sees it: what collectives are made of, whatever carries the bytes.

    After a failure nothing more is exchanged: each exchange raises what the first one raised.
    """

    timeout: float  # seconds that it waits for others

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self._is_once = False
        self._lock = threading.Lock()

    def run_of(self, rank: int, replicas: int) -> tuple[int, int]:
        """The replicas [begin, end) of a process."""
        return replicas * rank // self.size, replicas * (rank + 1) // self.size

    def exchange(self, what: str, data: np.ndarray, where: str | None = None) -> list[np.ndarray]:
        """The bytes that each process gives, in the order of their ranks.

        Raises WorkerLost where a process has gone, CollectiveTimeout where one does not come, ReplicaError where one
        does something else.
        """
        return self.swap(what, [data] * self.size, where)

    def swap(self, what: str, parts: Sequence[np.ndarray], where: str | None = None) -> list[np.ndarray]:
        """The bytes that each process gives this one, which gives each its part.  Raises as ``exchange`` does."""
        raise NotImplementedError

    def record(self, kind: str, what: str, shape: tuple[int, ...], dtype: DTypeLike, replicas: int, where: Any) -> Any:
        """What says natively how values of replicas are added up ("sum") or put behind each other ("gather"); None
        where that cannot be done natively."""
        return None

    def fail(self, what: str) -> NoReturn:
        """Raise what has happened to the group."""
        raise NotImplementedError

    def leave_in_child(self) -> None:
        """In a process that was forked from this one: take no part, and do not keep the others from seeing this one's
        end."""
        self._lock = threading.Lock()  # a thread that is not here may have held the other one
        self.close()

    def close(self) -> None:
        """Leave the group."""
        raise NotImplementedError

    def gathered(
        self, what: str, mine: np.ndarray, shape: tuple[int, ...], replicas: int, where: str | None
    ) -> np.ndarray:
        """The values of all replicas, stacked, of those of this process."""
        parts = self.exchange(_named(what, mine, shape, replicas), mine, where)
        return np.concatenate([part.view(mine.dtype).reshape(-1, *shape) for part in parts])[:replicas]

    def summed(
        self, what: str, mine: np.ndarray, shape: tuple[int, ...], replicas: int, where: str | None
    ) -> np.ndarray:
        """The root of the tree over all replicas, of the nodes of this process, stacked.

        Each process finishes the tree for its share of the elements, if there are many.
        """
        named, count = _named(what, mine, shape, replicas), math.prod(shape)
        rows = mine.reshape(len(mine), count)
        is_shared = count * mine.itemsize > process_exchange.WHOLE
        bounds = [count * k // self.size if is_shared else 0 for k in range(self.size + 1)]
        if is_shared:
            pieces = [rows[:, a:b] for a, b in itertools.pairwise(bounds)]
            width = bounds[self.rank + 1] - bounds[self.rank]
        else:
            pieces, width = [rows] * self.size, count
        nodes: dict[tuple[int, int], np.ndarray] = {}
        for rank, part in enumerate(self.swap(named, pieces, where)):
            places = canonical_nodes(*self.run_of(rank, replicas), replicas)
            nodes.update(zip(places, part.view(mine.dtype).reshape(len(places), width)))
        with np.errstate(all="ignore"):
            total = np.asarray(finished(np.add, nodes, replicas))
        if is_shared:
            total = np.concatenate([part.view(mine.dtype) for part in self.exchange(f"{named}, sums", total, where)])
        return np.array(total).reshape(shape)

    def agree(self, what: str, mine: dict[str, Any]) -> None:
        """Raise ReplicaError unless all processes say the same."""
        text = json.dumps(mine).encode()
        for rank, part in enumerate(self.exchange(what, np.frombuffer(text, np.uint8))):
            other = json.loads(part.tobytes())
            for name, value in mine.items():
                if other.get(name) != value:
                    raise ReplicaError(
                        what, f"{name} is {value!r} of rank {self.rank}, and {other.get(name)!r} of rank {rank}."
                    )

    def say(self, what: str, numbers: Sequence[int]) -> list[list[int]]:
        """The numbers that each process says here."""
        parts = self.exchange(what, np.asarray(numbers, np.int64), user_location())
        return [part.view(np.int64).tolist() for part in parts]

    def once(self, what: str, do: Callable[[], None]) -> None:
        """Have the first process do something, while the others wait.  Where it fails, all raise.

        Nobody waits for what another thread does, nor within what is done once.
        """
        if self._is_once or threading.current_thread() is not threading.main_thread():
            if self.rank == 0:
                do()
            return
        failure: BaseException | None = None
        self.exchange(what, np.empty(0, np.uint8), user_location())  # all have seen what there was before
        if self.rank == 0:
            self._is_once = True
            try:
                do()
            except BaseException as error:
                failure = error
            finally:
                self._is_once = False
        text = b"" if failure is None else f"{type(failure).__name__}: {failure}".encode()
        said = self.exchange(f"end of {what}", np.frombuffer(text, np.uint8), user_location())[0].tobytes()
        if failure is not None:
            raise failure
        if said:
            raise ReplicaError(what, f"rank 0 fails: {said.decode('utf-8', 'replace')}.")


class Group(Processes):
    """The processes of a machine, which share memory.

    What it does is native code (``runtime/process_exchange_code.py``), which programs call too.
    """

    def __init__(self, inherited: Inherited) -> None:
        super().__init__(inherited.rank, inherited.size)
        self._sockets = [
            socket.socket(fileno=descriptor) for rank, descriptor in enumerate(inherited.peers) if rank != self.rank
        ]
        self._board = _Shared(inherited.board)
        self._boxes = [_Shared(descriptor) for descriptor in inherited.outboxes]
        self._half = half_of(self.size)
        self._table = (ctypes.c_int64 * self.size)(*(box.address for box in self._boxes))
        # Each a ``struct pollfd``; nobody sends anything, so that what comes is the end.
        self._ends = (_PollFd * len(self._sockets))(*(_PollFd(one.fileno(), select.POLLIN, 0) for one in self._sockets))
        self._scratch = (ctypes.c_char * (words.DEPTH * words.BLOCK))()
        self._words = (ctypes.c_int64 * words.GROUP_WORDS)()
        for word, value in (
            (words.RANK, self.rank),
            (words.SIZE, self.size),
            (words.BOARD, self._board.address),
            (words.HALF, self._half),
            (words.BOXES, ctypes.addressof(self._table)),
            (words.SPINS, _SPINS if self.size <= thread_count.cores() else 0),
            (words.PEERS, ctypes.addressof(self._ends)),
            (words.SCRATCH, ctypes.addressof(self._scratch)),
        ):
            self._words[word] = value
        self.timeout = inherited.timeout
        self.address = ctypes.addressof(self._words)

    @property
    def timeout(self) -> float:
        """Seconds that it waits for others."""
        return self._words[words.TIMEOUT] / 1e9

    @timeout.setter
    def timeout(self, value: float) -> None:
        self._words[words.TIMEOUT] = round(min(value, 1e9) * 1e9)

    # ---- exchanges

    def exchange(self, what: str, data: np.ndarray, where: str | None = None) -> list[np.ndarray]:
        mine = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        note = _note(what, where)
        with self._lock:
            counts = np.empty(self.size, np.int64)
            record = process_exchange.gather_record(what, note, [1] * self.size, 8)
            self._run(what, _array_of(record), np.array([mine.nbytes]), counts)
            whole = np.empty(int(counts.sum()), np.uint8)
            if whole.size:
                record = process_exchange.gather_record(what, note, counts.tolist(), 1)
                self._run(what, _array_of(record), mine, whole)
        return np.split(whole, np.cumsum(counts)[:-1])

    def swap(self, what: str, parts: Sequence[np.ndarray], where: str | None = None) -> list[np.ndarray]:
        """Each has what others give each other, too, since memory is shared."""
        parts_received, ends = [], np.cumsum([0, *(np.ascontiguousarray(part).nbytes for part in parts)])
        whole = np.concatenate([np.ascontiguousarray(part).reshape(-1).view(np.uint8) for part in parts])
        sizes = self.exchange(f"{what}, sizes", ends, where)
        for size, data in zip(sizes, self.exchange(what, whole, where)):
            begin, end = size.view(ends.dtype)[self.rank : self.rank + 2]
            parts_received.append(data[begin:end])
        return parts_received

    def _run(self, what: str, record: object, mine: np.ndarray, result: np.ndarray) -> None:
        call = process_exchange.exchange()
        if call(self.address, record, mine.ctypes.data, result.ctypes.data, 1):
            self.fail(what)

    def record(
        self, kind: str, what: str, shape: tuple[int, ...], dtype: DTypeLike, replicas: int, where: str | None
    ) -> Any:
        """What says natively how values of replicas are added up ("sum") or put behind each other ("gather"); None
        where that cannot be done natively."""
        dtype = np.dtype(dtype)
        runs = [self.run_of(rank, replicas) for rank in range(self.size)]
        what = f"{what} {dtype}{list(shape)}"
        note, key = _note(what, where), f"{what} of {replicas}"
        if kind == "gather":
            rows = [end - begin for begin, end in runs]
            return process_exchange.gather_record(key, note, rows, math.prod(shape) * dtype.itemsize)
        nodes = [canonical_nodes(begin, end, replicas) for begin, end in runs]
        if process_exchange.kind_of(dtype) is None:
            return None
        places = {
            node: [rank << 32 | row] for rank, row_nodes in enumerate(nodes) for row, node in enumerate(row_nodes)
        }
        steps = finished(lambda a, b: [*a, *b, -1], places, replicas)
        rows = [len(row_nodes) for row_nodes in nodes]
        return process_exchange.sum_record(key, note, rows, steps, dtype, math.prod(shape), self._half)

    def gathered(self, what: str, mine: np.ndarray, shape: tuple[int, ...], replicas: int, where: object) -> np.ndarray:
        """The values of all replicas, stacked, of those of this process."""
        result = memory_pool.empty((replicas, *shape), mine.dtype)
        record = self._known_record("gather", what, tuple(shape), mine.dtype, replicas, where)
        with self._lock:
            self._run(what, record, np.ascontiguousarray(mine), result)
        return result

    def summed(self, what: str, mine: np.ndarray, shape: tuple[int, ...], replicas: int, where: Any) -> np.ndarray:
        """The root of the tree over all replicas, of the nodes of this process, stacked."""
        result = memory_pool.empty(tuple(shape), mine.dtype)
        record = self._known_record("sum", what, tuple(shape), mine.dtype, replicas, where)
        if record is None:
            return super().summed(what, mine, shape, replicas, where)
        with self._lock:
            self._run(what, record, np.ascontiguousarray(mine), result)
        return result

    @functools.lru_cache(maxsize=1024)  # noqa: B019  (there is one group, for as long as the process lives)
    def _known_record(self, *args: Any) -> Any:
        record = self.record(*args)
        return None if record is None else _array_of(record)

    # ---- failures

    def fail(self, what: str) -> NoReturn:
        """Raise what has happened to the group."""
        status, who = self._words[words.STATUS], self._words[words.WHO]
        interrupt_checks.raise_pending()
        if status == words.TIMED_OUT:
            missing = [rank for rank in range(self.size) if self._arrived(rank) - self._words[words.NUMBER] < 0]
            raise CollectiveTimeout(
                what,
                f"rank {', '.join(map(str, missing or [who]))} did not come within {self.timeout:g} s. "
                f"{self.roll_call(missing)}.",
            )
        if status == words.DIFFERENT:
            one, two = sorted([self.rank, who])
            raise ReplicaError(
                what,
                f"processes do different things: {self._describe(one)}, and {self._describe(two)}. All must come to "
                "the same collectives in the same order; nothing that they do may depend on the rank.",
            )
        if status == words.INTERRUPTED:
            raise WorkerLost(what, f"rank {self.rank} was interrupted in an exchange.")
        if status == words.FORKED:
            raise forked(what, self.rank)
        raise WorkerLost(what, f"rank {who} has ended while others wait for it. {self.roll_call([who])}.")

    def _arrived(self, rank: int) -> int:
        number: int = self._board.read("<i", rank * words.SLOT + words.ARRIVED)[0]
        return number

    def _place(self, rank: int) -> tuple[int, int, str]:
        """The number of the round that a process was last in, since when, and what it does there."""
        start = rank * words.SLOT
        number, since, length = self._board.read("<qqq", start + words.NOTE)
        return number, since, self._board.text(start + words.TEXT, max(0, min(length, words.TEXT_ROOM)))

    def _describe(self, rank: int) -> str:
        number, _, text = self._place(rank)
        return f"rank {rank} is in exchange {number}, {text}"

    def roll_call(self, missing: Sequence[int] = ()) -> str:
        """A line for each process."""
        lines = []
        for rank in range(self.size):
            number, since, text = self._place(rank)
            age = time.monotonic() - since / 1e9
            place = f"in exchange {number}, {text}, for {age:.1f} s" if number else "not yet here"
            lines.append(f"rank {rank}: {place}{', MISSING' if rank in missing else ''}")
        return "; ".join(lines)

    def leave_in_child(self) -> None:
        self._words[words.STATUS], self._words[words.HELD] = words.FORKED, 0
        super().leave_in_child()

    def close(self) -> None:
        for peer in self._sockets:
            peer.close()


class _PollFd(ctypes.Structure):
    _fields_ = (("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short))


def forked(what: str, rank: int) -> ReplicaError:
    """The error of a process that was forked from one of a group."""
    return ReplicaError(
        what, f"this process was forked from rank {rank}, and takes no part in what processes exchange."
    )


def _array_of(record: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(record))(*record)


def _named(what: str, mine: np.ndarray, shape: Sequence[int], replicas: int) -> str:
    return f"{what} {mine.dtype}{list(shape)} of {replicas}"


def _note(what: str, where: str | None) -> str:
    line = short_location(where)
    return f"{what} at {line}" if line else what


# ---- the group of this process

_group: Processes | None = None
_begun = False


def _leave_in_child() -> None:
    if _group is not None:
        _group.leave_in_child()


fork_safe_locks.at_fork(after_in_child=_leave_in_child)


def group() -> Processes | None:
    """The group of this process; None where it is alone."""
    global _begun
    if not _begun:
        _begun = True
        text = os.environ.pop(VARIABLE, "")  # which processes of its own do not inherit
        if text:
            inherited = Inherited.read(text)
            if inherited.size > 1:
                _join(Group(inherited))
                processes.join(_group)
    return _group


def _join(processes_here: Processes | None) -> None:
    global _group, _begun
    _begun, _group = True, processes_here
    process_exchange.set_current(processes_here.address if isinstance(processes_here, Group) else 0)


def join(processes_here: Processes | None, told: Callable[[], dict[str, Any]]) -> None:
    """Become part of a group, whose processes must agree on what ``told`` says."""
    _join(processes_here)
    if processes_here is not None:
        processes_here.agree("handshake", told())
    processes.join(processes_here)
