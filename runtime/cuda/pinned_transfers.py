"""Copies between the host and a GPU, by way of pinned memory, from which and to which the GPU copies by itself.

Those to a GPU are over for the caller when they are queued.  Arrays go piece by piece, so that little memory is pinned,
and while the GPU copies one piece the host copies the next.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import numpy as np

from hybridflow.runtime import fork_safe_locks
from hybridflow.runtime.cuda import gpu_memory
from hybridflow.runtime.cuda.driver import NON_BLOCKING, Driver
from hybridflow.runtime.cuda.events import Events, follow

PINNED_CHUNK = 8 << 20  # bytes
AT_ONCE = 4  # pieces under way


class Transfers:
    """The copies of one GPU that are under way, with the memory that they read or write elsewhere."""

    def __init__(self, driver: Driver, events: Events) -> None:
        self._driver, self._events = driver, events
        self._under_way: deque[tuple[int, Any]] = deque()
        self._beside: int | None = None  # the stream of copies alone
        self._lock = fork_safe_locks.make()

    def upload(self, source: np.ndarray) -> Any:
        """A copy of a host array on the current GPU, on its current stream."""
        target = gpu_memory.empty(source.shape, source.dtype)
        self._upload(source, target, gpu_memory.stream(), AT_ONCE - 1)
        return target

    def fetch(self, source: Any, event: int) -> Any:
        """A copy of a contiguous array of another GPU on the current one, on its current stream, after an event.  The
        array's memory is held until it is over: the other GPU goes on, and may not give it to somebody else."""
        target, stream = gpu_memory.empty(source.shape, source.dtype), gpu_memory.stream()
        if source.nbytes:
            with self._lock:
                self._tidy(sys.maxsize)
                self._driver.call("cuStreamWaitEvent", stream, event, 0)
                self._driver.call("cuMemcpyAsync", target.data.ptr, source.data.ptr, source.nbytes, stream)
                self._under_way.append((self._events.recorded(stream), source))
        return target

    def send(self, source: np.ndarray) -> PendingTransfer:
        """A copy of a host array that comes to the current GPU on a stream of copies alone, beside what else is queued.
        As much host memory is pinned meanwhile."""
        with self._lock:
            if self._beside is None:
                self._beside = self._driver.made("cuStreamCreate", NON_BLOCKING)
        sent = PendingTransfer(gpu_memory.empty(source.shape, source.dtype), self._driver, self._events)
        # Who had the memory before may still be at work there.
        follow(self._driver, self._events, self._beside, sent.stream.ptr)
        try:
            self._upload(source, sent.array, self._beside, sys.maxsize)
            sent.event = self._events.recorded(self._beside)
        except BaseException:  # nobody else gets the memory before the GPU is done with it
            follow(self._driver, self._events, sent.stream.ptr, self._beside)
            raise
        return sent

    def _upload(self, source: np.ndarray, target: Any, stream: int, most: int) -> None:
        """Queue copies of pieces; before each no more than so many are under way."""
        data = _bytes_of(source)
        with self._lock:
            for start in range(0, data.size, PINNED_CHUNK):
                self._tidy(most)
                piece = data[start : start + PINNED_CHUNK]
                pinned = gpu_memory.cupy().cuda.alloc_pinned_memory(piece.size)
                np.frombuffer(pinned, np.uint8, piece.size)[:] = piece
                self._driver.call("cuMemcpyHtoDAsync_v2", target.data.ptr + start, pinned.ptr, piece.size, stream)
                self._under_way.append((self._events.recorded(stream), pinned))

    def download(self, source: Any) -> np.ndarray:
        """A copy of an array of the current GPU on the host, after all that was queued on its current stream."""
        target = np.empty(source.shape, source.dtype)
        data, stream = _bytes_of(target), gpu_memory.stream()
        mine: deque[tuple[int, Any, np.ndarray]] = deque()
        try:
            for start in range(0, data.size, PINNED_CHUNK):
                if len(mine) == AT_ONCE:
                    self._take_first(mine)
                piece = data[start : start + PINNED_CHUNK]
                pinned = gpu_memory.cupy().cuda.alloc_pinned_memory(piece.size)
                self._driver.call("cuMemcpyDtoHAsync_v2", pinned.ptr, source.data.ptr + start, piece.size, stream)
                mine.append((self._events.recorded(stream), pinned, piece))
            while mine:
                self._take_first(mine)
        finally:  # interrupted: the GPU still writes there
            with self._lock:
                self._under_way.extend((event, pinned) for event, pinned, _ in mine)
        return target

    def _take_first(self, pieces: deque[tuple[int, Any, np.ndarray]]) -> None:
        """Bring the first of pieces that are under way to where it belongs."""
        event, pinned, piece = pieces[0]
        self._events.wait(event)
        piece[:] = np.frombuffer(pinned, np.uint8, piece.size)
        pieces.popleft()  # before the event is free: an interrupt in between must not have it given twice
        self._events.give(event)

    def _tidy(self, most: int) -> None:
        """Let go of the memory of copies that are over, and wait until no more than so many are under way."""
        while self._under_way:
            event, _ = self._under_way[0]
            if len(self._under_way) > most:
                self._events.wait(event)
            elif not self._events.is_over(event):
                return
            self._under_way.popleft()
            self._events.give(event)


class PendingTransfer:
    """An array that is on its way to the GPU that was current.  ``stream`` is the one that was, whose memory it has."""

    def __init__(self, array: Any, driver: Driver, events: Events) -> None:
        self.array, self.stream = array, gpu_memory.cupy().cuda.get_current_stream()
        self.event: int | None = None  # says that it is there
        self._driver, self._events = driver, events

    def arrive(self) -> Any:
        """The array, for what is queued from now on on the current stream; called once, also where nobody wants it."""
        for stream in {self.stream.ptr, gpu_memory.stream()}:
            self._driver.call("cuStreamWaitEvent", stream, self.event, 0)
        if self.event is not None:
            self._events.give(self.event)
        return self.array


def _bytes_of(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)
