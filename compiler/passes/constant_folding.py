"""Constant folding, in bounds: values known when compiling are computed by the op's reference.

Only ops whose reference has the bits of the compiled kernel (the fact ``exact``) are folded, so that folding
changes no result.  Nothing grows: a small constant that is broadcast stays small, and a loop reads it from a register.

A choice that a constant decides is the chosen value: here, so that a chain of such choices is folded in one walk.
"""

from __future__ import annotations

import numpy as np

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import MAX_LITERAL_BYTES, Graph, Literal, Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.passes.pattern_match import literal, splat
from hybridflow.compiler.passes.rewriter import rewrite


def fold(graph: Graph) -> Graph:
    return rewrite(graph, _fold)


def _fold(b: GraphBuilder, node: Node) -> Node | None:
    if node.op.name == "where":
        decided = splat(node.inputs[0])
        if decided is not None:
            return node.inputs[1] if decided else node.inputs[2]
    if not node.inputs or not node.op.facts.get("exact"):
        return None
    if isinstance(node.type, TupleType):
        return None
    literals = [literal(n) for n in node.inputs]
    if not all(literals) or not node.type.is_static:
        return None
    types = tuple([n.type for n in node.inputs])
    if node.type.size > sum(t.size for t in types) or node.may_raise:
        return None
    if node.type.size * node.dtype.itemsize > MAX_LITERAL_BYTES:  # the same elements, but wider ones
        return None
    result = node.op.reference(*[value.array for value in literals if value is not None], **node.attrs)
    return b.constant(value=Literal.of(np.asarray(result, node.dtype).reshape(node.shape)))
