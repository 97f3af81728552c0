"""Control flow made smaller: branches that are known, carries that are no carries, work that each iteration repeats.

    cond     a predicate that is known leaves its branch; results that nobody reads, or that are one operand in every
             branch, and operands that no branch reads go
    while    carries that nothing needs go; those that no iteration changes, and results of a body computed of such
    scan     alone, are computed before the loop; few elements that an iteration writes are scattered (``few_written``)

What may raise or has an effect stays where it is, and stays in its order.  What leaves a loop is pure, so that nobody
sees whether it was computed: a loop without iterations costs at most what one iteration would.  But a ``while`` does
not leave another loop, because it may have no end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.ir.graph import Effect, Graph, Node, graphs_in, parameter
from hybridflow.compiler.ir.results import TupleType, is_token
from hybridflow.compiler.ir.types import same_size
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.control_flow import selected_branch
from hybridflow.compiler.ops.lowering import While
from hybridflow.compiler.passes.pattern_match import splat
from hybridflow.compiler.passes.select_to_scatter import selects_to_scatters

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


_IN_LOOPS = (Kind.ELEMENTWISE, Kind.VIEW, Kind.CREATE, Kind.SEGMENT)  # an element takes no loop to compute

SMALL = 4096  # bytes that are kept for a loop's iterations without asking what it takes to compute them


def control(graph: Graph) -> Graph:
    if all(node.op.kind is not Kind.CONTROL for node in graph.nodes):
        return graph
    return _Pass(graph).run()


class _Pass:
    """``new`` has what stands for each node that is replaced, ``results`` the results of each node with several."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.new: dict[Node, Node] = {}
        self.results: dict[Node, Sequence[Node | None]] = {}
        self.wanted: dict[Node, set[int]] = {}
        for node in graph.nodes:
            if node.op.kind is Kind.PROJECT:
                self.wanted.setdefault(node.inputs[0], set()).add(node.attrs["index"])

    def run(self) -> Graph:
        for old in self.graph.nodes:
            if old.op.kind is Kind.PROJECT and old.inputs[0] in self.results:
                value = self.results[old.inputs[0]][old.attrs["index"]]
                assert value is not None
                self.new[old] = value
                continue
            node = self.mapped(old, self.new)
            rule = _RULES.get(old.op.name)
            results = rule(self, node, frozenset(self.wanted.get(old, ()))) if rule is not None else None
            if results is not None:
                self.results[old] = results
                continue
            if node is not old:
                self.new[old] = node
            self.nodes.append(node)
        return self.graph.rebuild(self.new, self.nodes) if self.new or self.results else self.graph

    @staticmethod
    def mapped(node: Node, new: Mapping[Node, Node]) -> Node:
        if not any(n in new for n in node.inputs):
            return node
        return Node(node.op, [new.get(n, n) for n in node.inputs], node.attrs, node.type, node.where)

    def copied(self, node: Node, new: Mapping[Node, Node]) -> Node:
        """A node of another graph as one of this one: no node stands in a graph twice."""
        copy = Node(node.op, [new[n] for n in node.inputs], node.attrs, node.type, node.where)
        self.nodes.append(copy)
        return copy

    def add(self, op: OpDef, inputs: Sequence[Node], attrs: Mapping[str, Any], where: str | None) -> Node:
        node = Node(op, inputs, attrs, op.result(tuple([n.type for n in inputs]), attrs), where)
        self.nodes.append(node)
        return node

    def project(self, node: Node, kept: Collection[int], count: int) -> list[Node | None]:
        """The results of a node that has those of ``count`` that are ``kept``, in their order."""
        result: list[Node | None] = [None] * count
        for k, number in enumerate(sorted(kept)):
            result[number] = self.add(TABLE["project"], [node], {"index": k}, node.where)
        return result

    def inlined(self, graph: Graph, values: Sequence[Node]) -> list[Node | None]:
        """The outputs of a graph whose nodes become those of this one."""
        new = dict(zip(graph.inputs, values))
        for node in graph.nodes:
            new[node] = self.copied(node, new)
        return [new[node] for node in graph.outputs]


Results = Sequence["Node | None"]
"""What stands for the results of a node; None where nobody reads one."""


# ---- cond


def _cond(to: _Pass, node: Node, wanted: Collection[int]) -> Results | None:
    which, *operands = node.inputs
    branches = node.attrs["branches"]
    known = splat(which)
    if known is not None or len(branches) == 1:
        return to.inlined(branches[0 if known is None else selected_branch(known, len(branches))], operands)
    branches = tuple([_without_duplicate_operands(branch, operands) for branch in branches])
    same = {k: operands[i] for k, i in _handed_on(branches).items()}
    kept = [k for k, n in enumerate(node.type.parts) if k not in same and (k in wanted or is_token(n))]
    branches = [_with_outputs(branch, kept) for branch in branches]
    read = [i for i in range(len(operands)) if any(_reads(branch, i) for branch in branches)]
    if len(kept) == len(node.type.parts) and len(read) == len(operands):
        return None  # what is given twice is read once, so that one of its inputs is not read
    branches = tuple([replace(branch, inputs=tuple([branch.inputs[i] for i in read])) for branch in branches])
    whole = to.add(node.op, [which, *(operands[i] for i in read)], {"branches": branches}, node.where)
    results = to.project(whole, kept, len(node.type.parts))
    return [same.get(k, result) for k, result in enumerate(results)]


def _without_duplicate_operands(graph: Graph, values: Sequence[Node]) -> Graph:
    """A branch that reads what it is given twice by one of its inputs alone."""
    first: dict[Node, Node] = {}
    new = {}
    for node, value in zip(graph.inputs, values):
        one = first.setdefault(value, node)
        if one is not node and _reads(graph, graph.inputs.index(node)):
            new[node] = one
    if not new:
        return graph
    nodes = []
    for old in graph.nodes:
        node = _Pass.mapped(old, new)
        if node is not old:
            new[old] = node
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes), outputs=tuple([new.get(n, n) for n in graph.outputs]))


def _handed_on(branches: Sequence[Graph]) -> dict[int, int]:
    """The results that are the same input in each branch, and which."""
    result = {}
    for k, outputs in enumerate(zip(*(branch.outputs for branch in branches))):
        inputs = {branch.inputs.index(n) if n.is_parameter else -1 for branch, n in zip(branches, outputs)}
        if len(inputs) == 1 and -1 not in inputs:
            result[k] = inputs.pop()
    return result


def _with_outputs(graph: Graph, kept: Collection[int]) -> Graph:
    """The graph with some of its outputs, and the nodes that they, or effects, need."""
    outputs = [graph.outputs[k] for k in sorted(kept)]
    live = _live(graph, outputs)
    return replace(graph, nodes=tuple([n for n in graph.nodes if n in live]), outputs=tuple(outputs))


def _live(graph: Graph, wanted: Sequence[Node]) -> set[Node]:
    """What these values and all effects need."""
    live = set(wanted)
    for node in reversed(graph.nodes):
        if node in live or node.effect.is_observable:
            live.add(node)
            live.update(node.inputs)
    return live


def _reads(graph: Graph, i: int) -> bool:
    node = graph.inputs[i]
    return node in graph.outputs or any(node in other.inputs for other in graph.nodes)


# ---- loops


@dataclass(frozen=True)
class _Loop:
    """A ``while`` (with ``cond``) or a ``scan``: what it starts with, the arrays that it walks over, and what is the
    same in each iteration; ``carries`` and ``made`` are the numbers that its results have in the node as it was."""

    node: Node
    cond: Graph | None
    body: Graph
    start: tuple[Node, ...]
    stacked: tuple[Node, ...]
    rest: tuple[Node, ...]
    carries: tuple[int, ...]
    results: tuple[int, ...] = ()

    @property
    def fixed(self) -> tuple[Node, ...]:
        """The body's inputs that are the same in each iteration."""
        return self.body.inputs[len(self.start) + len(self.stacked) :]

    def queried(self, inputs: Sequence[Node | None]) -> list[Node | None]:
        """Of what the body is given, one for each of its inputs, what the condition is given."""
        return [x for x, n in zip(inputs, self.body.inputs) if not is_token(n.type)]


def _while(to: _Pass, node: Node, wanted: Collection[int]) -> Results | None:
    cond, body = node.attrs["cond"], node.attrs["body"]
    count = len(body.outputs)
    operands = node.inputs
    return _loop(to, _Loop(node, cond, body, operands[:count], (), operands[count:], tuple(range(count))), wanted)


def _scan(to: _Pass, node: Node, wanted: Collection[int]) -> Results | None:
    body, count, stacked = (node.attrs[name] for name in ("body", "carries", "stacked"))
    operands, end = node.inputs, count + stacked
    numbers = tuple(range(len(body.outputs)))
    loop = _Loop(
        node, None, body, operands[:count], operands[count:end], operands[end:], numbers[:count], numbers[count:]
    )
    return _loop(to, loop, wanted)


def _loop(to: _Pass, loop: _Loop, wanted: Collection[int]) -> Results | None:
    body = selects_to_scatters(loop.body, len(loop.start))  # before what is the same in each iteration leaves the loop
    simplified, unchanged = _without_unchanged(loop if body is loop.body else replace(loop, body=body))
    simplified = _without_unread(simplified, wanted)
    simplified, duplicates = _without_duplicates(simplified)
    simplified = _without_repeated(to, simplified)
    if simplified is loop:
        return None
    attrs: dict[str, Any] = {**loop.node.attrs, "body": simplified.body}
    if simplified.cond is not None:
        attrs["cond"] = simplified.cond
    else:
        attrs |= {"carries": len(simplified.start), "stacked": len(simplified.stacked)}
    whole = to.add(loop.node.op, [*simplified.start, *simplified.stacked, *simplified.rest], attrs, loop.node.where)
    results = to.project(whole, [*simplified.carries, *simplified.results], len(loop.node.type.parts))
    for number, first in duplicates.items():
        results[number] = results[first]
    return [unchanged.get(k, result) for k, result in enumerate(results)]


def _arranged(
    loop: _Loop, carries: Sequence[int], fixed: Sequence[int], stacked: Sequence[int], rest: Sequence[int],
    stacked_results: Sequence[int],
) -> _Loop:  # fmt: skip
    """The loop with some of its carries, and with others, which are ``fixed``, among what is the same in each
    iteration; with some of its other operands, and of what its iterations make."""
    count, walked = len(loop.start), len(loop.stacked)
    order = [*carries, *(count + k for k in stacked), *fixed, *(count + walked + k for k in rest)]
    body = replace(
        loop.body,
        inputs=tuple([loop.body.inputs[k] for k in order]),
        outputs=tuple([loop.body.outputs[k] for k in (*carries, *(count + k for k in stacked_results))]),
    )
    body = _with_outputs(body, range(len(body.outputs)))
    cond = loop.cond
    if cond is not None:
        inputs = iter(cond.inputs)
        places = [None if is_token(n.type) else next(inputs) for n in loop.body.inputs]
        cond = replace(cond, inputs=tuple([n for n in (places[k] for k in order) if n is not None]))
    return replace(
        loop,
        cond=cond,
        body=body,
        start=tuple([loop.start[k] for k in carries]),
        stacked=tuple([loop.stacked[k] for k in stacked]),
        rest=(*(loop.start[k] for k in fixed), *(loop.rest[k] for k in rest)),
        carries=tuple([loop.carries[k] for k in carries]),
        results=tuple([loop.results[k] for k in stacked_results]),
    )


def _without_unchanged(loop: _Loop) -> tuple[_Loop, dict[int, Node]]:
    """The loop in which carries that each iteration hands on are none, and what their results are.  A token that is
    handed on everywhere comes through: there is no effect in the loop."""
    body, count = loop.body, len(loop.start)
    fixed = [k for k in range(count) if body.outputs[k] is body.inputs[k]]
    if not fixed:
        return loop, {}
    unchanged = {loop.carries[k]: loop.start[k] for k in fixed}
    carries = [k for k in range(count) if k not in fixed]
    among_rest = [k for k in fixed if not is_token(loop.start[k].type)]
    everything = range(len(loop.stacked)), range(len(loop.rest)), range(len(loop.results))
    return _arranged(loop, carries, among_rest, *everything), unchanged


def _without_unread(loop: _Loop, wanted: Collection[int]) -> _Loop:
    """The loop without carries that neither its results need, nor its condition, nor an effect; and without operands
    that nothing reads."""
    body, count = loop.body, len(loop.start)
    kept_outputs = [k for k, number in enumerate(loop.results) if number in wanted]
    needed = [body.outputs[count + k] for k in kept_outputs]
    read_by_cond = set() if loop.cond is None else {*loop.cond.outputs, *(n for m in loop.cond.nodes for n in m.inputs)}
    asked = iter(loop.cond.inputs if loop.cond is not None else ())
    of_cond = [loop.cond is not None and not is_token(n.type) and next(asked) in read_by_cond for n in body.inputs]
    carries = {
        k for k in range(count) if loop.carries[k] in wanted or of_cond[k] or is_token(loop.start[k].type)
    }  # fmt: skip
    while True:
        live = _live(body, [*needed, *(body.outputs[k] for k in carries)])
        more = {k for k in range(count) if body.inputs[k] in live} - carries
        if not more:
            break
        carries |= more
    read = [k for k, n in enumerate(body.inputs) if n in live or of_cond[k]]
    stacked = [k - count for k in read if count <= k < count + len(loop.stacked)]
    rest = [k - count - len(loop.stacked) for k in read if k >= count + len(loop.stacked)]
    arranged = _arranged(loop, sorted(carries), [], stacked, rest, kept_outputs)
    same = len(arranged.body.inputs) == len(body.inputs) and len(arranged.body.outputs) == len(body.outputs)
    return loop if same else arranged


def _without_duplicates(loop: _Loop) -> tuple[_Loop, dict[int, int]]:
    """The loop that stacks each value once, and of which other result those are that it does not make any more."""
    count = len(loop.start)
    firsts: dict[Node, int] = {}
    duplicates = {}
    for number, node in zip(loop.results, loop.body.outputs[count:]):
        first = firsts.setdefault(node, number)
        if first != number:
            duplicates[number] = first
    if not duplicates:
        return loop, {}
    kept_outputs = [k for k, number in enumerate(loop.results) if number not in duplicates]
    return _arranged(loop, range(count), [], range(len(loop.stacked)), range(len(loop.rest)), kept_outputs), duplicates


def _without_repeated(to: _Pass, loop: _Loop) -> _Loop:
    """The loop to which the pure values that are the same in each iteration are given.  What they are computed of is
    computed before it."""
    count = len(loop.start) + len(loop.stacked)
    known = dict(zip(loop.body.inputs[count:], loop.rest))
    of_body = _Repeated(loop.body, known)
    body, moved = loop.body, of_body.moved
    cond, of_cond = loop.cond, None
    if cond is not None:
        asked = loop.queried([loop.rest[k - count] if k >= count else None for k in range(len(body.inputs))])
        of_cond = _Repeated(cond, {n: x for n, x in zip(cond.inputs, asked) if x is not None})
    if not moved and not (of_cond and of_cond.moved):
        return loop
    new = of_body.values(to)
    new_of_cond = of_cond.values(to) if of_cond is not None else []
    types = [n.type for n in (*new, *new_of_cond)]
    places = [[parameter(type, f"same{k}") for k, type in enumerate(types)] for _ in range(2)]
    body = of_body.without(body, places[0], places[0][: len(new)])
    if cond is not None and of_cond is not None:
        cond = of_cond.without(cond, places[1], places[1][len(new) :])
    return replace(loop, cond=cond, body=body, rest=(*loop.rest, *new, *new_of_cond))


class _Repeated:
    """What leaves a graph that is run in turns.  ``known`` are its inputs that are the same in each, with their values
    outside; ``moved`` are the nodes that will be given to it."""

    def __init__(self, graph: Graph, known: Mapping[Node, Node]) -> None:
        self.graph, self.known = graph, known
        self.same: set[Node] = set()
        for node in graph.nodes:
            if all(n in known or n in self.same for n in node.inputs) and _is_pure(node):
                self.same.add(node)
        here = set(graph.outputs)  # read where the iterations are
        for node in graph.nodes:
            if node not in self.same:
                here.update(node.inputs)
        self.moved: list[Node] = []
        for node in reversed(graph.nodes):
            if node in self.same and node in here:
                if self._pays(node):
                    self.moved.append(node)
                else:
                    here.update(node.inputs)
        self.moved.reverse()

    def _pays(self, node: Node) -> bool:
        """Whether reading a value from memory is less work than computing it: it is made of another value of its size,
        or it takes loops of its own to compute an element."""
        if node.op.kind is Kind.VIEW or not node.inputs or isinstance(node.type, TupleType):
            return False
        if node.op.kind not in (*_IN_LOOPS, Kind.GATHER):
            return True
        size = node.type.size * node.dtype.itemsize if node.type.is_static else None
        if size is not None and size <= SMALL:
            return True
        return any(
            same_size(leaf.shape, node.shape) and leaf.dtype.itemsize >= node.dtype.itemsize
            for leaf in self._leaves(node)
        )

    def _leaves(self, node: Node) -> set[Node]:
        """What is in memory, of which a value is computed in a loop over its elements."""
        result: set[Node] = set()
        seen, stack = {node}, list(node.inputs)
        while stack:
            source = stack.pop()
            if source in seen:
                continue
            seen.add(source)
            if source in self.same and source.op.kind in _IN_LOOPS:
                stack += source.inputs
            else:
                result.add(source)
        return result

    def values(self, to: _Pass) -> list[Node]:
        """The values of ``moved``, computed outside."""
        needed = set(self.moved)
        for node in reversed(self.graph.nodes):
            if node in needed:
                needed.update(node.inputs)
        new = dict(self.known)
        for node in self.graph.nodes:
            if node in needed:
                new[node] = to.copied(node, new)
        return [new[node] for node in self.moved]

    def without(self, graph: Graph, inputs: Sequence[Node], values: Sequence[Node]) -> Graph:
        """The graph with ``inputs`` more, of which those that are ``values`` take the place of ``moved``."""
        new = dict(zip(self.moved, values))
        nodes = []
        for node in graph.nodes:
            if node not in new:
                copy = _Pass.mapped(node, new)
                if copy is not node:
                    new[node] = copy
                nodes.append(copy)
        outputs = tuple([new.get(n, n) for n in graph.outputs])
        rebuilt = Graph(graph.name, (*graph.inputs, *inputs), tuple(nodes), outputs)
        return _with_outputs(rebuilt, range(len(outputs)))


def _is_pure(node: Node) -> bool:
    return node.effect is Effect.NONE and not is_token(node.type) and not _may_not_end(node)


def _may_not_end(node: Node) -> bool:
    if node.op.kind is not Kind.CONTROL:
        return False
    assert node.op.lower is not None
    if isinstance(node.op.lower(tuple([n.type for n in node.inputs]), node.attrs), While):
        return True
    return any(_may_not_end(inner) for graph in graphs_in(node.attrs) for inner in graph.nodes)


def _custom(to: _Pass, node: Node, wanted: Collection[int]) -> Results:
    return node.inputs[: node.attrs["made"]]  # differentiation is over by now


_RULES: dict[str, Callable[[_Pass, Node, Collection[int]], Results | None]] = {
    "cond": _cond,
    "custom": _custom,
    "while": _while,
    "scan": _scan,
}
