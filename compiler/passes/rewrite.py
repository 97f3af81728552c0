"""The loop of every local rewrite: one walk in program order that gives each node a chance to be replaced."""

from __future__ import annotations

from collections.abc import Callable

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops import TABLE

Rule = Callable[[GraphBuilder, Node], "Node | None"]
"""``rule(b, node)``: the value that takes the place of ``node``, made with ``b`` or found among what the node reads;
None to keep it.  A rule that returns None has built nothing."""


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """``graph`` with each node replaced as ``rule`` says; the same graph if it never says anything.

    The rule sees nodes whose inputs have been replaced already.  New nodes carry the user's line of the node that
    they replace.  What a replacement leaves without readers stays for dead-code elimination.
    """
    builder = GraphBuilder(TABLE)
    new: dict[Node, Node] = {}
    for old in graph.nodes:
        node = old
        if any(n in new for n in old.inputs):
            node = Node(old.op, [new.get(n, n) for n in old.inputs], old.attrs, old.type, old.where)
            new[old] = node
        builder.location = old.where
        replacement = rule(builder, node)
        if replacement is None:
            builder.nodes.append(node)
        else:
            new[old] = replacement
    return graph.rebuild(new, builder.nodes) if new else graph
