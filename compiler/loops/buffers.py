"""Buffer assignment: where every stored value lies, in which order the kernels run, and which copies remain.

Outputs and new values of state are buffers that the caller gives, each written by the kernel that computes it;
everything else shares one arena, where a value's range is free again after its last reader.

A program that fails leaves state as it was.  So a new value may be written over the old one (``Plan.in_place``) only
where every check has passed by then: the kernels that can raise run first wherever the data allow it.  Where they do
not, the caller gives fresh memory, which takes the old one's place at the end, and nothing is copied either.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Union

from hybridflow.compiler.ir.extents import Extent, aligned
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.kernel import Fusion, Kernel, base, raises, read_in_place

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


Location = Union[InputBuffer, OutputBuffer, UpdateBuffer, ArenaRange]


@dataclass(frozen=True)
class Copy:
    source: Location
    target: Location
    size: Extent


@dataclass(eq=False)
class Plan:
    """``kernels`` in running order; ``before`` and ``after`` are copies around them.  ``in_place`` are the state inputs
    whose new value may be written over the old one."""

    kernels: list[Kernel]
    locations: dict[Node, Location] = field(default_factory=dict)
    before: list[Copy] = field(default_factory=list)
    after: list[Copy] = field(default_factory=list)
    arena: Extent = 0
    in_place: set[int] = field(default_factory=set)
    last_use: dict[Node, int] = field(default_factory=dict)


def byte_size(node: Node) -> Extent:
    return product(node.shape) * node.dtype.itemsize


def room(node: Node) -> Extent:
    """The bytes that a value takes in the arena."""
    return aligned(byte_size(node), ALIGNMENT)


def plan(graph: Graph, fusion: Fusion) -> Plan:
    planner = _Planner(graph, fusion)
    planner.place_inputs_and_outputs()
    planner.place_arena()
    return planner.plan


class _Planner:
    def __init__(self, graph: Graph, fusion: Fusion) -> None:
        self.graph, self.fusion = graph, fusion
        self.maker = {root: kernel for kernel in fusion.kernels for root in kernel.roots}
        self.in_place = {kernel: read_in_place(kernel, fusion.is_leaf) for kernel in fusion.kernels}
        self.parameter = {node: i for i, node in enumerate(graph.inputs)}
        self.after: dict[Kernel, set[Kernel]] = {
            kernel: {self.maker[n] for n in kernel.inputs if n in self.maker} for kernel in fusion.kernels
        }
        self.raising = {kernel for kernel in fusion.kernels if raises(kernel)}
        self.plan = Plan([])

    # ---- inputs and outputs

    def place_inputs_and_outputs(self) -> None:
        for node, i in self.parameter.items():
            self.plan.locations[node] = InputBuffer(i)
        for i, node in sorted(self.graph.updates.items()):
            self._place_update(i, base(node))
        self.plan.kernels = self._ordered()
        self._place_outputs()

    def _place_update(self, i: int, value: Node) -> None:
        """Let the kernel that computes ``value`` write it where state input ``i`` wants it; a value that lies elsewhere
        is copied there."""
        source, target = self.plan.locations.get(value), UpdateBuffer(i)
        if source is None:
            self.plan.locations[value] = target
            if self._may_overwrite(i, value):
                self.plan.in_place.add(i)
            return
        old_value = value.is_parameter and self.parameter[value] in self.graph.updates
        # The old value of a state is copied before any kernel can overwrite it: into fresh memory, because kernels may
        # still read what lies there.  Other values are copied when all kernels are through.
        (self.plan.before if old_value else self.plan.after).append(Copy(source, target, byte_size(value)))
        if not old_value or value is self.graph.inputs[i]:
            self.plan.in_place.add(i)

    def _may_overwrite(self, i: int, value: Node) -> bool:
        """Whether the kernel that computes ``value`` may write it over state input ``i``: after all that read the old
        value, and all that raise, for which it waits from now on."""
        state, writer = self.graph.inputs[i], self.maker[value]
        if writer in self.raising:
            return False
        if state in writer.inputs and (state not in self.in_place[writer] or value in writer.cluster.rows):
            return False
        readers = {k for k in self.fusion.kernels if state in k.inputs and k is not writer}
        before = set(self.after[writer])
        self.after[writer] |= readers | self.raising
        if any(self._waits(earlier, writer) for earlier in readers | self.raising):
            self.after[writer] = before
            return False
        return True

    def _waits(self, kernel: Kernel, on: Kernel) -> bool:
        stack, seen = [kernel], {kernel}
        while stack:
            for earlier in self.after[stack.pop()]:
                if earlier is on:
                    return True
                if earlier not in seen:
                    seen.add(earlier)
                    stack.append(earlier)
        return False

    def _ordered(self) -> list[Kernel]:
        """The fusion's order, but for kernels that must wait."""
        number = {kernel: k for k, kernel in enumerate(self.fusion.kernels)}
        missing = {kernel: len(self.after[kernel]) for kernel in number}
        released_by: dict[Kernel, list[Kernel]] = {kernel: [] for kernel in number}
        for kernel, earlier in self.after.items():
            for other in earlier:
                released_by[other].append(kernel)
        ready = [k for kernel, k in number.items() if not missing[kernel]]
        found: list[Kernel] = []
        while ready:
            kernel = self.fusion.kernels[heapq.heappop(ready)]
            found.append(kernel)
            for other in released_by[kernel]:
                missing[other] -= 1
                if not missing[other]:
                    heapq.heappush(ready, number[other])
        return found

    def _place_outputs(self) -> None:
        for j, node in enumerate(self.graph.outputs):
            value, target = base(node), OutputBuffer(j)
            if value not in self.plan.locations:
                self.plan.locations[value] = target
                continue
            copy = Copy(self.plan.locations[value], target, byte_size(node))
            # An argument, or a state's old value, is copied before any kernel can overwrite it.
            (self.plan.before if value.is_parameter else self.plan.after).append(copy)

    # ---- arena

    def place_arena(self) -> None:
        kernels, plan = self.plan.kernels, self.plan
        for k, kernel in enumerate(kernels):
            for node in kernel.inputs:
                plan.last_use[node] = k
        end: Extent = 0  # of those of symbolic size
        free: list[tuple[int, int]] = []  # (offset, size) of static ranges
        used = 0
        for k, kernel in enumerate(kernels):
            for root in kernel.roots:
                if root in plan.locations:
                    continue
                nbytes = room(root)
                if not isinstance(nbytes, int):
                    plan.locations[root] = ArenaRange(end, byte_size(root))
                    end = end + nbytes
                    continue
                donor = self._donor(kernel, k, root)
                if donor is not None:
                    plan.locations[root] = plan.locations[donor]
                    plan.last_use[donor] = -1  # its range now belongs to the root
                    continue
                offset = _take(free, nbytes)
                if offset is None:
                    offset, used = used, used + nbytes
                plan.locations[root] = ArenaRange(offset, byte_size(root))
            for node in dict.fromkeys((*kernel.inputs, *kernel.roots)):
                place = plan.locations[node]
                if plan.last_use.get(node, k) == k and isinstance(place, ArenaRange):
                    start, size = place.offset, room(node)
                    if isinstance(start, int) and isinstance(size, int):
                        _give(free, start, size)
        # Static temporaries lie first, then those of symbolic size.
        for node, place in plan.locations.items():
            if isinstance(place, ArenaRange) and not self._is_temporary(node):
                plan.locations[node] = ArenaRange(place.offset + used, place.size)
        plan.arena = end + used

    def _is_temporary(self, node: Node) -> bool:
        """Whether the value may share its range with others: it is of known size."""
        return isinstance(byte_size(node), int)

    def _donor(self, kernel: Kernel, k: int, root: Node) -> Node | None:
        """An input that dies here and whose memory the root may take over, element by element."""
        if root in kernel.cluster.rows:
            return None
        for node in kernel.inputs:
            if (
                node in self.in_place[kernel]
                and self.plan.last_use.get(node) == k
                and isinstance(self.plan.locations.get(node), ArenaRange)
                and self._is_temporary(node)
                and byte_size(node) == byte_size(root)
                and node.dtype.itemsize == root.dtype.itemsize  # else elements of one number lie elsewhere
            ):
                return node
        return None


def _take(free: list[tuple[int, int]], nbytes: int) -> int | None:
    """The tightest free range that is large enough."""
    fitting = [(size, offset) for offset, size in free if size >= nbytes]
    if not fitting:
        return None
    size, offset = min(fitting)
    free.remove((offset, size))
    if size > nbytes:
        free.append((offset + nbytes, size - nbytes))
    return offset


def _give(free: list[tuple[int, int]], offset: int, nbytes: int) -> None:
    """Return a range, joining it with free neighbours."""
    if nbytes == 0:
        return
    for start, size in list(free):
        if start + size == offset:
            free.remove((start, size))
            offset, nbytes = start, nbytes + size
        elif offset + nbytes == start:
            free.remove((start, size))
            nbytes += size
    free.append((offset, nbytes))
