"""Buffer assignment: where every stored value lies, in which order the kernels run, and which copies remain.

Outputs and new values of state are buffers that the caller gives, each written by the kernel that computes it;
everything else shares one arena, where a value's range is free again after the wave of its last reader.

A program that fails leaves state as it was.  So a new value may be written over the old one (``Plan.in_place``) only
where every check has passed by then: the kernels that can raise run first wherever the data allow it.  Where they do
not, the caller gives fresh memory, which takes the old one's place at the end, and nothing is copied either.
"""

from __future__ import annotations

import functools
import itertools
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Union

from hybridflow.compiler.ir.extents import Extent, aligned
from hybridflow.compiler.ir.graph import Effect, Graph, Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.alias_analysis import AliasAnalysis, AliasPairs
from hybridflow.compiler.loops.interrupt_checks import may_end
from hybridflow.compiler.loops.kernel import Fusion, Kernel, base, checks_first, read_in_place
from hybridflow.compiler.loops.waves import waves
from hybridflow.compiler.ops import Kind


class FreeList:
    """Free ranges of one memory, found by size and by where they begin and end.  Neighbours are one range.  All is in
    bytes."""

    def __init__(self) -> None:
        self._by_size: list[tuple[int, int]] = []  # (size, offset), sorted
        self._size_at: dict[int, int] = {}  # by offset
        self._start_of: dict[int, int] = {}  # by end

    def allocate(self, size: int) -> int | None:
        """Where ``size`` bytes begin, of the tightest range that is large enough, which are free no more."""
        place = bisect_left(self._by_size, (size, 0))
        if place == len(self._by_size):
            return None
        room, offset = self._by_size[place]
        self._remove(offset)
        if room > size:
            self._add(offset + size, room - size)
        return offset

    def free(self, offset: int, size: int) -> None:
        if size == 0:
            return
        before = self._start_of.get(offset)
        if before is not None:
            size += self._remove(before)
            offset = before
        if offset + size in self._size_at:
            size += self._remove(offset + size)
        self._add(offset, size)

    def _add(self, offset: int, size: int) -> None:
        self._size_at[offset], self._start_of[offset + size] = size, offset
        insort(self._by_size, (size, offset))

    def _remove(self, offset: int) -> int:
        size = self._size_at.pop(offset)
        del self._start_of[offset + size]
        self._by_size.pop(bisect_left(self._by_size, (size, offset)))
        return size


ALIGNMENT = 64


@dataclass(frozen=True)
class InputBuffer:
    number: int


@dataclass(frozen=True)
class OutputBuffer:
    number: int


@dataclass(frozen=True)
class UpdateBuffer:
    """The new value of the state input of that number."""

    number: int


@dataclass(frozen=True)
class ArenaRange:
    offset: Extent
    size: Extent


RowOverwrites = Callable[[Kernel], set[Node]]
BufferLocation = Union[InputBuffer, OutputBuffer, UpdateBuffer, ArenaRange]


@dataclass(frozen=True)
class Copy:
    """``is_there``: the target may be the source, as whoever runs a graph has it (see ``aliases``)."""

    source: BufferLocation
    target: BufferLocation
    size: Extent
    is_there: bool = False


@dataclass(eq=False)
class Plan:
    """``kernels`` in running order; ``before`` and ``after`` are copies around them.  ``in_place`` are the state inputs
    whose new value may be written over the old one; ``overwrites`` are outputs, each with the number of the input that
    whoever runs a graph may give the same memory.

    ``waves`` has the wave of each kernel: those of one wave may run side by side, waves run one after another.
    ``last_use`` is the last wave that reads a value; from the next one on its memory holds something else.
    """

    kernels: list[Kernel]
    waves: list[int] = field(default_factory=list)
    locations: dict[Node, BufferLocation] = field(default_factory=dict)
    before: list[Copy] = field(default_factory=list)
    after: list[Copy] = field(default_factory=list)
    arena: Extent = 0
    in_place: set[int] = field(default_factory=set)
    overwrites: dict[int, int] = field(default_factory=dict)
    last_use: dict[Node, int] = field(default_factory=dict)


def byte_size(node: Node) -> Extent:
    if isinstance(node.type, TupleType):
        return 0  # its results lie in memory
    return product(node.shape) * node.dtype.itemsize


def aligned_byte_size(node: Node) -> Extent:
    """The bytes that a value takes in the arena."""
    return aligned(byte_size(node), ALIGNMENT)


def plan(
    graph: Graph,
    fusion: Fusion,
    in_rows: RowOverwrites | None = None,
    wanted: AliasPairs = (),
    aliases: AliasAnalysis | None = None,
) -> Plan:
    """``in_rows`` gives the inputs of a kernel with reductions whose memory its results may take; none without it.
    ``wanted`` are outputs that are to be written over inputs where they can be; ``aliases`` says which results of nodes
    that run graphs can."""
    planner = _BufferAssigner(graph, fusion, in_rows, aliases)
    planner.place_inputs_and_outputs(wanted)
    planner.place_arena()
    return planner.plan


class _BufferAssigner:
    def __init__(
        self, graph: Graph, fusion: Fusion, in_rows: RowOverwrites | None, aliases: AliasAnalysis | None
    ) -> None:
        self.graph, self.fusion, self.aliases = graph, fusion, aliases
        self.maker = {root: kernel for kernel in fusion.kernels for root in kernel.roots}
        self.in_rows = in_rows
        self.in_place = functools.cache(self._in_place)
        self.parameter = {node: i for i, node in enumerate(graph.inputs)}
        self.after: dict[Kernel, set[Kernel]] = {
            kernel: {self.maker[n] for n in kernel.inputs if n in self.maker} for kernel in fusion.kernels
        }
        if graph.is_ordered:
            self._put_effects_after_checks()
        self.number = {kernel: k for k, kernel in enumerate(fusion.kernels)}
        self.readers_of: dict[Node, list[Kernel]] = defaultdict(list)
        for kernel in fusion.kernels:
            for node in dict.fromkeys(kernel.inputs):
                self.readers_of[node].append(kernel)
        self.reordered: set[Kernel] = set()  # that may wait for kernels which stand after them, directly or not
        self.raising = {kernel for kernel in fusion.kernels if may_end(kernel)}
        self.plan = Plan([])

    def _in_place(self, kernel: Kernel) -> set[Node]:
        """Inputs whose memory a result may take, element by element."""
        if self.in_rows is not None and kernel.cluster.space.has_reduction and kernel.cluster.kind is Kind.ELEMENTWISE:
            return self.in_rows(kernel)
        return read_in_place(kernel, self.fusion.is_leaf)

    def _may_take(self, kernel: Kernel, node: Node, root: Node) -> bool:
        """Whether a result of a kernel may take the memory of what that reads."""
        if root in kernel.cluster.rows:
            return False
        if kernel.cluster.kind is not Kind.CONTROL:
            return node in self.in_place(kernel)
        if self.aliases is None or root.op.kind is not Kind.PROJECT:
            return False
        anchor, number = kernel.cluster.anchor, root.attrs["index"]
        return any(k == number and base(anchor.inputs[i]) is node for i, k in self.aliases.of(anchor))

    def _put_effects_after_checks(self) -> None:
        """An effect happens when all checks above it have passed: its kernel waits for theirs."""
        checking = {n: kernel for kernel in self.fusion.kernels for n in kernel.nodes if n.effect is not Effect.NONE}
        above: set[Kernel] = set()
        for node in self.graph.nodes:
            if node.effect is Effect.ORDERED:
                self.after[checking[node]] |= above
            if node in checking:
                above.add(checking[node])

    # ---- inputs and outputs

    def place_inputs_and_outputs(self, wanted: AliasPairs) -> None:
        for node, i in self.parameter.items():
            self.plan.locations[node] = InputBuffer(i)
        for i, node in sorted(self.graph.updates.items()):
            self._place_update(i, base(node))
        for i, j in wanted:
            self._place_over(i, j)
        # The fusion's order, but for kernels that must wait, or may run beside those before them.
        self.plan.kernels, self.plan.waves = waves(self.fusion.kernels, self.after)
        self._place_outputs()

    def _place_update(self, i: int, value: Node) -> None:
        """Let the kernel that computes ``value`` write it where state input ``i`` wants it; a value that lies elsewhere
        is copied there."""
        source, target = self.plan.locations.get(value), UpdateBuffer(i)
        if source is None:
            self.plan.locations[value] = target
            if self._may_overwrite(i, value, self.raising):
                self.plan.in_place.add(i)
            return
        old_value = value.is_parameter and self.parameter[value] in self.graph.updates
        # The old value of a state is copied before any kernel can overwrite it: into fresh memory, because kernels may
        # still read what lies there.  Other values are copied when all kernels are through.
        (self.plan.before if old_value else self.plan.after).append(Copy(source, target, byte_size(value)))
        if not old_value or value is self.graph.inputs[i]:
            self.plan.in_place.add(i)

    def _place_over(self, i: int, j: int) -> None:
        """Let output ``j`` be written over input ``i`` where it can.  Who gives both one memory needs the old value for
        nothing else, not even where a check fails."""
        value, state = base(self.graph.outputs[j]), self.graph.inputs[i]
        if value is not state:
            if value.is_parameter or value in self.plan.locations or not self._may_overwrite(i, value, raising=()):
                return
            self.plan.locations[value] = OutputBuffer(j)
        self.plan.overwrites[j] = i

    def _may_overwrite(self, i: int, value: Node, raising: Collection[Kernel]) -> bool:
        """Whether the kernel that computes ``value`` may write it over input ``i``: after all that read the old value,
        and all that are ``raising``, for which it waits from now on."""
        state, writer = self.graph.inputs[i], self.maker[value]
        if writer in raising and not checks_first(writer):
            return False
        if state in writer.inputs and not self._may_take(writer, state, value):
            return False
        earlier = {*self.readers_of[state], *raising} - {writer}
        if self._any_waits(earlier, writer):
            return False
        self.after[writer] |= earlier
        self._mark_reordered(writer)
        return True

    def _any_waits(self, kernels: Iterable[Kernel], on: Kernel) -> bool:
        """Whether one of the kernels has to run after ``on``.  A kernel only needs what stands before it in the
        fusion's order, unless it is, or needs, one that was made to wait for others."""
        first = self.number[on]
        stack, seen = list(kernels), set(kernels)
        while stack:
            kernel = stack.pop()
            if kernel is on:
                return True
            if self.number[kernel] < first and kernel not in self.reordered:
                continue
            for earlier in self.after[kernel]:
                if earlier not in seen:
                    seen.add(earlier)
                    stack.append(earlier)
        return False

    def _mark_reordered(self, kernel: Kernel) -> None:
        """Note that a kernel, and so all that need it, may wait for kernels behind it."""
        stack = [kernel]
        while stack:
            kernel = stack.pop()
            if kernel not in self.reordered:
                self.reordered.add(kernel)
                stack += [reader for root in kernel.roots for reader in self.readers_of[root]]

    def _place_outputs(self) -> None:
        for j, node in enumerate(self.graph.outputs):
            value, target = base(node), OutputBuffer(j)
            if value not in self.plan.locations:
                self.plan.locations[value] = target
                continue
            if self.plan.locations[value] == target:
                continue
            is_there = value.is_parameter and self.plan.overwrites.get(j) == self.parameter[value]
            copy = Copy(self.plan.locations[value], target, byte_size(node), is_there)
            # An argument, or a state's old value, is copied before any kernel can overwrite it.
            (self.plan.before if value.is_parameter else self.plan.after).append(copy)

    # ---- arena

    def place_arena(self) -> None:
        plan = self.plan
        self.readers: dict[Node, list[Kernel]] = {}  # of the last wave that reads a value
        for kernel, wave in zip(plan.kernels, plan.waves):
            for node in dict.fromkeys(kernel.inputs):
                if plan.last_use.get(node) != wave:
                    self.readers[node] = []
                self.readers[node].append(kernel)
                plan.last_use[node] = wave
        end: Extent = 0  # of those of symbolic size
        free = FreeList()
        used = 0
        for wave, group in itertools.groupby(zip(plan.waves, plan.kernels), key=itemgetter(0)):
            kernels = [kernel for _, kernel in group]
            for kernel in kernels:
                for root in kernel.roots:
                    if root in plan.locations:
                        continue
                    nbytes = aligned_byte_size(root)
                    if not isinstance(nbytes, int):
                        plan.locations[root] = ArenaRange(end, byte_size(root))
                        end = end + nbytes
                        continue
                    donor = self._donor(kernel, wave, root)
                    if donor is not None:
                        plan.locations[root] = plan.locations[donor]
                        plan.last_use[donor] = -1  # its range now belongs to the root
                        continue
                    offset = free.allocate(nbytes)
                    if offset is None:
                        offset, used = used, used + nbytes
                    plan.locations[root] = ArenaRange(offset, byte_size(root))
            self._release(kernels, wave, free)
        # Static temporaries lie first, then those of symbolic size.
        for node, place in plan.locations.items():
            if isinstance(place, ArenaRange) and not self._is_temporary(node):
                plan.locations[node] = ArenaRange(place.offset + used, place.size)
        plan.arena = end + used

    def _release(self, kernels: Sequence[Kernel], wave: int, free: FreeList) -> None:
        """Give back the ranges of what no kernel after this wave reads."""
        for node in dict.fromkeys(node for kernel in kernels for node in (*kernel.inputs, *kernel.roots)):
            place = self.plan.locations[node]
            if self.plan.last_use.get(node, wave) == wave and isinstance(place, ArenaRange):
                start, size = place.offset, aligned_byte_size(node)
                if isinstance(start, int) and isinstance(size, int):
                    free.free(start, size)

    def _is_temporary(self, node: Node) -> bool:
        """Whether the value may share its range with others: it is of known size."""
        return isinstance(byte_size(node), int)

    def _donor(self, kernel: Kernel, wave: int, root: Node) -> Node | None:
        """An input that dies here and whose memory the root may take over, element by element."""
        if isinstance(root.type, TupleType):
            return None
        for node in kernel.inputs:
            if (
                self.plan.last_use.get(node) == wave
                and self.readers[node] == [kernel]
                and isinstance(self.plan.locations.get(node), ArenaRange)
                and self._is_temporary(node)
                and byte_size(node) == byte_size(root)
                and node.dtype.itemsize == root.dtype.itemsize  # else elements of one number lie elsewhere
                and self._may_take(kernel, node, root)
            ):
                return node
        return None
