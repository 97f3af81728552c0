"""A stand-in for NVIDIA's driver on machines without a GPU: memory, streams, events and graphs of CUDA, as strict as
the real ones may be, over the emulated blocks of ``cuda_blocks``.

- What is queued on a stream runs when somebody waits for it, and no earlier than that takes: what should have waited
  for another stream, and does not, finds memory as it was before.  Nodes of a graph run in any order that its edges
  allow.
- Memory is freed in the order of its stream, and then holds ones.  Using what has been freed, or was never allocated,
  is an error where it is queued, as are launches with other parameters than the kernel takes, handles of something
  else, and calls from threads that have no context.
- While a stream captures, what the driver refuses then is refused here: waiting, allocating, events of other places.

Violations of these rules by our code are kept in ``broken``, which the fixture looks at (a callback cannot raise
through native code), and answered with an error of the driver.  Errors that the driver could have are provoked by
``fail``.
"""

from __future__ import annotations

import bisect
import collections
import ctypes
import functools
import itertools
import re
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybridflow.runtime.cuda.driver import NOT_READY, SIGNATURES
from tests.support.cuda_blocks import MOST_SHARED, ORDERS, Blocks

INVALID, CONTEXT, REJECTED, HANDLE, UNSUPPORTED, INVALIDATED, UNJOINED, ISOLATED = 1, 201, 218, 400, 900, 901, 904, 905
MOST_PARAMETERS = 4096  # bytes of a kernel's
STATIC_SHARED = 48 * 1024  # bytes of a block that takes no leave
_BY_VALUE = re.compile(r"byval\(\[(\d+) x i64\]\)")


@dataclass
class Memory:
    start: int
    size: int
    array: np.ndarray
    stream: int
    free: bool = False  # given back, so that nothing new may be queued that uses it
    is_gone: bool = False  # ... and the stream has come to that


@dataclass
class Kernel:
    blocks: Blocks
    name: str
    parameters: list[int]  # bytes of each
    addresses: int  # how many of the words that it is told first are addresses
    most: int  # threads of a block
    lent: int = STATIC_SHARED  # bytes that it may ask for


@dataclass
class Node:
    """Something to do, after other things (of a graph)."""

    run: Callable[[], None]
    after: list[int] = field(default_factory=list)


@dataclass
class Stream:
    queue: list[Callable[[], None]] = field(default_factory=list)  # what was put there and has not run
    done: int = 0  # how much of what was ever put there has run
    capture: Capture | None = None
    last: list[int] = field(default_factory=list)  # of a stream that captures: the nodes that the next one follows


@dataclass
class Capture:
    origin: int
    nodes: list[Node] = field(default_factory=list)
    streams: set[int] = field(default_factory=set)
    is_broken: bool = False


@dataclass
class Event:
    stream: int | None = None  # where it was recorded, and how much had been put there by then
    position: int = 0
    capture: Capture | None = None
    nodes: list[int] = field(default_factory=list)


class FakeDriver:
    """The functions of ``driver.SIGNATURES`` for ``runtime.cuda.driver.Driver``.  ``order`` is that of threads."""

    def __init__(self) -> None:
        self.order = "reversed"
        self.broken: list[str] = []
        self.calls: list[str] = []
        self.fail: dict[str, int] = {}  # the status of the next call of a function
        self.always: dict[str, int] = {}  # of all calls
        self.version = 13000
        self.held: set[int] = set()  # streams that do not get on while nobody lets them
        self.room = 1 << 40  # bytes that may be allocated
        self.multiprocessors = 2  # each of which has 1024 threads
        self._memory: list[Memory] = []
        self._starts: list[int] = []
        self._streams: dict[int, Stream] = {0: Stream()}
        self._events: dict[int, Event] = {}
        self._modules: dict[int, Blocks] = {}
        self._kernels: dict[int, Kernel] = {}
        self._graphs: dict[int, list[Node]] = {}
        self._executables: dict[int, list[Node]] = {}
        self._handles = itertools.count(0x1000, 16)
        self._bound = threading.local()
        self._lock = threading.RLock()
        self._released: collections.deque[Memory] = collections.deque()
        self.library = types.SimpleNamespace(
            **{
                name: ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(functools.partial(self._called, name))
                for name, kinds in SIGNATURES.items()
            }
        )

    # ---- calls

    def _called(self, name: str, *given: Any) -> int:
        with self._lock:
            self._poison_released()
            self.calls.append(name)
            try:
                if name in self.always:
                    return self.always[name]
                if name in self.fail:
                    if name == "cuStreamEndCapture":  # which ends it in any case
                        self._broken_off(*given)
                    return self.fail.pop(name)
                self._require(
                    name == "cuDriverGetVersion" or "Destroy" in name or "Unload" in name or self.is_bound,
                    "a thread without a context",
                    CONTEXT,
                )
                return getattr(self, f"_{name.removesuffix('_v2')}")(*given) or 0
            except _Refused as error:
                return error.status
            except BaseException as error:
                self.broken.append(f"{name}: {type(error).__name__}: {error}")
                return INVALID

    def _require(self, fine: object, message: str, status: int = INVALID) -> None:
        if not fine:
            self.broken.append(f"{self.calls[-1]}: {message}")
            raise _Refused(status)

    @property
    def is_bound(self) -> bool:
        return getattr(self._bound, "yes", False)

    def bind(self) -> None:
        """Give the thread a context."""
        self._bound.yes = True

    # ---- memory

    def allocate(self, size: int, stream: int) -> Memory:
        """Memory of the device, full of ones."""
        with self._lock:
            self._poison_released()
            self._require_no_capture("allocates")
            if sum(m.size for m in self._memory if not m.free) + size > self.room:
                raise MemoryError
            array = np.full(size + 512, 0xFF, np.uint8)
            start = -(-array.ctypes.data // 256) * 256
            memory = Memory(start, size, array, stream)
            place = bisect.bisect(self._starts, start)
            self._starts.insert(place, start)
            self._memory.insert(place, memory)
            return memory

    def release(self, memory: Memory) -> None:
        """Let memory go.  Finalizers do so, in any thread: in one that a call under the lock waits for, too."""
        memory.free = True
        self._released.append(memory)
        if self._lock.acquire(blocking=False):  # else by the next call
            try:
                self._poison_released()
            finally:
                self._lock.release()

    def _poison_released(self) -> None:
        while self._released:
            memory = self._released.popleft()

            def poison(memory: Memory = memory) -> None:
                memory.is_gone = True
                ctypes.memset(memory.start, 0xFF, memory.size)

            if memory.stream in self._streams:
                self._streams[memory.stream].queue.append(poison)

    @property
    def bytes_in_use(self) -> int:
        return sum(memory.size for memory in self._memory if not memory.free)

    def _require_memory(self, address: int, size: int) -> None:
        found = self._memory[bisect.bisect(self._starts, address) - 1] if self._memory else None
        inside = found is not None and found.start <= address and address + size <= found.start + found.size
        self._require(inside, f"{size} bytes at {address:#x} are no memory of the device")
        assert found is not None
        self._require(not found.free, "memory is used that was freed")

    # ---- streams

    def _stream(self, handle: int | None) -> Stream:
        self._require((handle or 0) in self._streams, f"{handle} is no stream", HANDLE)
        return self._streams[handle or 0]

    def _put(self, handle: int | None, run: Callable[[], None]) -> None:
        """Queue something, or add it to what a stream captures."""
        stream = self._stream(handle)
        capture = stream.capture
        if capture is None:
            stream.queue.append(run)
            return
        capture.nodes.append(Node(run, list(stream.last)))
        stream.last = [len(capture.nodes) - 1]

    def _require_no_capture(self, does: str) -> None:
        for stream in self._streams.values():
            if stream.capture is not None:
                stream.capture.is_broken = True
                self._require(False, f"a thread that captures {does}", UNSUPPORTED)

    def run_until(self, handle: int, position: int) -> None:
        """Let a stream get on."""
        stream = self._streams[handle]
        while stream.done < position:
            if handle in self.held:
                raise _NotYet
            stream.queue[0]()
            del stream.queue[0]
            stream.done += 1

    def synchronize(self, handle: int | None = None) -> None:
        """Wait for a stream, or for all of them."""
        with self._lock:
            self._poison_released()
            self._require_no_capture("waits")
            for number in list(self._streams) if handle is None else [handle]:
                stream = self._streams[number]
                self.run_until(number, stream.done + len(stream.queue))

    def is_idle(self) -> bool:
        return not any(stream.queue for stream in self._streams.values())

    # ---- the driver's functions

    def _cuDriverGetVersion(self, out: int) -> None:
        ctypes.c_int.from_address(out).value = self.version

    def _new(self, out: int, table: dict[int, Any], value: Any) -> None:
        handle = next(self._handles)
        table[handle] = value
        ctypes.c_uint64.from_address(out).value = handle

    def _cuModuleLoadData(self, out: int, image: int) -> int:
        blocks = _blocks(ctypes.string_at(image).decode())
        if any(sum(_kernel(blocks, name).parameters) > MOST_PARAMETERS for name in blocks.kernels):
            return REJECTED
        self._new(out, self._modules, blocks)
        return 0

    def _cuCtxSynchronize(self) -> None:
        self.synchronize()

    def _cuModuleUnload(self, handle: int) -> None:
        self._require(self.is_idle(), "a module is unloaded while there is work in a queue")
        del self._modules[handle]

    def _cuModuleGetFunction(self, out: int, module: int, name: bytes) -> int:
        blocks = self._modules[module]
        if name.decode() not in blocks.kernels:
            return 500
        self._new(out, self._kernels, _kernel(blocks, name.decode()))
        return 0

    def _cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> None:
        self._require(attribute == 8 and 0 < value <= MOST_SHARED, f"attribute {attribute} of a kernel is {value}")
        self._kernels[function].lent = value

    def _cuLaunchKernel(
        self,
        function: int,
        x: int,
        y: int,
        z: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        stream: int | None,
        parameters: int,
        extra: int = 0,
        together: bool = False,
    ) -> None:
        kernel = self._kernels[function]
        self._require(not extra, "parameters in other forms")
        self._require(shared <= kernel.lent, f"a block that asks for {shared} bytes, {kernel.lent} at the most")
        self._require(0 < bx * by * bz <= kernel.most, f"a block of {bx * by * bz} threads, {kernel.most} at the most")
        self._require(0 < x < 1 << 31 and 0 < y < 1 << 16 and 0 < z < 1 << 16, f"a grid of {x}, {y}, {z} blocks")
        places = (ctypes.c_uint64 * len(kernel.parameters)).from_address(parameters)
        held = [ctypes.string_at(place, size) for place, size in zip(places, kernel.parameters)]
        if len(held[0]) > 8:
            self._require_told(kernel, held[0], queued=True)

        def run() -> None:
            # As the hardware finds them: a pointer to a copy of what came by value, and numbers as they are.
            copies = [ctypes.create_string_buffer(h, len(h)) for h in held]
            words = [ctypes.addressof(c) if len(h) > 8 else int.from_bytes(h, "little") for c, h in zip(copies, held)]
            if len(held[0]) == 8:
                told = ctypes.string_at(words[0], 8 * kernel.addresses) if kernel.addresses else b""
                self._require_told(kernel, told, queued=False)
            kernel.blocks.launch(kernel.name, (x, y, z), (bx, by, bz), words, ORDERS[self.order], together, shared)

        self._put(stream, run)

    def _cuLaunchCooperativeKernel(self, *given: Any) -> None:
        _, x, y, z, threads, *_ = given
        self._require(y == z == 1 and x <= self._at_once(threads), f"{x} blocks of {threads} threads at once")
        self._cuLaunchKernel(*given, together=True)

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, out: int, function: int, threads: int, memory: int) -> None:
        self._require(
            function in self._kernels and memory <= self._kernels[function].lent, "the blocks of which kernel"
        )
        most = self._at_once(threads) // self.multiprocessors
        ctypes.c_int32.from_address(out).value = min(most, MOST_SHARED // memory) if memory else most

    def _at_once(self, threads: int) -> int:
        return self.multiprocessors * (1024 // threads)

    def _cuCtxGetDevice(self, out: int) -> None:
        ctypes.c_int32.from_address(out).value = 0

    def _cuDeviceGetAttribute(self, out: int, attribute: int, number: int) -> None:
        self._require(attribute == 16 and number == 0, f"attribute {attribute} of device {number}")
        ctypes.c_int32.from_address(out).value = self.multiprocessors

    def _require_told(self, kernel: Kernel, told: bytes, queued: bool) -> None:
        """That all addresses which a kernel is told, when it is ``queued`` or when it runs, are of memory."""
        for word in np.frombuffer(told, np.uint64)[: kernel.addresses].tolist():
            if word:
                found = self._memory[bisect.bisect(self._starts, word) - 1]
                inside = found.start <= word <= found.start + max(found.size, 512)
                self._require(inside, f"{kernel.name} is told {word:#x}, which is no memory of the device")
                is_free = found.free if queued else found.is_gone
                self._require(not is_free, f"{kernel.name} is told of memory that was freed")

    def _cuMemcpyAsync(self, target: int, source: int, size: int, stream: int | None) -> None:
        self._cuMemcpyDtoDAsync(target, source, size, stream)  # addresses are those of all devices

    def _cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int | None) -> None:
        self._require_memory(target, size)
        self._require_memory(source, size)
        self._put(stream, lambda: ctypes.memmove(target, source, size) and None)

    def _cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int | None) -> None:
        self._require_memory(source, size)
        self._put(stream, lambda: ctypes.memmove(target, source, size) and None)

    def _cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int | None) -> None:
        self._require_memory(target, size)
        self._put(stream, lambda: ctypes.memmove(target, source, size) and None)

    def _cuMemsetD32Async(self, target: int, value: int, count: int, stream: int | None) -> None:
        self._require_memory(target, 4 * count)
        self._require(value == 0, "only zeros are needed")
        self._put(stream, lambda: ctypes.memset(target, 0, 4 * count) and None)

    def _cuEventCreate(self, out: int, flags: int) -> None:
        self._new(out, self._events, Event())

    def _cuEventDestroy(self, event: int) -> None:
        del self._events[event]

    def _cuEventRecord(self, handle: int, number: int | None) -> None:
        stream = self._stream(number)
        if stream.capture is not None:
            self._events[handle].__init__(capture=stream.capture, nodes=list(stream.last))  # type: ignore[misc]
        else:
            self._events[handle].__init__(number or 0, stream.done + len(stream.queue))  # type: ignore[misc]

    def _cuEventQuery(self, handle: int) -> int:
        self._require_no_capture("waits")
        event = self._events[handle]
        self._require(event.capture is None, "an event of a capture is waited for")
        if event.stream is not None:
            try:
                self.run_until(event.stream, event.position)
            except _NotYet:
                return NOT_READY
        return 0

    def _cuStreamCreate(self, out: int, flags: int) -> None:
        self._new(out, self._streams, Stream())

    def _cuStreamDestroy(self, number: int) -> None:
        self._require(self._stream(number).capture is None, "a stream that captures is destroyed")
        stream = self._streams[number]
        self.run_until(number, stream.done + len(stream.queue))
        del self._streams[number]

    def _cuStreamWaitEvent(self, number: int | None, handle: int, flags: int) -> int:
        stream, event = self._stream(number), self._events[handle]
        if event.capture is not None:
            if stream.capture is None and not stream.queue:
                stream.capture, stream.last = event.capture, []
                event.capture.streams.add(number or 0)
            self._require(stream.capture is event.capture, "an event of another capture is waited for", ISOLATED)
            stream.last = sorted({*stream.last, *event.nodes})
        elif stream.capture is not None:
            stream.capture.is_broken = True
            self._require(False, "a capture waits for what is outside", ISOLATED)
        elif event.stream is not None:
            of, position = event.stream, event.position
            stream.queue.append(lambda: self.run_until(of, position))
        return 0

    def _cuStreamBeginCapture(self, number: int | None, mode: int) -> None:
        self._require(number, "the legacy stream cannot capture", UNSUPPORTED)
        stream = self._stream(number)
        self._require(stream.capture is None, "a stream captures already")
        stream.capture = Capture(number or 0)
        stream.capture.streams.add(number or 0)
        stream.last = []

    def _cuStreamEndCapture(self, number: int | None, out: int) -> int:
        origin = self._stream(number)
        capture = origin.capture
        self._require(capture is not None and capture.origin == number, "nothing is captured here")
        assert capture is not None
        members = [self._streams[s] for s in capture.streams]
        ends = {node for stream in members for node in stream.last}
        for stream in members:
            stream.capture = None
        ctypes.c_uint64.from_address(out).value = 0
        if capture.is_broken:
            return INVALIDATED
        reached = set(origin.last)
        for k in sorted(range(len(capture.nodes)), reverse=True):
            if k in reached:
                reached |= set(capture.nodes[k].after)
        self._require(ends <= reached, "a stream that was forked off is not joined", UNJOINED)
        self._new(out, self._graphs, capture.nodes)
        return 0

    def _broken_off(self, number: int, out: int) -> None:
        capture = self._stream(number).capture
        assert capture is not None
        for member in capture.streams:
            self._streams[member].capture = None

    def _cuGraphInstantiateWithFlags(self, out: int, graph: int, flags: int) -> None:
        self._new(out, self._executables, list(self._graphs[graph]))

    def _cuGraphDestroy(self, graph: int) -> None:
        del self._graphs[graph]

    def _cuGraphExecDestroy(self, executable: int) -> None:
        self._require(self.is_idle(), "a graph is destroyed while there is work in a queue")
        del self._executables[executable]

    def _cuGraphLaunch(self, executable: int, stream: int | None) -> None:
        nodes = self._executables[executable]

        def run() -> None:
            done: set[int] = set()
            while len(done) < len(nodes):  # the last that may run goes first
                k = max(k for k, node in enumerate(nodes) if k not in done and done.issuperset(node.after))
                nodes[k].run()
                done.add(k)

        self._put(stream, run)


class _Refused(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


class _NotYet(Exception):
    """A stream that is held."""


@functools.lru_cache(maxsize=64)
def _blocks(text: str) -> Blocks:
    return Blocks(text)


def _kernel(blocks: Blocks, name: str) -> Kernel:
    parameters = blocks.parameters[name]
    sizes = [8 * int(found[1]) if (found := _BY_VALUE.search(p)) else 8 for p in parameters]
    body = blocks.text.split(f"void @{name}(", 1)[1].split("\n}", 1)[0]
    most = re.search(r'"nvvm.maxntid"="(\d+)"', body)
    assert most is not None, name
    return Kernel(blocks, name, sizes, body.count("load ptr addrspace(1), ptr "), int(most[1]))
