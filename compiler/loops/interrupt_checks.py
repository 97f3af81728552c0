"""Which loops look, every so often, whether the user has interrupted the program, and what their iterations cost.

A loop whose iterations nobody can count may never end, so it looks; so does one whose iterations, taken together, are
long. Looking costs some 25 ns, so a loop does it when its iterations have cost ``BUDGET`` since the last time: elements
that are computed, each a nanosecond or so.  What an iteration costs is estimated too low rather than too high: behind
one that costs more than the budget a loop looks in any case."""

from __future__ import annotations

from typing import Any

from hybridflow.compiler.ir.extents import LEAST, Extent, replaced
from hybridflow.compiler.ir.graph import Graph, Node, graphs_in
from hybridflow.compiler.ir.results import is_token, parts_of
from hybridflow.compiler.ir.types import product
from hybridflow.compiler.loops.kernel import DEDICATED_KERNEL, Kernel, raises
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.lowering import DynamicExtent, Scan, While

BUDGET = 1 << 15  # elements between two looks
SHORT = 1 << 22  # elements that a loop of known length computes in some milliseconds: it need not look

_VISITS_INPUTS = DEDICATED_KERNEL - {Kind.CONTROL} | {Kind.REDUCE}


def polls_interrupts(node: Node) -> bool:
    """Whether a loop that the node is, or one inside of it, looks for interrupts."""
    if node.op.kind is not Kind.CONTROL:
        return False
    how = _lowering(node)
    if isinstance(how, While) or (isinstance(how, Scan) and is_long(how)):
        return True
    return any(map(any_polls_interrupts, graphs_in(node.attrs)))


def may_end(kernel: Kernel) -> bool:
    """Whether a program may end in a kernel: by a check that fails, or since it is interrupted there."""
    return raises(kernel) or any(map(polls_interrupts, kernel.nodes))


def any_polls_interrupts(graph: Graph) -> bool:
    """Whether a loop in a graph looks for interrupts."""
    return any(map(polls_interrupts, graph.nodes))


def is_long(walk: Scan) -> bool:
    """Whether a loop over slices may take long."""
    whole = walk.length * cost(walk.body)
    return not isinstance(whole, int) or whole > SHORT


def cost(*graphs: Graph, inline: bool = False) -> Extent:
    """About how many elements graphs compute.  Loops inside whose iterations are not known are looked behind each time,
    unless they are written ``inline``, where their own iterations count."""
    total: Extent = 1
    for graph in graphs:
        for node in graph.nodes:
            total = total + _cost(node, inline)
    return total


def _cost(node: Node, inline: bool) -> Extent:
    if node.op.kind is Kind.CONTROL:
        how = _lowering(node)
        if isinstance(how, Scan) and not is_long(how):
            return how.length * cost(how.body, inline=inline)
        if isinstance(how, (While, Scan)):
            return 0 if inline else BUDGET
        if isinstance(how, DynamicExtent):  # whose symbol nobody outside knows: the least that it is
            return replaced(cost(how.body, inline=inline), how.symbol, LEAST)
        return cost(*graphs_in(node.attrs), inline=inline)
    if node.op.kind is Kind.PROJECT or node.op.kind is Kind.VIEW:
        return 0
    read = node.inputs if node.op.kind in _VISITS_INPUTS else ()
    total: Extent = 0
    for type in (*parts_of(node.type), *(n.type for n in read)):
        total = total + (0 if is_token(type) else product(type.shape))
    return total


def _lowering(node: Node) -> Any:
    assert node.op.lower is not None
    return node.op.lower(tuple([n.type for n in node.inputs]), node.attrs)
