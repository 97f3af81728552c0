"""Alias analysis of control flow: which results may be written over which operands.

A carry of a loop lies in one memory for all iterations where its new value may be written over the old one: each kernel
that reads the old one runs first, and the one that writes reads it element by element, or writes a few elements and
leaves the others (see ``buffers``).  Otherwise two memories take turns.  A result of a branch may take the memory of an
operand where that is so in each branch, or the branch hands it on.

Who runs such a node may then give it one address for both.  An operand that it is given twice is not written over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.loops.kernel import base
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.lowering import Scan, Switch, While

AliasPairs = tuple[tuple[int, int], ...]
"""Numbers of inputs, each with that of the output that may, or is wanted to, take its memory."""

MayOverwrite = Callable[[Graph, AliasPairs], AliasPairs]
"""Those of the pairs of a graph that may be so."""


class AliasAnalysis:
    """What ``overwritten`` says of graphs, for the nodes that run them."""

    def __init__(self, overwritten: MayOverwrite) -> None:
        self._overwritten = overwritten
        self._wanted: dict[Node, AliasPairs] = {}
        self._found: dict[Node, AliasPairs] = {}

    def wanted_pairs(self, node: Node) -> AliasPairs:
        """The pairs that are wanted of the graphs that this node runs in turns, or one of which it runs."""
        if node not in self._wanted:
            self._wanted[node] = self._find_wanted(_lowering(node))
        return self._wanted[node]

    def of(self, node: Node) -> AliasPairs:
        """The operands of a node, each with the result that may take its memory."""
        if node not in self._found:
            self._found[node] = self._find(node, _lowering(node))
        return self._found[node]

    def _find(self, node: Node, how: Scan | Switch | While) -> AliasPairs:
        first = isinstance(how, Switch) and not how.fixed  # which chooses
        bases = [base(n) for n in node.inputs]
        times = Counter(bases)
        wanted = self.wanted_pairs(node)
        pairs = [pair for pair in wanted if times[bases[pair[0] + first]] == 1]
        for graph in _graphs(how) if pairs else ():
            overwritten = self._overwritten(graph, wanted)
            pairs = [pair for pair in pairs if pair in overwritten]
        return tuple([(i + first, k) for i, k in pairs])

    def _find_wanted(self, how: Scan | Switch | While) -> AliasPairs:
        if isinstance(how, (While, Scan)):
            carried = how.body.outputs[: how.carries if isinstance(how, Scan) else None]
            return tuple([(k, k) for k, n in enumerate(carried) if _is_array(n)])
        if not isinstance(how, Switch):
            return ()
        pairs, taken = [], set[int]()
        for k, output in enumerate(how.branches[0].outputs):
            if not _is_array(output):
                continue
            ways = [list(self._sources(branch, branch.outputs[k])) for branch in how.branches]
            for i in ways[0]:
                if i not in taken and all(i in way for way in ways) and how.branches[0].inputs[i].type == output.type:
                    pairs.append((i, k))
                    taken.add(i)
                    break
        return tuple(pairs)

    def _sources(self, graph: Graph, output: Node) -> Iterator[int]:
        """The inputs of a graph of which an output may be a new version."""
        stack, seen = [output], set[Node]()
        while stack:
            node = base(stack.pop())
            if node in seen or is_token(node.type):
                continue
            seen.add(node)
            if node.is_parameter:
                yield graph.inputs.index(node)
            elif node.op.kind is Kind.PROJECT:
                whole = node.inputs[0]
                stack += [whole.inputs[i] for i, k in self.of(whole) if k == node.attrs["index"]]
            elif node.op.kind is Kind.SCATTER:
                stack.append(node.inputs[0])
            elif node.op.kind is Kind.ELEMENTWISE:
                stack += [n for n in node.inputs if n.type == node.type]


def _graphs(how: Scan | Switch | While) -> Sequence[Graph]:
    if isinstance(how, (While, Scan)):
        return [how.body]
    return how.branches if isinstance(how, Switch) else ()


def _is_array(node: Node) -> bool:
    """Whether a value is more than a single element, which no loop would keep two memories for."""
    return not is_token(node.type) and not (node.type.is_static and node.type.size <= 1)


def _lowering(node: Node) -> Scan | Switch | While:
    assert node.op.lower is not None
    return node.op.lower(tuple([n.type for n in node.inputs]), node.attrs)
