"""The processes that share out the replicas: how they exchange arrays, notice a loss, and agree on what they do.

``hybridflow run`` makes what a group needs before it starts its processes, and they inherit it: a pair of sockets
between any two, memory without a name for what each one hands out, and a board on which each says where it is.  So
nothing has a name, and nothing is left behind, whoever dies.

An exchange is one round.  Each process writes its array into its own memory and sends the others a header; who has all
headers reads what it needs.  Memory has two halves that are used in turn: a header of the next round says that its
sender has read this one.  Headers say what is exchanged, so that processes that do different things find out at once.
"""

from __future__ import annotations

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
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ops.replica_tree import canonical_nodes, finished
from hybridflow.core import processes
from hybridflow.errors import ArgumentError, CollectiveTimeout, ReplicaError, WorkerLost, short_location, user_location

VARIABLE = "HF_GROUP"  # the environment variable that says what was inherited
BOARD_SLOT = 512  # bytes of each process
_PAGE = mmap.PAGESIZE
_WHOLE = 1 << 16  # bytes up to which each process adds up all elements by itself


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


class _Memory:
    """Memory of one process, which it writes and others read: two halves, each of which moves when it grows."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map: mmap.mmap | None = None
        self._halves = [(0, 0), (0, 0)]  # offset and room
        self._end = 0

    def write(self, half: int, data: np.ndarray) -> int:
        """Write bytes into a half; their offset.  Raises OSError where there is no memory."""
        offset, room = self._halves[half]
        if data.nbytes > room:
            room = max(_PAGE, 1 << (data.nbytes - 1).bit_length())
            offset = self._end
            os.ftruncate(self._descriptor, offset + room)
            os.posix_fallocate(self._descriptor, offset, room)  # else a full memory ends the process as it writes
            self._halves[half], self._end = (offset, room), offset + room
        if data.nbytes:
            view = self._view(offset, data.nbytes)
            view[:] = data.reshape(-1).view(np.uint8)
        return offset

    def read(self, offset: int, count: int) -> np.ndarray:
        """Bytes, as they lie there."""
        return self._view(offset, count) if count else np.empty(0, np.uint8)

    def _view(self, offset: int, count: int) -> np.ndarray:
        if self._map is None or len(self._map) < offset + count:
            self._map = mmap.mmap(self._descriptor, os.fstat(self._descriptor).st_size)
        return np.frombuffer(self._map, np.uint8, count, offset)


class Board:
    """Where each process is: the number of its last exchange, when that began, and the user's line."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._map, self._size = mmap.mmap(descriptor, size * BOARD_SLOT), size

    def note(self, rank: int, number: int, text: str) -> None:
        """Say where a process is."""
        encoded = text.encode("utf-8", "replace")[: BOARD_SLOT - 20]
        record = struct.pack("<qdi", number, time.monotonic(), len(encoded)) + encoded
        self._map[rank * BOARD_SLOT : rank * BOARD_SLOT + len(record)] = record

    def roll_call(self, missing: Sequence[int]) -> str:
        """A line for each process."""
        lines = []
        for rank in range(self._size):
            number, since, length = struct.unpack_from("<qdi", self._map, rank * BOARD_SLOT)
            start = rank * BOARD_SLOT + 20
            text = self._map[start : start + max(0, min(length, BOARD_SLOT - 20))].decode("utf-8", "replace")
            place = f"in exchange {number}, {text}, for {time.monotonic() - since:.1f} s" if number else "not yet here"
            lines.append(f"rank {rank}: {place}{', MISSING' if rank in missing else ''}")
        return "; ".join(lines)


class Group:
    """The processes of a run, as one of them sees it."""

    def __init__(self, inherited: Inherited) -> None:
        self.rank, self.size, self.timeout = inherited.rank, inherited.size, inherited.timeout
        self._sockets = {
            rank: socket.socket(fileno=descriptor)
            for rank, descriptor in enumerate(inherited.peers)
            if rank != self.rank
        }
        self._memories = [_Memory(descriptor) for descriptor in inherited.outboxes]
        self._board = Board(inherited.board, self.size)
        self._number = 0
        self._is_once = False
        self._lock = threading.Lock()

    def run_of(self, rank: int, replicas: int) -> tuple[int, int]:
        """The replicas [begin, end) of a process."""
        return replicas * rank // self.size, replicas * (rank + 1) // self.size

    # ---- one round

    def exchange(self, what: str, data: np.ndarray, where: str | None = None) -> list[np.ndarray]:
        """The bytes that each process gives, in the order of their ranks, as they lie in memory until the next round
        but one.

        Raises WorkerLost where a process has gone, CollectiveTimeout where one does not come, ReplicaError where one
        does something else.
        """
        with self._lock:
            return self._exchange(what, np.ascontiguousarray(data), where)

    def _exchange(self, what: str, data: np.ndarray, where: str | None) -> list[np.ndarray]:
        self._number += 1
        line = short_location(where)
        self._board.note(self.rank, self._number, f"{what} at {line}" if line else what)
        header: dict[str, Any] = {"number": self._number, "what": what, "line": line, "bytes": data.nbytes}
        try:
            header["offset"] = self._memories[self.rank].write(self._number % 2, data)
        except OSError as error:
            header["error"] = f"there is no shared memory for {data.nbytes} bytes: {error.strerror}"
        message = json.dumps(header).encode()
        for rank, peer in self._sockets.items():
            try:
                peer.sendall(struct.pack("<i", len(message)) + message)
            except OSError:
                raise self._lost(rank, what) from None
        headers = self._headers(what)
        headers[self.rank] = header
        self._check(headers)
        return [memory.read(headers[k]["offset"], headers[k]["bytes"]) for k, memory in enumerate(self._memories)]

    def _headers(self, what: str) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        partial: dict[int, bytes] = dict.fromkeys(self._sockets, b"")
        deadline = time.monotonic() + self.timeout
        poll = select.poll()
        ranks = {}
        for rank, peer in self._sockets.items():
            ranks[peer.fileno()] = rank
            poll.register(peer, select.POLLIN)
        while len(found) < len(self._sockets):
            left = deadline - time.monotonic()
            ready = poll.poll(max(0.0, left) * 1000) if left > 0 else []
            if not ready and left <= 0:
                missing = [rank for rank in self._sockets if rank not in found]
                raise CollectiveTimeout(
                    what,
                    f"rank {', '.join(map(str, missing))} did not come within {self.timeout:g} s. "
                    f"{self._board.roll_call(missing)}.",
                )
            for descriptor, _ in ready:
                rank = ranks[descriptor]
                needed = 4 if len(partial[rank]) < 4 else 4 + struct.unpack("<i", partial[rank][:4])[0]
                try:
                    part = self._sockets[rank].recv(needed - len(partial[rank]))
                except OSError:
                    part = b""
                if not part:
                    raise self._lost(rank, what)
                partial[rank] += part
                text = partial[rank]
                if len(text) > 4 and len(text) == 4 + struct.unpack("<i", text[:4])[0]:
                    found[rank] = json.loads(text[4:])
                    poll.unregister(descriptor)
        return found

    def _lost(self, rank: int, what: str) -> WorkerLost:
        return WorkerLost(what, f"rank {rank} has ended while others wait for it. {self._board.roll_call([rank])}.")

    def _check(self, headers: dict[int, dict[str, Any]]) -> None:
        """Raise ReplicaError where a process fails, or does something else."""
        for rank in sorted(headers):
            if "error" in headers[rank]:
                raise ReplicaError(headers[rank]["what"], f"rank {rank} fails: {headers[rank]['error']}.")
        mine = headers[self.rank]
        for rank, other in sorted(headers.items()):
            if (other["number"], other["what"]) != (mine["number"], mine["what"]):
                one, two = sorted([(self.rank, mine), (rank, other)], key=lambda pair: pair[0])
                raise ReplicaError(
                    mine["what"],
                    f"processes do different things: {_told(*one)}, and {_told(*two)}. All must come to the same "
                    "collectives in the same order; nothing that they do may depend on the rank.",
                )

    # ---- what collectives are made of

    def gathered(self, what: str, mine: np.ndarray, shape: tuple[int, ...], replicas: int, where: Any) -> np.ndarray:
        """The values of all replicas, stacked, of those of this process."""
        parts = self.exchange(f"{what} {mine.dtype}{list(shape)}", mine, where)
        return np.concatenate([part.view(mine.dtype).reshape(-1, *shape) for part in parts])[:replicas]

    def summed(self, what: str, mine: np.ndarray, shape: tuple[int, ...], replicas: int, where: Any) -> np.ndarray:
        """The root of the tree over all replicas, of the nodes of this process, stacked.

        Each process finishes the tree for its share of the elements, if there are many.
        """
        what = f"{what} {mine.dtype}{list(shape)}"
        parts = self.exchange(what, mine, where)
        count, dtype = math.prod(shape), mine.dtype
        shared = count * dtype.itemsize > _WHOLE and self.size > 2
        begin, end = (count * k // self.size for k in (self.rank, self.rank + 1)) if shared else (0, count)
        nodes: dict[tuple[int, int], np.ndarray] = {}
        for rank, part in enumerate(parts):
            rows = part.view(dtype).reshape(-1, count) if count else np.empty((0, 0), dtype)
            for row, node in zip(rows, canonical_nodes(*self.run_of(rank, replicas), replicas)):
                nodes[node] = row[begin:end]
        if not count:
            return np.empty(shape, dtype)
        with np.errstate(all="ignore"):
            total = finished(np.add, nodes, replicas)
        if shared:
            total = np.concatenate([part.view(dtype) for part in self.exchange(f"{what}, sums", total, where)])
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

    def close(self) -> None:
        """Leave the group."""
        for peer in self._sockets.values():
            peer.close()


def _told(rank: int, header: dict[str, Any]) -> str:
    line = f" at {header['line']}" if header["line"] else ""
    return f"rank {rank} is in exchange {header['number']}, {header['what']}{line}"


# ---- the group of this process

_group: Group | None = None
_begun = False


def group() -> Group | None:
    """The group of this process; None where it is alone."""
    global _group, _begun
    if not _begun:
        _begun = True
        text = os.environ.pop(VARIABLE, "")  # which processes of its own do not inherit
        if text:
            inherited = Inherited.read(text)
            if inherited.size > 1:
                _group = Group(inherited)
                processes.join(_group)
    return _group


def join(inherited: Inherited, told: Callable[[], dict[str, Any]]) -> Group | None:
    """Become part of a group, whose processes must agree on what ``told`` says."""
    global _group, _begun
    _begun = True
    _group = Group(inherited) if inherited.size > 1 else None
    if _group is not None:
        _group.agree("handshake", told())
    processes.join(_group)
    return _group
