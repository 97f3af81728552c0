"""Buffer assignment: where every stored value lies, in which order the kernels run, and which copies remain.

Outputs are fresh buffers and updated state is written where it lies, each by the kernel that computes it wherever that
is safe; everything else shares one arena, where a value's range is free again after its last reader.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Union

from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import factors
from hybridflow.compiler.loops.kernel import Fusion, Kernel, base, read_in_place
from hybridflow.compiler.program import Size

ALIGNMENT = 64


@dataclass(frozen=True)
class InputBuffer:
    number: int


@dataclass(frozen=True)
class OutputBuffer:
    number: int


@dataclass(frozen=True)
class ArenaRange:
    offset: Size
    size: Size


Location = Union[InputBuffer, OutputBuffer, ArenaRange]


@dataclass(frozen=True)
class Copy:
    source: Location
    target: Location
    size: Size


@dataclass(eq=False)
class Plan:
    """``kernels`` in running order; ``before`` and ``after`` are copies around them."""

    kernels: list[Kernel]
    locations: dict[Node, Location] = field(default_factory=dict)
    before: list[Copy] = field(default_factory=list)
    after: list[Copy] = field(default_factory=list)
    arena: Size = field(default_factory=lambda: Size(()))
    last_use: dict[Node, int] = field(default_factory=dict)


def byte_size(node: Node) -> Size:
    count, names = factors(node.shape)
    return Size(((count * node.dtype.itemsize, names),))


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
        self.updated = {base(node) for node in graph.updates.values()}
        self.plan = Plan([])
        self.staged = Size(())  # arena bytes taken by values that live through the whole program

    # ---- inputs and outputs

    def place_inputs_and_outputs(self) -> None:
        for node, i in self.parameter.items():
            self.plan.locations[node] = InputBuffer(i)
        direct = [i for i, node in sorted(self.graph.updates.items()) if self._update_in_place(i, base(node))]
        self.plan.kernels = self._ordered()
        self._place_outputs()
        for i, node in sorted(self.graph.updates.items()):
            if i not in direct:
                self._copy_update(i, base(node))

    def _update_in_place(self, i: int, value: Node) -> bool:
        """Let the kernel that computes ``value`` write it over state input i, after all that read the old value."""
        state = self.graph.inputs[i]
        if value is state:
            return True
        writer = self.maker.get(value)
        if writer is None or value in self.plan.locations:
            return False
        if state in writer.inputs and (state not in self.in_place[writer] or value in writer.cluster.rows):
            return False
        readers = {k for k in self.fusion.kernels if state in k.inputs and k is not writer}
        before = set(self.after[writer])
        self.after[writer] |= readers
        if any(self._waits(reader, writer) for reader in readers):
            self.after[writer] = before
            return False
        self.plan.locations[value] = InputBuffer(i)
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

    def _copy_update(self, i: int, value: Node) -> None:
        size = byte_size(value)
        source = self.plan.locations.get(value)
        overwritten = value.is_parameter and isinstance(source, InputBuffer) and source.number in self.graph.updates
        if source is None or overwritten:
            # A value without a place, or another state's old value, which must be saved first (a swap).
            staged = self._stage(size)
            if source is None:
                self.plan.locations[value] = staged
            else:
                self.plan.before.append(Copy(source, staged, size))
            source = staged
        self.plan.after.append(Copy(source, InputBuffer(i), size))

    def _stage(self, size: Size) -> ArenaRange:
        found = ArenaRange(self.staged, size)
        self.staged = add(self.staged, aligned(size))
        return found

    # ---- arena

    def place_arena(self) -> None:
        kernels, plan = self.plan.kernels, self.plan
        for k, kernel in enumerate(kernels):
            for node in kernel.inputs:
                plan.last_use[node] = k
        end = self.staged
        free: list[tuple[int, int]] = []  # (offset, size) of static ranges, relative to the staged part
        used = 0
        for k, kernel in enumerate(kernels):
            for root in kernel.roots:
                if root in plan.locations:
                    continue
                size = aligned(byte_size(root))
                if not size.is_static:
                    plan.locations[root] = ArenaRange(end, byte_size(root))
                    end = add(end, size)
                    continue
                nbytes = size.at({})
                donor = self._donor(kernel, k, root)
                if donor is not None:
                    plan.locations[root] = plan.locations[donor]
                    plan.last_use[donor] = -1  # its range now belongs to the root
                    continue
                offset = _take(free, nbytes)
                if offset is None:
                    offset, used = used, used + nbytes
                plan.locations[root] = ArenaRange(Size(((offset, ()),)), byte_size(root))
            for node in dict.fromkeys((*kernel.inputs, *kernel.roots)):
                place = plan.locations[node]
                if plan.last_use.get(node, k) == k and isinstance(place, ArenaRange) and self._is_temporary(node):
                    _give(free, place.offset.at({}), aligned(place.size).at({}))
        # Static temporaries lie first, then staged values and those of symbolic size.
        shift = Size(((used, ()),))
        for node, place in plan.locations.items():
            if isinstance(place, ArenaRange) and not self._is_temporary(node):
                plan.locations[node] = ArenaRange(add(shift, place.offset), place.size)
        plan.before = [self._shifted(copy, shift) for copy in plan.before]
        plan.after = [self._shifted(copy, shift) for copy in plan.after]
        plan.arena = add(shift, end)

    def _is_temporary(self, node: Node) -> bool:
        """Whether the value may share its range with others: of known size, and not staged for an update."""
        return byte_size(node).is_static and node not in self.updated

    def _shifted(self, copy: Copy, shift: Size) -> Copy:
        def move(place: Location) -> Location:
            return ArenaRange(add(shift, place.offset), place.size) if isinstance(place, ArenaRange) else place

        return Copy(move(copy.source), move(copy.target), copy.size)

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


def aligned(size: Size) -> Size:
    return Size(tuple((-(-factor // ALIGNMENT) * ALIGNMENT, names) for factor, names in size.terms))


def add(a: Size, b: Size) -> Size:
    total: dict[tuple[str, ...], int] = {}
    for factor, names in (*a.terms, *b.terms):
        total[names] = total.get(names, 0) + factor
    return Size(tuple((factor, names) for names, factor in sorted(total.items()) if factor))


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
