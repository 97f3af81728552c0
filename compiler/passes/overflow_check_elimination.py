"""Checks of ints that cannot overflow go: value range analysis, with induction variables.

    range            what ``ops.value_ranges`` says of a value, from what is known of the inputs: those of a branch
                     are its operands, where its condition holds; those of a loop's body are what follows
    invariant        a carry is what it is at the start, or what an iteration made of it, where the loop goes on then
    induction        a carry to which each iteration adds a step within bounds is the start and at most as many
                     steps as there are iterations

An op of ``ops.checked_integers`` whose exact result 64 bits hold, by these ranges, becomes the op that wraps.  So
counters of loops, positions and lengths have no checks, and loops are as fast, and may be moved and merged, as if there
were none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Graph, Node, graphs_in
from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.checked_integers import WRAPPING
from hybridflow.compiler.ops.value_ranges import Bounds, bounds, of_dtype, union, within

if TYPE_CHECKING:
    from hybridflow.compiler.ir.types import TensorType


_MAX_ITERATIONS = 2**53  # of all loops together: at a nanosecond each they take a hundred days
_ROUNDS = 2  # an invariant is found from that of the round before, at first from nothing; within a round by one each
_DEPTH = 32  # sums of sums that are looked through for a step


def overflow(graph: Graph) -> Graph:
    return _Ranges(graph, {}).without_checks() if _has_checks(graph) else graph


def _has_checks(graph: Graph) -> bool:
    return any(
        node.op.name in WRAPPING or (node.op.kind is Kind.CONTROL and any(map(_has_checks, graphs_in(node.attrs))))
        for node in graph.nodes
    )


class _Step(NamedTuple):
    """What is added to a value; whether each addition ``fits``, since it is checked."""

    low: float
    high: float
    fits: bool

    def then(self, low: float, high: float, fits: bool) -> _Step:
        return _Step(self.low + low, self.high + high, self.fits and fits)


class _Ranges:
    """Ranges of a graph's values; ``known`` are those of some of its inputs.  Invariants of its loops are found in so
    many ``rounds``."""

    def __init__(self, graph: Graph, known: Mapping[Node, Bounds], rounds: int = _ROUNDS) -> None:
        self.graph, self.rounds = graph, rounds
        self.known = dict(known)
        self.inner: dict[Node, list[_Ranges]] = {}
        """The ranges of a node's graphs, in the order of their names."""
        results: dict[Node, Sequence[Bounds | None]] = {}
        for node in graph.nodes:
            if node.op.kind is Kind.CONTROL:
                results[node] = self._enter(node)
            elif node.op.kind is Kind.PROJECT and node.inputs[0] in results:
                part = results[node.inputs[0]][node.attrs["index"]]
                if part is not None:
                    self.known[node] = part

    def of(self, node: Node, where_true: Node | None = None) -> Bounds:
        return bounds(node, given_bounds=self.known, where_true=where_true)

    # ---- graphs inside

    def _enter(self, node: Node) -> Sequence[Bounds | None]:
        """The ranges of a node's results, None for those of which nothing is known."""
        if node.op.name == "cond":
            which, *operands = node.inputs
            sure = [which if dt.is_bool(which.dtype) and k == 0 else None for k in range(len(node.attrs["branches"]))]
            return self._branches(node, node.attrs["branches"], operands, sure)
        if node.op.name == "call":
            return self._branches(node, [node.attrs["body"]], node.inputs, [None])
        if node.op.name in ("while", "scan"):
            return self._loop(node)
        self.inner[node] = [_Ranges(graph, {}, self.rounds) for graph in graphs_in(node.attrs)]
        return [None] * len(node.type.parts)

    def _branches(
        self, node: Node, branches: Sequence[Graph], operands: Sequence[Node], sure: Sequence[Node | None]
    ) -> Sequence[Bounds | None]:
        inner = self.inner[node] = [
            _Ranges(branch, {n: self.of(x, true) for n, x in zip(branch.inputs, operands) if _is_int(n)}, self.rounds)
            for branch, true in zip(branches, sure)
        ]
        result: list[Bounds | None] = []
        for k, part in enumerate(node.type.parts):
            ends = [ranges.of(ranges.graph.outputs[k]) for ranges in inner] if _is_int_type(part) else []
            result.append((min(low for low, _ in ends), max(high for _, high in ends)) if ends else None)
        return result

    def _loop(self, node: Node) -> Sequence[Bounds | None]:
        body, cond = node.attrs["body"], node.attrs.get("cond")
        count = len(body.outputs) if cond is not None else node.attrs["carries"]
        length = node.attrs.get("length")
        iterations = min(length, _MAX_ITERATIONS) if isinstance(length, int) else _MAX_ITERATIONS
        going = None if cond is None else _carried_answer(cond, body)
        carries = [k for k in range(count) if _is_int(body.inputs[k])]
        start = {k: self.of(node.inputs[k]) for k in carries}
        first = start if going is None else {k: self.of(node.inputs[k], node.inputs[going]) for k in carries}
        fixed = {n: self.of(x) for n, x in zip(body.inputs[count:], node.inputs[count:]) if _is_int(n)}
        carried = {k: of_dtype(body.inputs[k].dtype) for k in carries}
        for _ in range(self.rounds):
            ranges = _Ranges(body, {**fixed, **{body.inputs[k]: carried[k] for k in carries}}, 1)
            onward = None if going is None else body.outputs[going]
            loop_ranges = {k: union(first[k], ranges.of(body.outputs[k], onward)) for k in carries}
            carried = {k: _common(loop_ranges[k], ranges.induced(k, start[k], iterations)) for k in carries}
        inner = [_Ranges(body, {**fixed, **{body.inputs[k]: carried[k] for k in carries}}, self.rounds)]
        after = {k: self._after(inner[0], k, start[k], iterations) for k in carries}
        if cond is not None:
            asked = zip(cond.inputs, [n for n in body.inputs if not is_token(n.type)])
            ever = {
                **fixed,
                **{body.inputs[k]: ends for k, ends in after.items()},
            }  # it is asked after the last iteration, too
            inner.append(_Ranges(cond, {c: ever[n] for c, n in asked if n in ever}, self.rounds))
        self.inner[node] = inner
        return [after.get(k) for k in range(len(node.type.parts))]

    @staticmethod
    def _after(body: _Ranges, k: int, start: Bounds, iterations: int) -> Bounds:
        """A carry after any number of iterations."""
        return _common(union(start, body.of(body.graph.outputs[k])), body.induced(k, start, iterations))

    # ---- induction variables

    def induced(self, k: int, start: Bounds, iterations: int) -> Bounds:
        """What carry ``k`` of this body can be, by the steps that at most ``turns`` iterations add to it."""
        node = self.graph.inputs[k]
        whole, step = of_dtype(node.dtype), self._step(self.graph.outputs[k], node)
        if step is None:
            return whole
        low, high = start[0] + min(0, iterations * step.low), start[1] + max(0, iterations * step.high)
        if whole[0] <= low and high <= whole[1]:
            return low, high
        return (max(low, whole[0]), min(high, whole[1])) if step.fits else whole

    def _step(self, node: Node, start: Node, depth: int = _DEPTH) -> _Step | None:
        """What ``node`` is more than ``start``."""
        if node is start:
            return _Step(0, 0, True)
        if depth == 0 or node.is_parameter:
            return None
        name, inputs = node.op.name, node.inputs
        if name in ("add", "checked_add", "subtract", "checked_subtract"):
            is_sum = name.endswith("add")
            for a, b in (inputs, inputs[::-1])[: 1 + is_sum]:
                step = self._step(a, start, depth - 1)
                if step is not None:
                    low, high = self.of(b)
                    return step.then(*((low, high) if is_sum else (-high, -low)), name in WRAPPING)
            return None
        if name == "where":
            return _either([self._step(x, start, depth - 1) for x in inputs[1:]])
        if node.op.kind is Kind.PROJECT and inputs[0] in self.inner:
            return self._step_inside(inputs[0], node.attrs["index"], start, depth)
        return None

    def _step_inside(self, node: Node, index: int, start: Node, depth: int) -> _Step | None:
        """The same of a result of a node with graphs."""
        graphs = {"cond": lambda: node.attrs["branches"], "call": lambda: [node.attrs["body"]]}.get(node.op.name)
        if graphs is not None:
            operands = node.inputs[node.op.name == "cond" :]
            return _either([ranges._step_from(operands, self, index, start, depth) for ranges in self.inner[node]])
        if node.op.name not in ("while", "scan"):
            return None
        body = self.inner[node][0]
        if index >= (len(body.graph.outputs) if node.op.name == "while" else node.attrs["carries"]):
            return None
        before = self._step(node.inputs[index], start, depth - 1)
        iteration = body._step(body.graph.outputs[index], body.graph.inputs[index], depth - 1)
        if before is None or iteration is None:
            return None
        # Iterations that nobody can count are among those that all loops together have.
        length = node.attrs.get("length")
        iterations = length if isinstance(length, int) else 1
        return before.then(min(0, iterations * iteration.low), max(0, iterations * iteration.high), iteration.fits)

    def _step_from(
        self, operands: Sequence[Node], outside: _Ranges, index: int, start: Node, depth: int
    ) -> _Step | None:
        """The step to a result of this branch."""
        for operand, inner in zip(operands, self.graph.inputs):
            if not _is_int(inner):
                continue
            before = outside._step(operand, start, depth - 1)
            inside = None if before is None else self._step(self.graph.outputs[index], inner, depth - 1)
            if before is not None and inside is not None:
                return before.then(*inside)
        return None

    # ---- rewriting

    def without_checks(self) -> Graph:
        """The graph without checks that cannot fail."""
        new: dict[Node, Node] = {}
        nodes = []
        for old in self.graph.nodes:
            op, attrs = old.op, old.attrs
            if op.name in WRAPPING and self._fits(old):
                op = TABLE[WRAPPING[op.name]]
            elif old in self.inner:
                attrs = self._attrs(old)
            node = old
            if op is not old.op or attrs is not old.attrs or any(n in new for n in old.inputs):
                node = new[old] = Node(op, [new.get(n, n) for n in old.inputs], attrs, old.type, old.where)
            nodes.append(node)
        return self.graph.rebuild(new, nodes) if new else self.graph

    def _fits(self, node: Node) -> bool:
        rule: Any = TABLE[WRAPPING[node.op.name]].facts["bounds"]
        exact = rule(node.dtype, *map(self.of, node.inputs))
        return within(exact, node.dtype) == exact != of_dtype(node.dtype)  # which also says that nothing is known

    def _attrs(self, node: Node) -> Mapping[str, Any]:
        inner = iter(self.inner[node])

        def changed(value: object) -> Any:
            if isinstance(value, Graph):
                return next(inner).without_checks()
            if isinstance(value, tuple):
                parts = tuple([changed(part) for part in value])
                return value if all(a is b for a, b in zip(parts, value)) else parts
            return value

        attrs = {name: changed(node.attrs[name]) for name in sorted(node.attrs)}
        return attrs if any(attrs[name] is not value for name, value in node.attrs.items()) else node.attrs


def _is_int(node: Node) -> bool:
    return _is_int_type(node.type)


def _is_int_type(type: TensorType) -> bool:
    return not is_token(type) and dt.is_integer(type.dtype)


def _common(x: Bounds, y: Bounds) -> Bounds:
    low, high = max(x[0], y[0]), min(x[1], y[1])
    return (low, high) if low <= high else x  # no iteration comes there


def _either(steps: Sequence[_Step | None]) -> _Step | None:
    known = [step for step in steps if step is not None]
    if not known or len(known) < len(steps):
        return None
    return _Step(min(s.low for s in known), max(s.high for s in known), all(s.fits for s in known))


def _carried_answer(cond: Graph, body: Graph) -> int | None:
    """The carry that says whether a loop goes on, where its condition is no more than that."""
    asked = [k for k, n in enumerate(body.inputs) if not is_token(n.type)]
    for k, node in zip(asked, cond.inputs):
        if node is cond.outputs[0] and k < len(body.outputs):
            return k
    return None
