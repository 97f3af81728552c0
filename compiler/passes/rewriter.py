"""The loop of every local rewrite: one walk in program order that gives each node a chance to be replaced."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.attributes import node_attrs_key
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops import TABLE

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


Rule = Callable[[GraphBuilder, Node], "Node | None"]
"""``rule(b, node)``: the value that takes the place of ``node``, made with ``b`` or found among what the node reads;
None to keep it.  A rule that returns None has built nothing, and always returns None for this node: it looks at nothing
but the node and what that is made of, none of which changes."""


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """``graph`` with each node replaced as ``rule`` says; the same graph if it never says anything.

    The rule sees nodes whose inputs have been replaced already.  New nodes carry the user's line of the node that
    they replace.  What a replacement leaves without readers stays for dead-code elimination.

    A node that a replacement makes equal to an earlier one becomes that one at once.  So what two long chains have in
    common is found in a single walk, not one link of them in each.
    """
    builder = _Interning()
    new: dict[Node, Node] = {}
    for old in graph.nodes:
        node = old
        if not new.keys().isdisjoint(old.inputs):
            node = Node(old.op, [new.get(n, n) for n in old.inputs], old.attrs, old.type, old.where)
            new[old] = node
            earlier = builder.existing(node)
            if earlier is not None:
                new[old] = earlier
                continue
        if rule in node.kept_by:
            builder.nodes.append(node)
            continue
        builder.location = old.where
        replacement = rule(builder, node)
        if replacement is None:
            node.note_kept_by(rule)
            builder.nodes.append(node)
        else:
            new[old] = replacement
    return graph.rebuild(new, builder.nodes) if new else graph


def value_key(node: Node) -> Hashable:
    """Equal keys mean equal values: the same op on the same inputs with the same attributes."""
    return _key(node.op, node.inputs, node_attrs_key(node))


class _Interning(GraphBuilder):
    """Hands out a node that is there already in place of an equal new one."""

    def __init__(self) -> None:
        super().__init__(TABLE)
        self._known: dict[Hashable, Node] = {}
        self._entered = 0  # nodes that have been entered there: none before something is looked for

    def existing(self, node: Node) -> Node | None:
        """The node that is there and equals this one."""
        for earlier in self.nodes[self._entered :]:
            self._known.setdefault(value_key(earlier), earlier)
        self._entered = len(self.nodes)
        return self._known.get(value_key(node))

    def emit(self, op: OpDef, *inputs: Node, **attrs: Any) -> Node:
        node = super().emit(op, *inputs, **attrs)
        self.nodes.pop()
        result = self.existing(node)
        if result is not None:
            return result
        self.nodes.append(node)
        return node


def _key(op: OpDef, inputs: tuple[Node, ...], attrs: Hashable) -> Hashable:
    """Both orders of a commutative op's inputs are one.

    Floats keep theirs: of two NaNs the result is the first, and its bits are part of the result.
    """
    if op.facts.get("commutative") and not dtypes.is_float(inputs[0].dtype):
        inputs = tuple(sorted(inputs, key=id))
    return op.name, inputs, attrs
