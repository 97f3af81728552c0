"""A group whose processes are connected by sockets, so that they may be on several machines.

Rank 0 listens at an address that all know.  The others connect to it, say who they are and where they listen, and are
told where all others do; then each has a socket to each.  An exchange sends every process a header and its part, and
reads theirs; headers say what is exchanged, so that processes that do different things find out at once.

The network is trusted: whoever can connect can take part.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from hybridflow.compiler.ops.replica_tree import canonical_nodes, finished
from hybridflow.distribute.group import Processes, forked
from hybridflow.distribute.meeting_place import Meeting
from hybridflow.errors import ArgumentError, CollectiveTimeout, ReplicaError, WorkerLost, short_location
from hybridflow.runtime import process_exchange
from hybridflow.runtime.memory import memory_pool

_LENGTH = struct.Struct("<I")
_PIECE = 1 << 20  # bytes of one call
_BUFFER = 1 << 22  # bytes under way in one direction, if the system allows so many
_CHUNK = 1 << 20  # bytes of what is added up at a time, which caches hold
_AGAIN = 0.05  # seconds between two tries to connect
_MOST = 1 << 20  # bytes of what is said before a group is there


class SocketGroup(Processes):
    """Processes with a socket between any two: ``meet`` makes one."""

    def __init__(self, rank: int, peers: dict[int, socket.socket], timeout: float) -> None:
        super().__init__(rank, len(peers) + 1)
        self.timeout = timeout
        self._peers = peers
        self._number = 0
        self._last: dict[int, dict[str, Any]] = {}  # what others said last
        self._failure: Exception | None = None
        for peer in peers.values():
            _set_options(peer, timeout)
            peer.setblocking(False)

    def swap(self, what: str, parts: Sequence[np.ndarray], where: str | None = None) -> list[np.ndarray]:
        buffers = [[_bytes(part)] for part in parts]
        links = self._swap(what, buffers, [None] * self.size, where)
        return [buffers[rank][0] if rank == self.rank else links[rank].data for rank in range(self.size)]

    def summed(
        self, what: str, mine: np.ndarray, shape: tuple[int, ...], replicas: int, where: str | None
    ) -> np.ndarray:
        """The root of the tree over all replicas.  What is long goes piece by piece: with the nodes of one go the sums
        of the one before, to the place where they are wanted."""
        count = math.prod(shape)
        if count * mine.itemsize <= process_exchange.WHOLE:
            return super().summed(what, mine, shape, replicas, where)
        rows, named = mine.reshape(len(mine), count), f"{what} {mine.dtype}{list(shape)} of {replicas}"
        result = memory_pool.empty((count,), mine.dtype)
        places = [canonical_nodes(*self.run_of(rank, replicas), replicas) for rank in range(self.size)]
        others = [rank for rank in range(self.size) if rank != self.rank]
        length = max(self.size, _CHUNK // mine.itemsize)
        before: list[int] = []
        for start in range(0, count + length, length):
            out: list[list[np.ndarray]] = [[] for _ in places]
            into: list[list[np.ndarray]] = [[] for _ in places]
            nodes: dict[tuple[int, int], np.ndarray] = {}
            stop = min(start + length, count)
            bounds = [start + (stop - start) * k // self.size for k in range(self.size + 1)] if start < stop else []
            for rank in others:
                if bounds:
                    out[rank] += [row[bounds[rank] : bounds[rank + 1]] for row in rows]
                    for place in places[rank]:
                        nodes[place] = np.empty(bounds[self.rank + 1] - bounds[self.rank], mine.dtype)
                        into[rank].append(nodes[place])
                if before:
                    out[rank].append(result[before[self.rank] : before[self.rank + 1]])
                    into[rank].append(result[before[rank] : before[rank + 1]])
            sent = [[_bytes(part) for part in parts] for parts in out]
            self._swap(named, sent, [[_bytes(part) for part in parts] for parts in into], where)
            if bounds:
                begin, end = bounds[self.rank], bounds[self.rank + 1]
                nodes.update(zip(places[self.rank], rows[:, begin:end]))
                with np.errstate(all="ignore"):
                    result[begin:end] = finished(np.add, nodes, replicas)
            before = bounds
        return result.reshape(shape)

    def _swap(
        self,
        what: str,
        parts: Sequence[Sequence[np.ndarray]],
        into: Sequence[Sequence[np.ndarray] | None],
        where: str | None,
    ) -> dict[int, _Link]:
        """Send each other process its parts, and read what it sends: into what is given, or new memory."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                return self._exchange(what, parts, into, where)
            except Exception as error:
                self._failure = error
                self._leave()
                raise
            except BaseException:  # Ctrl-C in the middle of a message
                self._failure = WorkerLost(what, f"rank {self.rank} was interrupted in an exchange.")
                self._leave()
                raise

    def _leave(self) -> None:
        """Have the others see that this process sends nothing more.  What it has sent they may still read."""
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_WR)

    def _exchange(
        self,
        what: str,
        parts: Sequence[Sequence[np.ndarray]],
        into: Sequence[Sequence[np.ndarray] | None],
        where: str | None,
    ) -> dict[int, _Link]:
        self._number += 1
        line = short_location(where)
        header = {"number": self._number, "what": what, "line": line}
        started = time.monotonic()
        links = {}
        for rank, peer in self._peers.items():
            text = json.dumps({**header, "bytes": sum(part.nbytes for part in parts[rank])}).encode()
            sent = [_LENGTH.pack(len(text)) + text, *(part.data for part in parts[rank])]
            links[peer.fileno()] = _Link(rank, peer, sent, into[rank])
        poll = select.poll()
        for descriptor in links:
            poll.register(descriptor, select.POLLIN | select.POLLOUT)
        open_ = dict(links)
        while open_:
            left = started + self.timeout - time.monotonic()
            if left <= 0:
                raise self._timed_out(what, open_.values(), time.monotonic() - started)
            for descriptor, events in poll.poll(min(left, 1.0) * 1000):
                link = open_[descriptor]
                try:
                    if events & select.POLLOUT:
                        link.send()
                    if events & ~select.POLLOUT:
                        link.receive(header)
                except (ConnectionError, TimeoutError, OSError) as error:
                    raise self._lost(what, link.rank, error) from None
                if link.is_done:
                    poll.unregister(descriptor)
                    del open_[descriptor]
                else:
                    poll.modify(descriptor, link.events)
        self._last = {link.rank: link.header for link in links.values() if link.header is not None}
        for rank in sorted(self._last):
            if not _agree(self._last[rank], header):
                one, two = sorted([(self.rank, header), (rank, self._last[rank])], key=lambda pair: pair[0])
                raise ReplicaError(
                    what,
                    f"processes do different things: {_describe(*one)}, and {_describe(*two)}. All must come to the "
                    "same collectives in the same order; nothing that they do may depend on the rank.",
                )
        return {link.rank: link for link in links.values()}

    def _lost(self, what: str, rank: int, error: OSError) -> WorkerLost:
        how = f" ({error.strerror})" if error.strerror else ""
        return WorkerLost(what, f"rank {rank} has ended, or the connection to it has{how}. {self.roll_call([rank])}.")

    def _timed_out(self, what: str, open_: Any, waited: float) -> CollectiveTimeout:
        missing = [link.rank for link in open_]
        text = ", ".join(map(str, missing))
        return CollectiveTimeout(what, f"rank {text} did not come within {waited:.3g} s. {self.roll_call(missing)}.")

    def roll_call(self, missing: Sequence[int] = ()) -> str:
        """What each of the others has said last."""
        lines = []
        for rank in sorted(self._peers):
            last = self._last.get(rank)
            place = "has not said anything" if last is None else f"was in exchange {last['number']}, {_what(last)}"
            lines.append(f"rank {rank}: {place}{', MISSING' if rank in missing else ''}")
        return "; ".join(lines)

    def fail(self, what: str) -> NoReturn:
        raise self._failure or WorkerLost(what, "the group has ended.")

    def leave_in_child(self) -> None:
        self._failure = forked("exchange", self.rank)
        super().leave_in_child()

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()


class _Link:
    """What is still to be sent to a process, and what it has sent."""

    def __init__(self, rank: int, peer: socket.socket, out: list[Any], into: Sequence[np.ndarray] | None) -> None:
        self.rank, self.peer, self._into = rank, peer, into
        self.out = [memoryview(part) for part in out if len(part)]
        self._has_said = False  # whether the header is sent
        self.header: dict[str, Any] | None = None
        self.data = np.empty(0, np.uint8)  # what is read, where no place for it was given
        self._text = bytearray()
        self._places: list[memoryview] = []  # of what is still to be read
        self.is_read = False

    @property
    def is_done(self) -> bool:
        return self.is_read and not self.out

    @property
    def events(self) -> int:
        """What it waits for."""
        return (0 if self.is_read else select.POLLIN) | (select.POLLOUT if self.out else 0)

    def send(self) -> None:
        while self.out:
            try:
                count = self.peer.send(self.out[0][:_PIECE])
            except BlockingIOError:
                return
            self.out[0] = self.out[0][count:]
            if not len(self.out[0]):
                self.out.pop(0)
                self._has_said = True

    def receive(self, mine: dict[str, Any]) -> None:
        """Read what is there.  Of one who does something else the header is enough."""
        while not self.is_read:
            try:
                if self.header is None:
                    self._receive_header(mine)
                else:
                    count = self.peer.recv_into(self._places[0])
                    if not count:
                        raise ConnectionError
                    self._places[0] = self._places[0][count:]
                    self._skip_full()
            except BlockingIOError:
                return

    def _receive_header(self, mine: dict[str, Any]) -> None:
        known = len(self._text)
        wanted = 4 if known < 4 else 4 + _LENGTH.unpack_from(self._text)[0]
        part = self.peer.recv(wanted - known)
        if not part:
            raise ConnectionError
        self._text += part
        if len(self._text) > 4 and len(self._text) == 4 + _LENGTH.unpack_from(self._text)[0]:
            self.header = json.loads(self._text[4:])
            if not _agree(self.header, mine):
                self.is_read, self.out = True, [] if self._has_said else self.out[:1]
                return
            into = self._into
            if into is None:
                self.data = memory_pool.empty((self.header["bytes"],), np.dtype(np.uint8))
                into = [self.data]
            elif (expected := sum(part.nbytes for part in into)) != self.header["bytes"]:
                raise ReplicaError(
                    mine["what"], f"rank {self.rank} sends {self.header['bytes']} bytes. Expected {expected}."
                )
            self._places = [part.data for part in into]
            self._skip_full()

    def _skip_full(self) -> None:
        """Go on to the next place that is not yet full."""
        while self._places and not len(self._places[0]):
            self._places.pop(0)
        self.is_read = not self._places


def _bytes(part: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(part).reshape(-1).view(np.uint8)


def _agree(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (one["number"], one["what"]) == (other["number"], other["what"])


def _what(header: dict[str, Any]) -> str:
    return f"{header['what']} at {header['line']}" if header["line"] else str(header["what"])


def _describe(rank: int, header: dict[str, Any]) -> str:
    return f"rank {rank} is in exchange {header['number']}, {_what(header)}"


def _set_options(peer: socket.socket, timeout: float) -> None:
    """Have the system notice a wire, or a machine, that is dead: a process that ends closes its sockets itself."""
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, name in ((socket.SO_SNDBUF, "wmem_max"), (socket.SO_RCVBUF, "rmem_max")):
        if _most_of_buffer(name) >= _BUFFER:  # much may be under way while the other one does not run
            peer.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    patience = max(1, min(int(timeout), 30))
    for name, value in (
        ("TCP_KEEPIDLE", 1),
        ("TCP_KEEPINTVL", max(1, patience // 3)),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", patience * 1000),
    ):
        if hasattr(socket, name):
            peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _most_of_buffer(name: str) -> int:
    """The most bytes that a socket's buffer may be given, 0 where that is not known.  The system makes a buffer
    longer when that helps, but none whose length was set."""
    try:
        with open(f"/proc/sys/net/core/{name}", encoding="ascii") as file:
            return int(file.read())
    except OSError:
        return 0


# ---- meeting


def meet(place: Meeting, timeout: float) -> tuple[SocketGroup, int]:
    """The group of the processes that meet at a place, and a number that rank 0 has drawn for all.

    Raises ArgumentError where the address cannot be had, or ranks do not fit together; CollectiveTimeout where some do
    not come.
    """
    deadline = time.monotonic() + timeout
    opened: dict[int, socket.socket] = {}
    try:
        seed = (_gather_all if place.rank == 0 else _find_all)(place, opened, deadline)
    except BaseException:
        for peer in opened.values():
            peer.close()
        raise
    return SocketGroup(place.rank, opened, timeout), seed


def _gather_all(place: Meeting, opened: dict[int, socket.socket], deadline: float) -> int:
    """Rank 0: wait for all others, and tell them of each other."""
    addresses: dict[int, Any] = {}
    try:
        listening = socket.create_server((place.host, place.port), backlog=place.size)
    except OSError as error:
        raise ArgumentError("run", f"rank 0 cannot listen at {place.host}:{place.port}: {error.strerror}.") from None
    problem = ""
    with listening:
        while len(opened) < place.size - 1 and not problem:
            peer, (host, *_) = _accepted(listening, place, opened, deadline)
            try:
                said = _read(peer, deadline)
                rank, size, port = int(said["rank"]), int(said["size"]), int(said["port"])
            except (OSError, ValueError, KeyError, TypeError):
                peer.close()  # some stranger
                continue
            if size != place.size:
                problem = f"rank {rank} takes part in {size} processes, and rank 0 in {place.size}"
            elif rank in opened or rank == 0:
                problem = f"there are two processes of rank {rank}"
            elif not 0 < rank < size:
                problem = f"there is rank {rank} of {size} processes"
            opened[rank if rank not in opened else -1] = peer
            addresses[rank] = host, port
    seed = int.from_bytes(os.urandom(7), "little")
    for peer in opened.values():
        with contextlib.suppress(OSError):
            _write(peer, {"error": problem} if problem else {"addresses": addresses, "seed": seed})
    if problem:
        raise ArgumentError("run", f"{problem}.")
    return seed


def _find_all(place: Meeting, opened: dict[int, socket.socket], deadline: float) -> int:
    """The others: connect to rank 0, then to those of lower ranks, and wait for those of higher ones."""
    first = opened[0] = _connected(place.host, place.port, place, deadline)
    with socket.create_server((first.getsockname()[0], 0), backlog=place.size) as listening:
        _write(first, {"rank": place.rank, "size": place.size, "port": listening.getsockname()[1]})
        try:
            told = _read(first, deadline)
        except (OSError, ValueError):
            raise CollectiveTimeout(
                "run", f"not all of {place.size} processes came to {place.host}:{place.port}, or rank 0 has ended."
            ) from None
        if told.get("error"):
            raise ArgumentError("run", f"{told['error']}.")
        for rank in range(1, place.rank):
            host, port = told["addresses"][str(rank)]
            opened[rank] = _connected(host, port, place, deadline)
            _write(opened[rank], {"rank": place.rank})
        while len(opened) < place.size - 1:
            peer, _ = _accepted(listening, place, opened, deadline)
            try:
                opened[int(_read(peer, deadline)["rank"])] = peer
            except (OSError, ValueError, KeyError, TypeError):
                peer.close()
    return int(told["seed"])


def _accepted(listening: socket.socket, place: Meeting, known: Any, deadline: float) -> Any:
    listening.settimeout(max(0.001, deadline - time.monotonic()))
    try:
        return listening.accept()
    except TimeoutError:
        missing = [rank for rank in range(place.size) if rank not in known and rank != place.rank]
        raise CollectiveTimeout(
            "run", f"rank {', '.join(map(str, missing))} of {place.size} did not come to {place.host}:{place.port}."
        ) from None


def _connected(host: str, port: int, place: Meeting, deadline: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection((host, port), max(0.001, deadline - time.monotonic()))
        except OSError as error:
            if time.monotonic() + _AGAIN > deadline:
                how = error.strerror or "no answer"
                raise CollectiveTimeout(
                    "run", f"rank {place.rank} of {place.size} cannot connect to {host}:{port}: {how}."
                ) from None
            time.sleep(_AGAIN)


def _write(peer: socket.socket, what: dict[str, Any]) -> None:
    text = json.dumps(what).encode()
    peer.sendall(_LENGTH.pack(len(text)) + text)


def _read(peer: socket.socket, deadline: float) -> dict[str, Any]:
    """Raises OSError where nothing comes in time, ValueError for what is no message."""
    peer.settimeout(max(0.001, deadline - time.monotonic()))

    def exactly(count: int) -> bytes:
        content = b""
        while len(content) < count:
            part = peer.recv(count - len(content))
            if not part:
                raise ConnectionError
            content += part
        return content

    (length,) = _LENGTH.unpack(exactly(4))
    if length > _MOST:
        raise ValueError
    content = json.loads(exactly(length))
    if not isinstance(content, dict):
        raise ValueError
    return content
