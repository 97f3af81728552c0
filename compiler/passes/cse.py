"""Common subexpressions: equal ops on equal inputs with equal attributes are one value.

Every op is a function of its inputs, random bits too, so the first of two equal nodes serves for both; of two that
would raise, the first does.
"""

from __future__ import annotations

from collections.abc import Hashable

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.attributes import attrs_key
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.passes.rewrite import rewrite


def cse(graph: Graph) -> Graph:
    first: dict[Hashable, Node] = {}

    def known(b: GraphBuilder, node: Node) -> Node | None:
        key = (node.op.name, _operands(node), attrs_key(node.attrs))
        found = first.setdefault(key, node)
        return None if found is node else found

    return rewrite(graph, known)


def _operands(node: Node) -> tuple[Node, ...]:
    """The inputs, in one order for both orders of a commutative op.

    Floats keep theirs: of two NaNs the result is the first, and its bits are part of the result.
    """
    if node.op.facts.get("commutative") and not dtypes.is_float(node.inputs[0].dtype):
        return tuple(sorted(node.inputs, key=id))
    return node.inputs
