"""From a graph to a Program: passes, fusion, buffers, LLVM text."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from hybridflow.compiler.codegen.control.inline_control_flow import is_inline
from hybridflow.compiler.codegen.core.cost_model import instructions
from hybridflow.compiler.codegen.module_builder import ModuleBuilder
from hybridflow.compiler.codegen.ordering import histogram, scatter_add
from hybridflow.compiler.codegen.products import cache_blocking, convolution_lowering
from hybridflow.compiler.ir.attributes import node_attrs_key
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.loops.alias_analysis import AliasAnalysis, AliasPairs
from hybridflow.compiler.loops.buffer_assignment import Plan, plan
from hybridflow.compiler.loops.fusion import fuse
from hybridflow.compiler.loops.kernel import Fusion, Kernel, loops_of
from hybridflow.compiler.loops.plan_verifier import check_fusion, check_plan
from hybridflow.compiler.loops.schedule import overwritten_inputs, schedule
from hybridflow.compiler.loops.schedule_choice import USUAL, Choices
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.passes import pass_manager
from hybridflow.compiler.passes.pass_pipeline import SIMPLIFY_PIPELINE, check_skipped, steps_for
from hybridflow.compiler.program import Program
from hybridflow.compiler.target import Target


def optimize(graph: Graph, target: Target | None = None) -> Graph:
    """The graph as fusion sees it; without what passes make of it for a target, if there is none."""
    check_skipped()
    return pass_manager.run(graph, [*SIMPLIFY_PIPELINE, *(() if target is None else steps_for(target))])


def partition(graph: Graph, target: Target) -> Fusion:
    """The kernels of an optimised graph."""
    return fuse(graph, target, instructions, read_counter(target))


def compile_graph(
    graph: Graph,
    target: Target,
    fastmath: bool = False,
    timed: bool = False,
    shared: bool = False,
    choices: Choices = USUAL,
) -> Program:
    """Compile a graph for a target.  ``fastmath`` lets floats be reassociated and contracted.  A program that is
    ``timed`` has a host run one phase of a kernel after another (see ``Program.tasks``), as one thread does or, where
    it is ``shared``, as several do; its results are the same.  They are those of any ``choices`` of schedules, too.

    The same graph, target and flags give the same text: the disk cache is keyed by it.
    """
    planning = Planning(target)
    builder = ModuleBuilder(
        optimize(graph, target), planning.planned, planning.aliases, target, fastmath, choices=choices
    )
    return builder.build(timed, shared)


class Planning:
    """The plans of a program's graphs, each made once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._plans: dict[tuple[Graph, AliasPairs], tuple[Fusion, Plan]] = {}
        self.aliases = AliasAnalysis(self._overwritten)

    def planned(self, graph: Graph, wanted: AliasPairs = ()) -> tuple[Fusion, Plan]:
        """The kernels and the buffers of an optimised graph, or of one that is part of it."""
        key = graph, wanted
        if key not in self._plans:
            self._plans[key] = _planned(self._target, graph, wanted, self.aliases)
        return self._plans[key]

    def _overwritten(self, graph: Graph, wanted: AliasPairs) -> AliasPairs:
        if is_inline(graph):
            return ()
        _, planned = self.planned(graph, wanted)
        return tuple([(i, j) for i, j in wanted if planned.overwrites.get(j) == i])


def _planned(target: Target, graph: Graph, wanted: AliasPairs, aliases: AliasAnalysis) -> tuple[Fusion, Plan]:
    fusion = partition(graph, target)
    check_fusion(graph, fusion)

    def in_rows(kernel: Kernel) -> set[Node]:
        space = loops_of(kernel, fusion.is_leaf)
        how = schedule(kernel, space, target, fusion.is_leaf, instructions)
        return overwritten_inputs(how, kernel, space, fusion.is_leaf)

    on_gpu = target.kind == "cuda"
    # All threads of a GPU run a loop together: its carries have two memories.
    buffers = plan(graph, fusion, in_rows) if on_gpu else plan(graph, fusion, None, wanted, aliases)
    check_plan(graph, fusion, buffers)
    return fusion, buffers


def read_counts(target: Target, node: Node) -> Sequence[int | None]:
    """For each input of ``node`` how often its kernel comes to each element, None where it may not come to any."""
    if node.op.kind is Kind.CONTRACT:
        return cache_blocking.times_read(target, node)
    if node.op.kind is Kind.CONVOLVE:
        return convolution_lowering.times_read(node)
    if node.op.kind is Kind.SCATTER and histogram.uses_histogram(target, node):
        return 1, 1, 1
    if node.op.kind is Kind.SCATTER:
        return scatter_add.times_read(target, node)
    return (2 if node.op.kind is Kind.SCAN else 1,) * len(node.inputs)  # a long line is summed up first


def read_counter(target: Target) -> Callable[[Node], Sequence[int | None]]:
    """``read_counts`` for a target.  Equal products, of which equal layers have many, are looked at once."""
    products: dict[Hashable, Sequence[int | None]] = {}

    def counts(node: Node) -> Sequence[int | None]:
        if node.op.kind is not Kind.CONTRACT:
            return read_counts(target, node)
        key = node.op.name, node.type, *[n.type for n in node.inputs], node_attrs_key(node)
        result = products.get(key)
        if result is None:
            result = products[key] = read_counts(target, node)
        return result

    return counts
