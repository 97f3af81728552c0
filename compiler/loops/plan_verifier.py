"""What must hold of every partition into kernels and of every plan, checked on each compilation.

Where a kernel is missing or comes too early, memory that nobody wrote is read or returned, without a sign of it.  The
checks cost a walk over the kernels' operands, which is little beside writing their code, so they are never left out.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter

from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.loops.buffer_assignment import (
    ArenaRange,
    BufferLocation,
    InputBuffer,
    OutputBuffer,
    Plan,
    UpdateBuffer,
)
from hybridflow.compiler.loops.interrupt_checks import may_end
from hybridflow.compiler.loops.kernel import Fusion, Kernel, base
from hybridflow.errors import CompileError


def check_fusion(graph: Graph, fusion: Fusion) -> None:
    """Raise CompileError unless the kernels, run in their order, compute every result of the graph from its inputs."""
    written = _run_through(graph, fusion.kernels, "fusion")
    for node in graph.results:
        if base(node) not in written:
            raise _fault("fusion", graph, f"no kernel computes the result {base(node)!r}", base(node))


def check_plan(graph: Graph, fusion: Fusion, plan: Plan) -> None:
    """Raise CompileError unless the plan runs every kernel, each after those that it needs; gives a place to all that
    they read and write, and fills every output and every updated state."""
    if len(plan.kernels) != len(fusion.kernels) or set(plan.kernels) != set(fusion.kernels):
        lost = [k for k in fusion.kernels if k not in plan.kernels]
        raise _fault("plan", graph, f"kernels wait for each other, so that these never run: {_names(lost)}")
    _run_through(graph, plan.kernels, "plan")
    for kernel in plan.kernels:
        for node in (*kernel.inputs, *kernel.roots):
            if node not in plan.locations:
                raise _fault("plan", graph, f"{node!r} has no place in memory", node)
    _check_waves(graph, plan)
    _check_in_place(graph, plan)
    filled: set[BufferLocation] = {copy.target for copy in (*plan.before, *plan.after)}
    filled.update(plan.locations[root] for kernel in plan.kernels for root in kernel.roots)
    for j, node in enumerate(graph.outputs):
        if OutputBuffer(j) not in filled:
            raise _fault("plan", graph, f"nothing is written to output {j}, {base(node)!r}", base(node))
    states = {place.number for place in filled if not isinstance(place, (OutputBuffer, ArenaRange))}
    for i, node in graph.updates.items():
        if i not in states and base(node) is not graph.inputs[i]:
            raise _fault("plan", graph, f"nothing is written to state input {i}, {base(node)!r}", base(node))


def _check_waves(graph: Graph, plan: Plan) -> None:
    """Kernels of one wave write where no other of them reads or writes."""
    if len(plan.waves) != len(plan.kernels) or plan.waves != sorted(plan.waves):
        raise _fault("plan", graph, "waves are not in the order of their kernels")
    for _, group in itertools.groupby(zip(plan.waves, plan.kernels), key=itemgetter(0)):
        kernels = [kernel for _, kernel in group]
        if len(kernels) == 1:
            continue
        touched = [(_span(plan, n), k, n in k.roots, n) for k in kernels for n in (*k.inputs, *k.roots)]
        touched = [item for item in touched if item[0][1] < item[0][2]]  # the others hold no bytes
        # By where they begin: one that overlaps another's begins before the end of what came before.
        touched.sort(key=lambda item: (item[0][0], item[0][1]))
        open_: list[tuple[tuple[str, int, int], Kernel, bool, Node]] = []
        for span, kernel, writes, node in touched:
            open_ = [other for other in open_ if other[0][0] == span[0] and other[0][2] > span[1]]
            for _, other, other_writes, _ in open_:
                if other is not kernel and (writes or other_writes):
                    raise _fault(
                        "plan", graph, f"{_names([kernel, other])} share a wave and the memory of {node!r}", node
                    )
            open_.append((span, kernel, writes, node))


def _span(plan: Plan, node: Node) -> tuple[str, int, int]:
    """The memory of a value: which one, its first byte and its end.  Ranges at places that are not known when compiling
    are memories of their own, which nothing else uses."""
    place = plan.locations[node]
    if isinstance(place, ArenaRange) and isinstance(place.offset, int) and isinstance(place.size, int):
        return "arena", place.offset, place.offset + place.size
    if isinstance(place, UpdateBuffer) and place.number in plan.in_place:
        place = InputBuffer(place.number)  # over which it may be written
    if isinstance(place, OutputBuffer) and place.number in plan.overwrites:
        place = InputBuffer(plan.overwrites[place.number])
    return repr(place), 0, 1


def _check_in_place(graph: Graph, plan: Plan) -> None:
    """Raise CompileError unless a new value that may be written over the old one is so after all that read that, and
    after every check."""
    readers: dict[Node, set[Kernel]] = defaultdict(set)
    checking: set[Kernel] = set()
    behind = zip(reversed(plan.waves), reversed(plan.kernels))
    for _, group in itertools.groupby(behind, key=itemgetter(0)):
        kernels = [kernel for _, kernel in group]
        for kernel in kernels:
            for node in kernel.inputs:
                readers[node].add(kernel)
        checking.update(kernel for kernel in kernels if may_end(kernel))
        for writer, root in ((kernel, root) for kernel in kernels for root in kernel.roots):
            place = plan.locations[root]
            if isinstance(place, UpdateBuffer) and place.number in plan.in_place:
                state = graph.inputs[place.number]
                late = (readers[state] | checking) - {writer}
            elif isinstance(place, OutputBuffer) and place.number in plan.overwrites:
                state = graph.inputs[plan.overwrites[place.number]]
                late = readers[state] - {writer}
            else:
                continue
            if late:
                raise _fault("plan", graph, f"{_names(late)} run after {state!r} is overwritten", root)


def _run_through(graph: Graph, kernels: Sequence[Kernel], stage: str) -> set[Node]:
    """The values that are in memory after the kernels have run in this order."""
    written = set(graph.inputs)
    for kernel in kernels:
        for node in kernel.inputs:
            if node not in written:
                raise _fault(stage, graph, f"{_names([kernel])} reads {node!r} before a kernel has computed it", node)
        for root in kernel.roots:
            if root in written:
                raise _fault(stage, graph, f"{root!r} is computed by two kernels", root)
            written.add(root)
    return written


def _names(kernels: Iterable[Kernel]) -> str:
    return ", ".join("_".join(dict.fromkeys(node.op.name for node in kernel.nodes)) for kernel in kernels)


def _fault(stage: str, graph: Graph, what: str, node: Node | None = None) -> CompileError:
    where = (node.where if node is not None else None) or ""
    return CompileError(stage, f"in {graph.name!r} {what}. This is a defect of hybridflow; please report it.", where)
