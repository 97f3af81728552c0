"""In which turns the phases of kernels run, where their buffers lie, and the tables that say so to machine code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, zip_longest
from typing import NamedTuple

from hybridflow.compiler.codegen.control.host_tasks import FIRST_PLACE, WAVE_WORDS, words_text, write_task
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_dedup import BufferPart, literal_of
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase
from hybridflow.compiler.codegen.gpu.library_calls import LibraryProduct
from hybridflow.compiler.ir.extents import Extent, aligned, larger
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.buffer_assignment import (
    ALIGNMENT,
    ArenaRange,
    BufferLocation,
    InputBuffer,
    Plan,
    UpdateBuffer,
)
from hybridflow.compiler.loops.kernel import base
from hybridflow.compiler.loops.tuning import ON_STACK
from hybridflow.compiler.program import LEAST_SHARED

ARENA = -1
LITERALS = -2  # constant numbers, see DispatchSteps.literals
_FEW_WORDS = 16  # that a driver keeps besides those of turns


class KernelCall(NamedTuple):
    """An emitted kernel: ``operands`` are the parts of nodes' buffers that it takes, ``first_check`` the least code of
    its checks, None where it has none.  Those of one ``wave`` may run side by side.  To people it is the ``number``-th
    (see ``Program.kernels``).  For ``work`` see ``Program.work``."""

    code: EmittedKernel
    operands: list[BufferPart]
    first_check: int | None
    wave: int
    number: int
    work: Extent
    polls_interrupts: bool = False  # for interrupts
    product: LibraryProduct | None = None  # what a library may do instead

    def checks_in(self, phase: Phase) -> int | None:
        """The least code of what one of its phases can find failed."""
        return self.first_check if phase.checks else None


class Memory(NamedTuple):
    """What a program needs besides its buffers: ``arena`` bytes, and behind them ``scratch`` bytes for each worker."""

    arena: Extent
    scratch: Extent


class BufferOffset(NamedTuple):
    """Memory: that of a number among the buffers which the entry is given, ``ARENA`` or ``LITERALS``; and the bytes
    before it."""

    buffer: int
    offset: Extent


class Dispatch(NamedTuple):
    """A phase of a kernel.  ``places`` are those of shared memory and of the buffers.  When it is over the program
    stops if its status, as an unsigned number, is above ``limit``: then a check has failed that is earlier than all
    that can still fail.  ``kernel`` is the kernel's number."""

    phase: Phase
    buffers: tuple[BufferOffset, ...]
    raises: bool
    limit: int
    kernel: int
    work: Extent
    scratch: Extent = 0  # of each worker

    @property
    def units(self) -> Extent:
        return product(self.phase.units)

    @property
    def is_whole(self) -> bool:
        """Whether it cannot be cut, whatever the extents are."""
        return isinstance(self.units, int) and self.units <= self.phase.grain


def earliest_checks(checks: Sequence[int | None]) -> list[int | None]:
    """Of phases, given the least code of what each can find failed: for each of them, and behind the last one, that of
    what it, or one after it, can find failed.  While that is less than the code of a check that has failed, they have
    to run: the error to report is that of the first check in program order."""
    codes_of_rest: list[int | None] = [None]
    for check_code in reversed(checks):
        codes = [code for code in (check_code, codes_of_rest[-1]) if code is not None]
        codes_of_rest.append(min(codes, default=None))
    return codes_of_rest[::-1]


def shared_memory_offsets(plan: Plan, calls: Sequence[KernelCall]) -> tuple[list[BufferOffset], Memory]:
    """Where the shared memory of each kernel lies, and the memory of the program: shared memory lies behind the planned
    arena, side by side for the kernels of a wave, in one place for those of different waves."""
    start = aligned(plan.arena, ALIGNMENT)
    scratch: Extent = 0
    most: Extent = 0
    places = []
    for _, wave in groupby(calls, key=lambda call: call.wave):
        used: Extent = 0
        for call in wave:
            places.append(BufferOffset(ARENA, start + used))
            used = used + aligned(call.code.shared, ALIGNMENT)
            scratch = larger(scratch, aligned(call.code.scratch, ALIGNMENT))
        most = larger(most, used)
    return places, Memory(start + most, scratch)


class DispatchSteps:
    """The turns of a program, by the steps in which they run: as many side by side as may, or
    ``example_by_example``."""

    def __init__(self, graph: Graph, plan: Plan, calls: Sequence[KernelCall], one_by_one: bool = False) -> None:
        self.graph, self.plan = graph, plan
        self._updates = {i: k for k, i in enumerate(sorted(graph.updates))}
        self.literals: dict[int, int] = {}  # words that hold the constant numbers which kernels read, and their places
        shared, self.memory = shared_memory_offsets(plan, calls)
        ordered = [
            (call, place, phase)
            for _, wave in groupby(zip(calls, shared), key=lambda item: item[0].wave)
            for step in _phases_side_by_side(list(wave))
            for call, place, phase in step
        ]
        checks = [call.checks_in(phase) for call, _, phase in ordered]
        raising = [check is not None or call.polls_interrupts for check, (call, _, _) in zip(checks, ordered)]
        self.raise_ = any(raising)
        later = earliest_checks(checks)
        self.dispatches: list[Dispatch] = []
        self.sizes: list[int] = []  # how many turns each step has
        self.asks_host = any(call.code.asks_host for call in calls)
        self.words_at: Extent | None = None  # where in the arena words lie that the driver keeps, if not on the stack
        step: tuple[int, ...] | None = None
        for k, (call, place, phase) in enumerate(ordered):
            places = (place, *(self.part(part) for part in call.operands))
            limit = limit_before(later[k + 1])
            self.dispatches.append(
                Dispatch(phase, places, raising[k], limit, call.number, call.work, call.code.scratch)
            )
            check = call.wave, call.code.phases.index(phase), *([k] if call.code.asks_host else [])
            if check != step or one_by_one:
                self.sizes.append(0)
                step = check
            self.sizes[-1] += 1

    def make_room(self) -> DispatchSteps:
        """Have room behind the arena for the words that a driver on a CPU keeps, where they are too many for a stack:
        of all turns that run side by side it lays down the arguments."""
        counts = [[FIRST_PLACE + len(dispatch.buffers) for dispatch in step] for step in self.in_order()]
        laid = sum(map(max, zip_longest(*counts, fillvalue=0))) if counts else 0
        extents = {
            x
            for dispatch in self.dispatches
            for x in (dispatch.units, dispatch.work, *(p.offset for p in dispatch.buffers))
        }
        symbolic = sum(not isinstance(extent, int) for extent in extents)
        most = max(self.sizes, default=0)
        words = _FEW_WORDS + symbolic + laid + len(WAVE_WORDS) * most
        if 8 * words > ON_STACK:
            self.words_at = aligned(self.memory.arena, ALIGNMENT)
            self.memory = self.memory._replace(arena=self.words_at + aligned(8 * words, ALIGNMENT))
        return self

    @property
    def can_be_shared(self) -> bool:
        """Whether there is anything that two workers could do side by side."""
        return self.asks_host or any(map(_can_be_shared, self.in_order()))

    @property
    def pays_to_share(self) -> bool:
        """Whether there is work that may be enough for two workers."""
        return self.asks_host or any(_can_be_shared(step) and is_enough(step) for step in self.in_order())

    def in_order(self) -> Iterator[list[Dispatch]]:
        """The turns of each step."""
        dispatches = iter(self.dispatches)
        return (list(islice(dispatches, size)) for size in self.sizes)

    def part(self, part: BufferPart) -> BufferOffset:
        literal = literal_of(part.node)
        if literal is not None and part.node not in self.plan.locations:
            word = int.from_bytes(literal.data.ljust(8, b"\0"), "little", signed=True)
            return BufferOffset(LITERALS, 8 * self.literals.setdefault(word, len(self.literals)))
        buffer, offset = self.offset_of(self.plan.locations[base(part.node)])
        return BufferOffset(buffer, offset + part.offset)

    def offset_of(self, location: BufferLocation) -> BufferOffset:
        if isinstance(location, ArenaRange):
            return BufferOffset(ARENA, location.offset)
        inputs, outputs = len(self.graph.inputs), len(self.graph.outputs)
        if isinstance(location, UpdateBuffer):
            return BufferOffset(inputs + outputs + self._updates[location.number], 0)
        return BufferOffset(location.number + (0 if isinstance(location, InputBuffer) else inputs), 0)


def _can_be_shared(step: Sequence[Dispatch]) -> bool:
    return len(step) > 1 or not step[0].is_whole


def is_enough(step: Sequence[Dispatch]) -> bool:
    """Whether turns may be work for more than one thread, for all that is known of extents."""
    work = sum((dispatch.work for dispatch in step), start=0)
    return not isinstance(work, int) or work >= LEAST_SHARED


def _phases_side_by_side(
    kernels: Sequence[tuple[KernelCall, BufferOffset]],
) -> Iterable[list[tuple[KernelCall, BufferOffset, Phase]]]:
    """The first phases of a wave's kernels, then the second ones, and so on."""
    for k in range(max(len(call.code.phases) for call, _ in kernels)):
        yield [(call, place, call.code.phases[k]) for call, place in kernels if k < len(call.code.phases)]


def limit_before(later: int | None) -> int:
    """As unsigned 32 bits above it lies the status of a check that is earlier than check ``later``, if there is one:
    statuses are negative codes, so that among them the largest is the smallest code, and 0 is below them all."""
    return 0 if later is None else -later


class DispatchTables:
    """Turns as constant data, which the driver reads instead of growing with them.

    ``turns``   for each turn the number of its task, its units and work, and, where sizes depend on extents
                (``symbolic``), behind each of these the number in ``sizes`` of what is added to it
    ``places``  of all turns, one after another: the buffer, the bytes before it, and in the same way what is added
    ``tasks``   the tasks, each with its phase; ``kinds`` for each of them how many places it has, its grain, the
                units that a piece should have at the least, and the workers that it is cut for
    ``steps``   how many turns each step has
    ``limits``  of each turn
    ``literals`` constant numbers that kernels read, eight bytes each
    """

    def __init__(self, module: LLVMModule, name: str, steps: DispatchSteps) -> None:
        self._name = name
        self.sizes: dict[Extent, int] = {0: 0}
        self.symbolic = any(
            not isinstance(size, int)
            for dispatch in steps.dispatches
            for size in (dispatch.units, dispatch.work, *(p.offset for p in dispatch.buffers))
        )
        self.size_words = 2 if self.symbolic else 1
        self.turn_words, self.place_words = 1 + 2 * self.size_words, 1 + self.size_words
        numbers: dict[tuple[str, int, int, int, int], int] = {}
        dispatches: list[int] = []
        places: list[int] = []
        for dispatch in steps.dispatches:
            phase = dispatch.phase
            kind = phase.symbol, len(dispatch.buffers), phase.grain, phase.least, phase.workers
            dispatches += (
                numbers.setdefault(kind, len(numbers)),
                *self._size(dispatch.units),
                *self._size(dispatch.work),
            )
            for place in dispatch.buffers:
                places += (place.buffer, *self._size(place.offset))
        self.words = [
            FIRST_PLACE + len(dispatch.buffers) for dispatch in steps.dispatches
        ]  # of the arguments of each turn
        tasks = [(write_task(module, count - 1), symbol) for symbol, count, *_ in numbers]
        pointers = ", ".join(f"ptr @{symbol}" for pair in tasks for symbol in pair)
        self.constants: dict[str, str] = {}
        self.tasks = self._constant("tasks", f"[{2 * len(tasks)} x ptr] [{pointers}]")
        self.dispatches = self._constant("turns", words_text(dispatches))
        self.places = self._constant("places", words_text(places))
        self.kinds = self._constant("kinds", words_text([n for _, *kind in numbers for n in kind]))
        self.steps = self._constant("steps", words_text(steps.sizes))
        self.literals = self._constant("literals", words_text(list(steps.literals))) if steps.literals else "null"
        self.limits = self._constant("limits", words_text([dispatch.limit for dispatch in steps.dispatches]))

    def _constant(self, name: str, text: str) -> str:
        symbol = f"@{self._name}.{name}"
        self.constants[symbol] = f"{symbol} = internal constant {text}, align 8"
        return symbol

    def _size(self, size: Extent) -> tuple[int, ...]:
        if not self.symbolic:
            assert isinstance(size, int)
            return (size,)
        if isinstance(size, int):
            return size, 0
        return 0, self.sizes.setdefault(size, len(self.sizes))

    def used_by(self, e: Emitter, *names: str) -> None:
        """Have the module of this function hold the tables, or those of them that are named."""
        e.globals.update({name: self.constants[name] for name in names or self.constants})
