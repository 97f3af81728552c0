"""Loops that do what another one does, and more: one does the work of both.

The derivative of a scan needs values of its iterations.  It asks for them by a scan over the same operands whose body
returns them besides what the first one returns (see ``ops.control_flow_derivatives``).  The larger one takes the place
of the smaller, where that stands: it reads nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from hybridflow.compiler.ir.attributes import key, node_attrs_key
from hybridflow.compiler.ir.graph import Graph, Node, graphs_in
from hybridflow.compiler.ops import Kind


def deduplicate_scans(graph: Graph) -> Graph:
    larger = _larger(graph)
    if not larger:
        return graph
    new: dict[Node, Node] = {}
    placed: dict[Node, Node] = {}  # the loops that take another one's place, and what they have become
    nodes: list[Node] = []
    for old in graph.nodes:
        wanted = larger.get(old, old)
        node = placed.get(wanted)
        if node is None:
            node = wanted
            if any(n in new for n in node.inputs):
                node = Node(node.op, [new.get(n, n) for n in node.inputs], node.attrs, node.type, node.where)
            placed[wanted] = node
            nodes.append(node)
        if node is not old:
            new[old] = node
    return graph.rebuild(new, nodes)


def _larger(graph: Graph) -> dict[Node, Node]:
    """For each loop that another one does as well, which."""
    groups: dict[object, list[Node]] = {}
    for node in graph.nodes:
        if node.op.kind is Kind.CONTROL and graphs_in(node.attrs):
            groups.setdefault((node.op, node.inputs), []).append(node)
    result: dict[Node, Node] = {}
    for group in groups.values():
        for node in group:
            for other in group:
                if _extends(node, other):
                    result[node] = other
    for node, other in result.items():
        while other in result:
            other = result[other]
        result[node] = other
    return result


def _extends(a: Node, b: Node) -> bool:
    """Whether ``b``, of the same op and operands, has the results of ``a``, and more behind them."""
    if a.attrs.keys() != b.attrs.keys() or len(a.type.parts) >= len(b.type.parts):
        return False
    return _same(a.attrs, b.attrs) and b.type.parts[: len(a.type.parts)] == a.type.parts


def _same(a: Mapping[str, object], b: Mapping[str, object]) -> bool:
    """Whether attributes are equal, but for graphs that do more."""
    for name, value in a.items():
        other = b[name]
        if isinstance(value, Graph):
            if not isinstance(other, Graph) or not _within(value, other):
                return False
        elif key(value) != key(other):
            return False
    return True


def _within(a: Graph, b: Graph) -> bool:
    """Whether ``b`` computes all that ``a`` does, and returns that first."""
    if [n.type for n in a.inputs] != [n.type for n in b.inputs] or len(a.outputs) > len(b.outputs):
        return False
    there: dict[object, list[Node]] = {}
    for node in b.nodes:
        there.setdefault((node.op, node.inputs), []).append(node)
    new: dict[Node, Node] = dict(zip(a.inputs, b.inputs))
    for node in a.nodes:
        inputs = tuple([new[n] for n in node.inputs])
        sibling = next((other for other in there.get((node.op, inputs), ()) if _fits(node, other)), None)
        if sibling is None:
            return False
        new[node] = sibling
    return all(new[one] is other for one, other in zip(a.outputs, b.outputs))


def _fits(a: Node, b: Node) -> bool:
    if node_attrs_key(a) == node_attrs_key(b):
        return True
    return a.op.kind is Kind.CONTROL and a.attrs.keys() == b.attrs.keys() and _extends(a, b)
