"""What a phase promises (``compiler/codegen/core/phases.py``), looked at piece by piece.

All memory of a run lies in one array: inputs, outputs, new values of state, the arena and the scratch memory of each
worker, with gaps between them.  So what a piece has read and written is seen by running it on a copy of all that the
phase began with:

- a piece that runs alone leaves what it leaves after all others: it reads nothing that another piece writes;
- no byte is written by two pieces, and none outside of the buffers;
- forwards, backwards and in random order the pieces leave the same;
- what a phase writes but does not read may hold anything at first, and so may scratch memory;
- the program's results are those of the entry that runs all in place.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
from collections.abc import Iterator, Sequence
from unittest import mock

import numpy as np

from hybridflow.compiler.codegen.control import driver
from hybridflow.compiler.codegen.control.host_tasks import COMMON, FIRST_PLACE
from hybridflow.compiler.ir.graph import Graph, Role
from hybridflow.compiler.loops import schedule
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.program import Program, Slot, value_at
from hybridflow.compiler.target import Target
from hybridflow.jit.donation import matched
from hybridflow.runtime import argument_checks, cpu, host_interface
from hybridflow.runtime.dtypes import NUMPY
from tests.support.bits import same_bits

LINE = 64
GAP = 256  # bytes between two buffers, which nobody may write
WORKERS = 3
MOST_PIECES = 24
Piece = tuple[int, int]
Range = tuple[int, int]


class PhaseError(AssertionError):
    """A phase that breaks what it promises."""


def compiled(graph: Graph, target: Target) -> Program:
    """The program, whose shared entry hands its host one phase after another, also those of kernels that may run side
    by side."""
    steps = driver.DispatchSteps
    with mock.patch.object(driver, "DispatchSteps", lambda *args, one_by_one=False: steps(*args, one_by_one=True)):
        return compile_graph(graph, target)


def donating(graph: Graph) -> Graph:
    """The graph with as many outputs as may lie in the memory of inputs as new values of these."""
    given = [i for i, node in enumerate(graph.inputs) if node.attrs["role"] is Role.ARGUMENT]
    donated = matched([i for i in given if i not in graph.updates], graph)
    outputs = [node for k, node in enumerate(graph.outputs) if k not in donated.values()]
    updates = {**graph.updates, **{i: graph.outputs[k] for i, k in donated.items()}}
    return Graph(graph.name, graph.inputs, graph.nodes, tuple(outputs), updates)


class Memory:
    """One array of bytes with room for all of a run; ``address`` is that of its first byte."""

    def __init__(self, program: Program, arrays: Sequence[np.ndarray], rng: np.random.Generator) -> None:
        self.program, self.dims = program, argument_checks.bind_dims(program, arrays)
        self.inputs, self.outputs, self.updates = [], [], []
        self._end = 0
        slots = program.inputs
        self.inputs = [self._place(slot) for slot in slots]
        self.outputs = [self._place(slot) for slot in program.outputs]
        self.updates = [
            self.inputs[i] if slots[i].in_place else self._place(slots[i]) for i in argument_checks.updated(program)
        ]
        stride = value_at(program.scratch_bytes, self.dims)
        arena = value_at(program.arena_bytes, self.dims)
        self.arena = self._room(arena + WORKERS * stride)
        self.scratch = self.arena[0] + arena, self.arena[1]
        self.bytes = _aligned(rng.integers(0, 256, self._end, np.uint8))
        self.address = self.bytes.ctypes.data
        for (start, end), array in zip(self.inputs, arrays):
            self.bytes[start:end] = np.frombuffer(np.array(array, order="C").tobytes(), np.uint8)

    def _place(self, slot: Slot) -> Range:
        count = int(np.prod(argument_checks.extents(slot, self.dims), dtype=np.int64))
        return self._room(count * NUMPY[slot.dtype].itemsize)

    def _room(self, nbytes: int) -> Range:
        start = self._end + GAP
        self._end = -(-(start + nbytes) // 64) * 64 + GAP
        return start, start + nbytes

    def pointers(self) -> list[int]:
        return [self.address + start for start, _ in (*self.inputs, *self.outputs, *self.updates)]

    def results(self) -> list[np.ndarray]:
        """The outputs and the new values of state."""
        slots = [*self.program.outputs, *(self.program.inputs[i] for i in argument_checks.updated(self.program))]
        found = []
        for slot, (start, end) in zip(slots, (*self.outputs, *self.updates)):
            shape = argument_checks.extents(slot, self.dims)
            found.append(np.frombuffer(self.bytes[start:end].tobytes(), NUMPY[slot.dtype]).reshape(shape))
        return found

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """Where buffers begin."""
        return np.array(sorted({start for start, _ in (*self.inputs, *self.outputs, *self.updates, self.arena)}))

    @functools.cached_property
    def writable(self) -> np.ndarray:
        """Bytes that a program may write: outputs, new values, the arena."""
        found = np.zeros(len(self.bytes), bool)
        for start, end in (*self.outputs, *self.updates, self.arena):
            found[start:end] = True
        return found


def _aligned(values: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of 64 bytes."""
    room = np.empty(len(values) + 64, np.uint8)
    start = -room.ctypes.data % 64
    room[start : start + len(values)] = values
    return room[start : start + len(values)]


class PhaseHost:
    """Runs each phase in all these ways.  ``phases`` counts those that were cut."""

    def __init__(self, memory: Memory, rng: np.random.Generator) -> None:
        self.memory, self.rng = memory, rng
        self.struct = host_interface.Host(workers=WORKERS)
        self.struct.parallel_for = host_interface.TYPES["parallel_for"](self._parallel_for)
        self.phases = 0
        self.errors: list[BaseException] = []

    def _parallel_for(self, host: int, task: int, args: int, units: int, grain: int, least: int, work: int) -> None:
        if self.errors:
            return
        try:  # ctypes would print an exception and go on
            run = _Phase(self.memory, self.rng, task, args, units, grain)
            if not run.check():
                return
            self.phases += 1
        except BaseException as error:
            self.errors.append(error)


class _Phase:
    def __init__(self, memory: Memory, rng: np.random.Generator, task: int, args: int, units: int, grain: int) -> None:
        self.memory, self.rng, self.units, self.grain = memory, rng, units, grain
        self.task, self.args = host_interface.TASK(task), args
        common = (ctypes.c_int64 * len(COMMON)).from_address(_word(args, 0))
        self.scratch, self.stride = common[COMMON.index("scratch")], common[COMMON.index("stride")]
        status = common[COMMON.index("status")]
        self.status = ctypes.c_uint32.from_address(status) if status else ctypes.c_uint32()
        self.pieces = self._cuts()
        self.lasting = np.ones(len(memory.bytes), bool)  # bytes that mean something to others than a worker
        self.lasting[slice(*memory.scratch)] = False

    def _cuts(self) -> list[Piece]:
        """Pieces of one grain; where there are many units, some of one grain among longer ones."""
        grains = -(-self.units // self.grain)
        if grains <= MOST_PIECES:
            cuts = list(range(grains))
        else:
            some = self.rng.choice(np.arange(1, grains), MOST_PIECES // 3, replace=False)
            cuts = sorted({0, grains - 1, *some.tolist(), *(some + 1).tolist()} - {grains})
        bounds = [*(cut * self.grain for cut in cuts), self.units]
        return [(a, b) for a, b in itertools.pairwise(bounds) if a < b]

    def check(self) -> bool:
        """Whether there was anything to cut; the memory is then as the phase leaves it."""
        memory, status = self.memory, self.status.value
        if len(self.pieces) < 2:
            self._run([(0, self.units)])
            return False
        begin = memory.bytes.copy()
        self._run(self.pieces)
        if self.status.value != status:  # a check has failed: results have no meaning
            return False
        end = memory.bytes.copy()
        begin = self._poisoned(begin, end)
        written = (begin != end) & self.lasting
        self._expect(not (written & ~memory.writable).any(), "writes where nobody may")
        self._check_pieces(begin, end, written)
        for order in (self.pieces[::-1], self._shuffled()):
            memory.bytes[:] = begin
            self._run(order)
            self._expect(self._are_same(end), "pieces in another order leave something else")
        memory.bytes[:] = end
        return True

    def _check_pieces(self, begin: np.ndarray, end: np.ndarray, written: np.ndarray) -> None:
        memory = self.memory
        owner = np.full(len(begin), -1, np.int32)
        alike = np.zeros(len(begin), bool)  # words at the front of shared memory that all pieces store alike
        shared = _word(self.args, FIRST_PLACE) - memory.address
        alike[max(shared, 0) : max(shared + LINE, 0)] = True
        for number, piece in enumerate(self.pieces):
            memory.bytes[:] = begin
            self._run([piece])
            mine = (memory.bytes != begin) & self.lasting
            wrong = mine & (memory.bytes != end)
            self._expect(not wrong.any(), f"units {piece} alone leave something else than after others", wrong)
            twice = mine & (owner >= 0) & ~alike
            self._expect(not twice.any(), f"units {piece} write what other units write", twice)
            owner[mine] = number
        missing = written & (owner < 0)
        self._expect(not missing.any(), "no piece alone writes what all write together", missing)

    def _poisoned(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """What the phase began with, and in the place of what it writes but does not read anything else: then nobody
        writes a byte unseen.  Shared memory stays as it is: it may hold places, and holds anything at first."""
        memory = self.memory
        written = (begin != end) & self.lasting
        places = (_word(self.args, k) - memory.address for k in range(FIRST_PLACE, FIRST_PLACE + self._places()))
        inside = [p for p in places if 0 <= p < len(begin)]
        bounds = sorted({0, len(begin), *inside, *memory.starts.tolist()})
        for a, b in itertools.pairwise(bounds):
            where = np.flatnonzero(written[a:b]) + a
            if not len(where) or a == inside[0]:
                continue
            other = begin.copy()
            span = slice(where[0], where[-1] + 1)
            other[where] = end[where] ^ self.rng.integers(1, 256, len(where), np.uint8)
            rest = self._untouched(begin, end, span)
            other[rest] ^= self.rng.integers(1, 256, len(rest), np.uint8)
            memory.bytes[:] = other
            status = self.status.value
            self._run(self.pieces)
            if self.status.value != status:  # a check has met what stands in the place of its operands
                self.status.value = status
            elif self._are_same(end):
                begin = other
        return begin

    @staticmethod
    def _untouched(begin: np.ndarray, end: np.ndarray, span: slice) -> np.ndarray:
        """Bytes among those that are written which happen to have held the same: within a few bytes of others."""
        changed = (begin[span] != end[span]).astype(np.int8)
        near = np.convolve(changed, np.ones(15, np.int8))[7:-7] > 0
        return np.flatnonzero(near & (changed == 0)) + span.start

    def _places(self) -> int:
        """How many places there are: words that are addresses in the memory, after those of shared memory and before
        something else.  (Constant numbers lie elsewhere.)"""
        count = 1
        while count < 64 and self._is_place(_word(self.args, FIRST_PLACE + count)):
            count += 1
        return count

    def _is_place(self, word: int) -> bool:
        return 0 <= word - self.memory.address < len(self.memory.bytes)

    def _are_same(self, end: np.ndarray) -> bool:
        return bool((self.memory.bytes[self.lasting] == end[self.lasting]).all())

    def _shuffled(self) -> list[Piece]:
        return [self.pieces[k] for k in self.rng.permutation(len(self.pieces))]

    def _run(self, pieces: Sequence[Piece]) -> None:
        """Each piece by some worker, in whose scratch memory there is anything, and who touches no other's."""
        memory = self.memory
        for begin, end in pieces:
            worker = int(self.rng.integers(WORKERS))
            first = self.scratch - memory.address
            if self.stride:
                start = first + worker * self.stride
                own = slice(start, min(start + self.stride, memory.scratch[1]))
                memory.bytes[own] = self.rng.integers(0, 256, own.stop - own.start, np.uint8)
            before = memory.bytes[slice(*memory.scratch)].copy() if self.stride else None
            self.task(self.args, begin, end, worker)
            if before is not None:
                changed = np.flatnonzero(memory.bytes[slice(*memory.scratch)] != before) + memory.scratch[0]
                outside = changed[(changed < own.start) | (changed >= own.stop)]
                self._expect(not len(outside), "a worker writes into another one's scratch memory")

    def _expect(self, holds: bool, what: str, where: np.ndarray | None = None) -> None:
        if not holds:
            found = "" if where is None else f" (bytes {np.flatnonzero(where)[:4]} of {int(where.sum())})"
            raise PhaseError(f"{what}{found}: {self.units} units by {self.grain}")


def _word(address: int, position: int) -> int:
    return int(ctypes.c_int64.from_address(address + 8 * position).value)


def check_phases(program: Program, arrays: Sequence[np.ndarray], seed: int = 0) -> int:
    """Assert that the phases of a program (see ``compiled``) keep their promises on these arrays; how many of them
    could be cut."""
    rng = np.random.default_rng(seed)
    arrays = [np.array(a, order="C") for a in arrays]
    loaded = cpu.load(program)
    alone, cut = (Memory(program, arrays, rng) for _ in range(2))
    status = _call(loaded._call, alone, None)
    host = PhaseHost(cut, rng)
    found = _call(loaded._call_for_host(), cut, ctypes.addressof(host.struct))
    schedules = "\n".join(f"{k.name}: {k.schedule or ', '.join(k.ops)}" for k in program.kernels)
    if host.errors:
        raise PhaseError(f"{host.errors[0]}\n{schedules}") from host.errors[0]
    if found != status:
        raise PhaseError(f"another check fails: {found} for {status}\n{schedules}")
    if not status and not all(map(same_bits, cut.results(), alone.results())):
        raise PhaseError(f"pieces leave other bits than the entry that runs all in place\n{schedules}")
    return host.phases


def _call(entry: object, memory: Memory, host: int | None) -> int:
    pointers = memory.pointers()
    words = (ctypes.c_void_p * len(pointers))(*pointers)
    dims = (ctypes.c_int64 * len(memory.dims))(*memory.dims.values())
    assert callable(entry)
    return int(entry(words, dims, memory.address + memory.arena[0], host))


@contextlib.contextmanager
def small_pieces(enough: int = schedule.ENOUGH) -> Iterator[None]:
    """Everything is cut as if it were large."""
    with contextlib.ExitStack() as stack:
        for name, value in (("SPLIT_REDUCTION", 1), ("SMALL", 1), ("ENOUGH", enough)):
            stack.enter_context(mock.patch.object(schedule, name, value))
        yield
