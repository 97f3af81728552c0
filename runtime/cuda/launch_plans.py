"""How a program runs where its extents have certain values: grids, memory, and the walks that launch it.

An *indirect* program finds what its kernels are told in a block of device memory, which is written before each run; so
what follows is the same for each run, and becomes a CUDA graph that is never updated.  In it, kernels of a wave run
side by side.  Where no graph can be made, the same steps are walked one by one.

A library takes the addresses of its operands by value, which change from run to run: so its calls are steps between
graphs, for which native code finds the addresses.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from hybridflow.compiler.program import (
    SET_WORDS,
    WORDS_AT_ONCE,
    Buffer,
    DeviceCopy,
    Launch,
    LibraryCall,
    Program,
    value_at,
)
from hybridflow.errors import DeviceError
from hybridflow.runtime import fork_safe_locks, gc_pause
from hybridflow.runtime.argument_checks import extents, updated
from hybridflow.runtime.cuda import command_buffer, command_words, gpu_memory
from hybridflow.runtime.cuda.command_buffer import Address, CommandBuffer, Step
from hybridflow.runtime.cuda.cublaslt import WORKSPACE_ALIGNMENT, Algorithm
from hybridflow.runtime.cuda.device import Device
from hybridflow.runtime.cuda.driver import NON_BLOCKING, THREAD_LOCAL
from hybridflow.runtime.cuda.events import follow
from hybridflow.runtime.cuda.pending_checks import PendingCheck
from hybridflow.runtime.dtypes import NUMPY

# Blocks of a launch for each that is on the GPU at once: what they do differs.  Each walks several units then.
ROUNDS = 4
MOST_THREADS = 1 << 22  # of a launch in any case
SCRATCH_BYTES = 1 << 28  # of a launch: what needs scratch runs on so few threads that they share this much
ALIGNMENT = 64  # of what lies in the arena
STREAMS = 4  # on which kernels of one wave run side by side
BASES = 4  # besides the buffers: the arena, the place of the status on the host, its event, and 0


class Grid(NamedTuple):
    """A launch for certain extents.  ``scratch`` is where its threads' memory begins in the arena; ``raised`` is how
    many launches before it raise.  Where its blocks wait for each other they meet at the word of number ``meets``."""

    launch: Launch
    units: int
    blocks: int
    threads: int
    scratch: int
    raised: int
    meets: int | None


class Called(NamedTuple):
    """A product by a library, before the grid of that number.  Its own memory begins at ``workspace`` in the arena."""

    call: LibraryCall
    algorithm: Algorithm
    before: int
    workspace: int


class LaunchPlan:
    """A program for certain extents, on the GPU that is current when it is made.  With ``libraries`` these do what they
    can, for arrays at multiples of ``cublaslt.ALIGNMENT``.

    ``main`` is walked for a run, and ``after`` when its status is known to be good (where it ``waits``).  ``arena``
    are the bytes that a run takes; ``outputs`` and ``updates`` are the shapes and dtypes of what it writes.
    """

    def __init__(
        self,
        program: Program,
        functions: Mapping[str, int],
        dims: dict[str, int],
        device: Device,
        libraries: bool = True,
    ) -> None:
        self._program, self._functions, self._dims, self._device = program, functions, dims, device
        updates = [program.inputs[i] for i in updated(program)]
        self.buffers = len(program.inputs) + len(program.outputs) + len(updates)
        self.bases = ctypes.c_int64 * (self.buffers + BASES)  # the type of what ``run`` is given
        self.outputs = [(extents(slot, dims), NUMPY[slot.dtype]) for slot in program.outputs]
        self.updates = [(extents(slot, dims), NUMPY[slot.dtype]) for slot in updates]
        self._arena, self._host, self._event, self._nothing = range(self.buffers, self.buffers + BASES)
        self._inputs = {"input": 0, "output": len(program.inputs)}
        self._inputs["update"] = self._inputs["output"] + len(program.outputs)
        self._grids, self._called, self.arena = self._gridded(libraries)
        self.raises = sum(launch.raises for launch in program.launches)
        self.block: Any = None
        self.is_graph = False
        self._lock = fork_safe_locks.make()
        self._last: Any = None  # the stream of the last run
        head: list[Step] = []
        self._meetings = sum(grid.launch.cooperative for grid in self._grids)
        if (self.raises or self._meetings) and not program.indirect:
            self._meeting: Address = self._arena, self.arena
            self._statuses: Address = self._arena, self.arena + 8 * self._meetings
            self.arena += 8 * self._meetings + 4 * (1 + self.raises)
            head.append(command_buffer.zero(self._meeting, 2 * self._meetings + 1 + self.raises))
        words, addresses = self._words()
        if program.indirect:
            head += self._written(len(words))
        copies = [self._copied(c) for c in program.before]
        done = [] if not self.raises else self._copy_status()
        after = [self._copied(c) for c in program.after]
        self.waits = bool(self.raises and after)
        if not self.waits:
            done, after = [*after, *done], []
        self.main = CommandBuffer(device.driver, [*head, *copies, *self._body(), *done], words, addresses)
        self.after = CommandBuffer(device.driver, after) if after else None

    def run(self, bases: Any, check: PendingCheck | None = None) -> None:
        """Queue a run on the current stream; ``bases`` are the addresses of the buffers and of the arena, with room
        for ``BASES`` in all behind the buffers.  What the run does comes after all that other runs of this plan do."""
        stream = gpu_memory.cupy().cuda.get_current_stream()
        if check is not None:
            bases[self._host], bases[self._event] = check.place, check.event
        if self.block is None:
            self.main(bases, _one(stream.ptr))
            return
        with self._lock:  # nobody else's words come between these and their kernels
            if self._last is not None and self._last.ptr != stream.ptr:
                follow(self._device.driver, self._device.events, stream.ptr, self._last.ptr)
            self._last = stream
            self.main(bases, _one(stream.ptr))

    def finish(self, bases: Any) -> None:
        """Queue what a run does when its status is known to be good."""
        if self.after is not None:
            self.after(bases, _one(gpu_memory.stream()))

    # ---- memory

    def _gridded(self, libraries: bool) -> tuple[list[Grid], list[Called], int]:
        """The launches that do anything; the calls of libraries in the place of others; the bytes of the arena with the
        memory of their threads, and of calls, behind it."""
        waiting = self._algorithms() if libraries else {}
        by_library = frozenset(waiting)
        alignment = WORKSPACE_ALIGNMENT if waiting else ALIGNMENT
        start, raised, most = _up(value_at(self._program.arena_bytes, self._dims), alignment), 0, 0
        grids, called = list[Grid](), list[Called]()
        for _, wave in groupby(self._program.launches, key=lambda launch: launch.wave):
            used = 0
            for launch in wave:
                if launch.kernel in by_library:
                    if launch.kernel in waiting:  # the first launch of several
                        call, algorithm = waiting.pop(launch.kernel)
                        called.append(Called(call, algorithm, len(grids), start + used))
                        used += _up(algorithm.workspace, alignment)
                    continue
                units = value_at(launch.units, self._dims)
                if units or launch.raises:  # what raises must hand on the status, if it does nothing else
                    meets, scratch = None, 0
                    if launch.cooperative:
                        blocks, threads = self._blocks_together(launch, units)
                        meets = sum(grid.launch.cooperative for grid in grids)
                    else:
                        blocks, threads, scratch = self._grid(launch, units)
                    grids.append(Grid(launch, units, blocks, threads, start + used, raised, meets))
                    used += _up(scratch, alignment)
                raised += launch.raises
            most = max(most, used)
        return grids, called, start + most

    def _grid(self, launch: Launch, units: int) -> tuple[int, int, int]:
        """Blocks, threads of each, and the bytes of scratch memory of all of them: as many blocks as the GPU takes in
        ``ROUNDS`` whole rounds, so that none of them is left for a round of its own."""
        scratch_bytes = value_at(launch.scratch_bytes, self._dims)
        teams = min(max(units, 1), max(MOST_THREADS // launch.group_size, 1))
        if scratch_bytes:
            teams = max(1, min(teams, SCRATCH_BYTES // scratch_bytes))
        threads = launch.group_size * teams
        block = min(threads, launch.block)
        blocks = -(-threads // block)
        if blocks > ROUNDS:
            at_once = self._device.blocks_at_once(self._functions[launch.symbol], block, launch.memory)
            rounds = (
                1 if scratch_bytes and launch.group_size > 1 else ROUNDS
            )  # memory is not taken twice for a large team
            blocks = min(blocks, max(rounds * at_once, 1))
        return blocks, block, blocks * (block // launch.group_size) * scratch_bytes

    def _blocks_together(self, launch: Launch, units: int) -> tuple[int, int]:
        """Blocks that wait for each other, and threads of each: no more than there is room for at once."""
        wanted = -(-units // launch.group_size)
        if wanted > 1:
            wanted = min(wanted, self._device.blocks_at_once(self._functions[launch.symbol], launch.group_size))
        return max(wanted, 1), launch.group_size

    def _algorithms(self) -> dict[int, tuple[LibraryCall, Algorithm]]:
        """What libraries do, by the kernels in whose place."""
        result = {}
        for call in self._program.library_calls:
            algorithm = self._device.library.algorithm(call, self._dims)
            if algorithm is not None:
                result[call.kernel] = call, algorithm
                weakref.finalize(self, self._device.library.release, algorithm).atexit = False
        return result

    def _address(self, buffer: Buffer) -> Address:
        if buffer.kind == "arena":
            return self._arena, value_at(buffer.offset, self._dims)
        return self._inputs[buffer.kind] + buffer.number, 0

    # ---- what kernels are told

    def _words(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The words of all launches, and which of them are addresses with what base.  Where blocks meet and the
        statuses of an indirect program are behind them, and begin as zeros."""
        if self._program.indirect:
            words = sum(self._program.words_of(grid.launch) for grid in self._grids)
            count = _up(words + self._meetings + (1 + self.raises + 1) // 2, WORDS_AT_ONCE)
            self.block = gpu_memory.empty(8 * count, "u1")
            self._meeting = self._nothing, self.block.data.ptr + 8 * words
            self._statuses = self._nothing, self._meeting[1] + 8 * self._meetings
        template: list[int] = []
        addresses = []
        for grid in self._grids:
            failed = status = (self._nothing, 0)
            if self.raises:
                base, start = self._statuses
                failed = base, start + 4 * grid.raised
                status = base, start + 4 * (grid.raised + grid.launch.raises)
            scratch = self._arena, grid.scratch
            if grid.meets is not None:
                scratch = self._meeting[0], self._meeting[1] + 8 * grid.meets
            for base, offset in (
                *map(self._address, grid.launch.arguments),
                scratch,
                failed,
                status,
            ):
                if base != self._nothing:
                    addresses.append((len(template), base))
                template.append(offset)
            template += [grid.units, *self._dims.values()]
        if self._program.indirect:
            template += [0] * (count - len(template))
        return template, addresses

    def _written(self, words: int) -> list[Step]:
        function = self._functions[SET_WORDS]
        pieces = range(0, words, WORDS_AT_ONCE)
        return [command_buffer.launch(function, 1, 1, 0, self.block.data.ptr + 8 * k, k) for k in pieces]

    # ---- steps

    def _copied(self, copy: DeviceCopy) -> Step:
        return command_buffer.copy(
            self._address(copy.target), self._address(copy.source), value_at(copy.size, self._dims)
        )

    def _copy_status(self) -> list[Step]:
        """Copy the last status to the host."""
        base, start = self._statuses
        return [
            command_buffer.copy((self._host, 0), (base, start + 4 * self.raises), 4, command_words.TO_HOST),
            command_buffer.event(command_words.RECORD, (self._event, 0), 0),
        ]

    def _body(self) -> list[Step]:
        """The launches, as one graph between each two calls of libraries if that can be."""
        launches, steps, first = self._launches(), list[Step](), 0
        self._told_libraries = [self._library_words(called) for called in self._called]
        for called, words in zip(self._called, self._told_libraries):
            steps += [*self._in_one(launches, first, called.before), command_buffer.product(words)]
            first = called.before
        return [*steps, *self._in_one(launches, first, len(launches))]

    def _library_words(self, called: Called) -> Any:
        call = called.call
        left, right, result = (self._address(matrix.buffer) for matrix in (call.left, call.right, call.result))
        return called.algorithm.words_for(left, right, result, (self._arena, called.workspace))

    def _in_one(self, all_launches: Sequence[Step], first: int, end: int) -> list[Step]:
        """The launches from the first to the end, as one graph if that can be."""
        launches = all_launches[first:end]
        if not self._program.indirect or not launches:
            return list(launches)
        graph = self._captured(self._grids[first:end], launches)
        if graph is None:
            return list(launches)
        self.is_graph = True
        weakref.finalize(self, self._device.retire, "cuGraphExecDestroy", graph, self.block).atexit = False
        return [command_buffer.graph(graph)]

    def _launches(self) -> list[Step]:
        result, word = [], 0
        for grid in self._grids:
            function = self._functions[grid.launch.symbol]
            at_once, memory = grid.launch.cooperative and grid.blocks > 1, grid.launch.memory
            place, first = (None, word) if self.block is None else (self.block.data.ptr + 8 * word, -1)
            result.append(
                command_buffer.launch(
                    function, grid.blocks, grid.threads, 0, place, first, together=at_once, memory=memory
                )
            )
            word += self._program.words_of(grid.launch)
        return result

    def _captured(self, grids: list[Grid], launches: Sequence[Step]) -> int | None:
        """A graph of launches; None where the driver makes none."""
        driver, used = self._device.driver, _streams(grids)
        streams: list[int] = []
        events: list[int] = []
        try:
            streams += [driver.made("cuStreamCreate", NON_BLOCKING) for _ in range(used)]
            events += [self._device.events.take() for _ in range(used)]
            walk = CommandBuffer(driver, list(_side_by_side(grids, launches, events, self._nothing)))
            with gc_pause.paused():  # finalizers could ask the driver for what a capture does not allow
                graph = self._recorded(walk, streams)
            try:
                return driver.made("cuGraphInstantiateWithFlags", graph, 0)
            finally:
                driver.status("cuGraphDestroy", graph)
        except DeviceError:
            return None
        finally:
            for event in events:
                self._device.events.give(event)
            for stream in streams:
                driver.status("cuStreamDestroy_v2", stream)

    def _recorded(self, walk: CommandBuffer, streams: Sequence[int]) -> int:
        """The graph of what a walk does on these streams, none of which is in use."""
        driver, graph = self._device.driver, ctypes.c_void_p()
        driver.call("cuStreamBeginCapture_v2", streams[0], THREAD_LOCAL)
        try:
            walk(self.bases(), _words_array(streams))
        except BaseException:
            driver.status("cuStreamEndCapture", streams[0], ctypes.byref(graph))
            if graph.value:
                driver.status("cuGraphDestroy", graph)
            raise
        driver.call("cuStreamEndCapture", streams[0], ctypes.byref(graph))
        return graph.value or 0


def _side_by_side(grids: list[Grid], launches: Sequence[Step], events: list[int], nothing: int) -> Iterator[Step]:
    """The launches, with those of different kernels of a wave on different streams, which meet behind it."""
    for stream_of in _branches(grids):
        others = sorted({stream for stream in stream_of.values() if stream})
        if others:
            yield command_buffer.event(command_words.RECORD, (nothing, events[0]), 0)
        for other in others:
            yield command_buffer.event(command_words.WAIT, (nothing, events[0]), other)
        for k, stream in stream_of.items():
            kind, function, blocks, threads, _, *rest = launches[k]
            yield kind, function, blocks, threads, stream, *rest
        for other in others:
            yield command_buffer.event(command_words.RECORD, (nothing, events[other]), other)
            yield command_buffer.event(command_words.WAIT, (nothing, events[other]), 0)


def _branches(grids: list[Grid]) -> Iterator[dict[int, int]]:
    """For each wave, on which stream each launch runs.  What raises looks at the status of what stands before it."""
    for _, wave in groupby(enumerate(grids), key=lambda item: item[1].launch.wave):
        members = list(wave)
        kernels = list(dict.fromkeys(grid.launch.kernel for _, grid in members))
        alone = any(grid.launch.raises for _, grid in members)
        yield {k: 0 if alone else kernels.index(grid.launch.kernel) % STREAMS for k, grid in members}


def _streams(grids: list[Grid]) -> int:
    return 1 + max((stream for wave in _branches(grids) for stream in wave.values()), default=0)


def _up(size: int, to: int = ALIGNMENT) -> int:
    return -(-size // to) * to


def _words_array(words: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(words))(*words)


def _one(word: int) -> Any:
    return (ctypes.c_int64 * 1)(word)
