"""Few elements that are looked up in an array that is computed for nothing else: they alone are computed.

``take_along_axis(x - log(sum(exp(x))), labels)``, the loss of a classifier, needs one element of each row.  What is
read at random must lie in memory, so the array of all differences would be written, and one in some thousands of it
read.  Looked up instead are the elements of ``x``, with which the ops in between then calculate: the same numbers,
op by op.  What raises stays where it is, and at least one array is looked up in as before, to check the indices.
"""

from __future__ import annotations

from collections.abc import Mapping

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Effect, Graph, Node
from hybridflow.compiler.ir.types import Shape, product
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.passes.view_composition import BROADCAST

_GATHERS = (TABLE["take"], TABLE["take_along_axis"])
FEWER = 4  # times as many elements as are looked up: an element by itself costs more than one of many
MAX_OPS = 16  # between what is looked up and where that is done
MAX_GATHERS = 2  # in the place of one


def sink_gathers(graph: Graph) -> Graph:
    gathers = [node for node in graph.nodes if node.op in _GATHERS]
    if not gathers:
        return graph
    users, results = graph.users(), set(graph.results)
    chosen = {
        node: way
        for node in gathers
        if node.inputs[0] not in results
        and all(user.op in _GATHERS and user.inputs[0] is node.inputs[0] for user in users[node.inputs[0]])
        and (way := _Way(node)).pays()
    }
    if not chosen:
        return graph
    b = GraphBuilder(TABLE)
    new: dict[Node, Node] = {}
    for old in graph.nodes:
        node = old
        if any(n in new for n in old.inputs):
            node = new[old] = Node(old.op, [new.get(n, n) for n in old.inputs], old.attrs, old.type, old.where)
        if old in chosen:
            b.location = old.where
            new[old] = chosen[old].value(b, new)
        else:
            b.nodes.append(node)
    return graph.rebuild(new, b.nodes)


class _Way:
    """From a look-up down to arrays that lie in memory, or are a few elements broadcast."""

    def __init__(self, node: Node) -> None:
        self.node, self.axis = node, node.attrs["axis"]
        source, indices = node.inputs
        self.paired = node.op.paired
        # The axes that stand where the axis was.
        self.instead: Shape = (indices.shape[self.axis],) if self.paired else indices.shape
        self.extent, self.count = source.shape[self.axis], product(self.instead)
        self.ops: dict[Node, None] = {}
        self.leaves: dict[Node, None] = {}

    def pays(self) -> bool:
        """Whether there is something to gain; finds what is to be done."""
        if not isinstance(self.extent, int) or not isinstance(self.count, int) or FEWER * self.count > self.extent:
            return False
        stack = [self.node.inputs[0]]
        while stack and len(self.ops) <= MAX_OPS:
            node = stack.pop()
            if node in self.ops or node in self.leaves or self._is_spread(node):
                continue
            if _is_plain(node):
                self.ops[node] = None
                stack += node.inputs
            else:
                self.leaves[node] = None
        return 0 < len(self.ops) <= MAX_OPS and 0 < len(self.leaves) <= MAX_GATHERS

    def _is_spread(self, node: Node) -> bool:
        """Whether the elements along the axis are one that is repeated."""
        return not node.is_parameter and node.op is BROADCAST and self.axis not in node.attrs["axes"]

    def value(self, b: GraphBuilder, new: Mapping[Node, Node]) -> Node:
        """What is looked up, of the ``new`` nodes in the place of old ones."""
        results: dict[Node, Node] = {}
        indices = new.get(self.node.inputs[1], self.node.inputs[1])

        def of(node: Node) -> Node:
            if node not in results:
                results[node] = put(node)
            return results[node]

        def put(node: Node) -> Node:
            if node in self.ops:
                return b.emit(node.op, *map(of, node.inputs), **node.attrs)
            if node in self.leaves:
                return b.emit(self.node.op, new.get(node, node), indices, axis=self.axis)
            shape = (*node.shape[: self.axis], *self.instead, *node.shape[self.axis + 1 :])
            later = len(self.instead) - 1
            axes = tuple(a + later * (a > self.axis) for a in node.attrs["axes"])
            return b.broadcast(new.get(node.inputs[0], node.inputs[0]), axes=axes, shape=shape)

        return of(self.node.inputs[0])


def _is_plain(node: Node) -> bool:
    """Whether a value is an op's that raises nothing, of arguments, of what is broadcast, or of other such ops: what a
    kernel of its own makes on the way is stored in any case, with the ops behind it."""
    if node.is_parameter or node.op.kind is not Kind.ELEMENTWISE or node.effect is not Effect.NONE:
        return False
    return all(n.is_parameter or n.op is BROADCAST or n.op.kind is Kind.ELEMENTWISE for n in node.inputs)
