"""Derivatives of control flow: control flow again, over sub-graphs that are differentiated.

    cond     chooses among the derivatives of the branches, each of which computes what it needs of its branch anew
    scan     runs the other way.  What the derivative of an iteration needs of it is stacked by a second forward scan
             that makes these results too; a pass then has one scan do the work of both (``passes.scan_deduplication``)

Cotangents of carries are carries.  Those of what is the same in each iteration are carries too.  They start with the
sum so far, so that sums are added up in the order in which they would be without a loop.  They start with -0.0 where
there is nothing yet: x + -0.0 has the bits of x.

What a branch or an iteration does besides (``callback``) it does once, and not again for its derivative: see
``without_effects``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hybridflow.compiler.autodiff import Record, Results, backward
from hybridflow.compiler.forward_mode import jvp
from hybridflow.compiler.ir.build import Builder, Cotangent, GraphBuilder, Value
from hybridflow.compiler.ir.dtypes import bool_, int64, is_inexact
from hybridflow.compiler.ir.extents import Dim, Extent
from hybridflow.compiler.ir.graph import Graph, Node, graphs_in, parameter
from hybridflow.compiler.ir.results import TupleType, is_token
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops.op_table import TABLE, Kind
from hybridflow.compiler.ops.row_writes import RowWrites, row_writes

Values = Sequence[Any]
Flags = Sequence[bool]


def _without_effects(vjp: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """The rule for control flow that may have effects, too."""

    def call(
        b: Builder, gs: Values, outs: Values, *xs: Value, so_far: Values, wanted: Flags, **attrs: Any
    ) -> list[Any]:
        if not any(is_token(x.type) for x in xs):
            return vjp(b, gs, outs, *xs, so_far=so_far, wanted=wanted, **attrs)
        from hybridflow.compiler.ops import effect_removal

        return effect_removal.derivative(vjp, b, gs, outs, xs, so_far, wanted, attrs)

    return call


def _tangents_without_effects(rule: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    def call(b: Builder, tangents: Values, outs: Values, *xs: Value, **attrs: Any) -> tuple[Any, ...]:
        if not any(is_token(x.type) for x in xs):
            return rule(b, tangents, outs, *xs, **attrs)
        from hybridflow.compiler.ops import effect_removal

        return effect_removal.tangents(rule, b, tangents, outs, xs, attrs)

    return call


def _is_float(value: Any) -> bool:
    return not is_token(value.type) and is_inexact(value.type.dtype)


def inlined(b: Builder, graph: Graph, inputs: Values) -> tuple[list[Any], list[Record]]:
    """The outputs of a graph whose nodes are emitted anew, and the records of these."""
    values, records = _inlined_values(b, graph, inputs)
    return [values[n] for n in graph.outputs], list(records.values())


def _inlined_values(b: Builder, graph: Graph, inputs: Values) -> tuple[dict[Node, Any], dict[Node, Record]]:
    """As ``inlined``, for each node its value, and its record."""
    values: dict[Node, Any] = dict(zip(graph.inputs, inputs))
    records: dict[Node, Record] = {}
    for node in graph.nodes:
        if node.op.kind is Kind.PROJECT:
            values[node] = values[node.inputs[0]][node.attrs["index"]]
            continue
        if isinstance(b, GraphBuilder):
            b.location = node.where
        operands = tuple([values[n] for n in node.inputs])
        results: Any = b.emit(node.op, *operands, **node.attrs)
        several = isinstance(node.type, TupleType)
        values[node] = results = b.results(results) if several else results
        records[node] = Record(node.op, operands, node.attrs, Results(results) if several else (results,))
    return values, records


def _zero_cotangent(b: Builder, like: Any) -> Any:
    return b.full(-0.0, like=like)


def _sum(b: Builder, x: Value | None, y: Value | None) -> Any:
    return y if x is None else x if y is None else b.add(x, y)


# ---- cond


@_without_effects
def cond_vjp(
    b: Builder,
    gs: Values,
    outs: Values,
    which: Value,
    *xs: Value,
    branches: tuple[Graph, ...],
    so_far: Values,
    wanted: Flags,
) -> list[Cotangent]:
    seeded = [k for k, g in enumerate(gs) if g is not None]
    asked = [i for i, x in enumerate(xs) if wanted[i + 1] and _is_float(x)]
    begun = [i for i in asked if so_far[i + 1] is not None]
    derivatives = [_branch_derivative(branch, seeded, asked, begun) for branch in branches]
    reached = [k for k in range(len(asked)) if any(gradients[k] is not None for _, gradients, _ in derivatives)]
    graphs = []
    for c, gradients, checks in derivatives:
        filled = [c.full(0, like=xs[asked[k]].type) if gradients[k] is None else gradients[k] for k in reached]
        graphs.append(_pruned(c.finish(filled), checks))
    operands = [*xs, *(gs[k] for k in seeded), *(so_far[i + 1] for i in begun)]
    results = b.results(b.cond(which, *operands, branches=tuple(graphs)))
    totals: list[Any] = [None] * (len(xs) + 1)
    for k, total in zip(reached, results):
        totals[asked[k] + 1] = total
    return totals


def _branch_derivative(
    branch: Graph, seeded: Sequence[int], asked: Sequence[int], begun: Sequence[int]
) -> tuple[GraphBuilder, list[Node | None], list[Node]]:
    """A builder with the derivative of a branch, over its inputs, cotangents and what has come together so far; the
    cotangents that it found, and the checks of derivatives on the way."""
    c = GraphBuilder(TABLE, "derivative")
    inputs = [c.parameter(n.type, n.attrs["name"]) for n in branch.inputs]
    cotangents = [c.parameter(branch.outputs[k].type, f"cotangent{k}") for k in seeded]
    starts = [c.parameter(branch.inputs[i].type, f"total{i}") for i in begun]
    outputs, records = inlined(c, branch, inputs)
    begin = len(c.nodes)
    seeds = [*zip((inputs[i] for i in begun), starts), *((outputs[k], g) for k, g in zip(seeded, cotangents))]
    gradients = backward(c, records, seeds, [inputs[i] for i in asked])
    return c, gradients, _checks(c.nodes[begin:])


def _checks(nodes: Iterable[Node]) -> list[Node]:
    """What ends programs, among nodes of derivatives: functions that say theirs themselves may ask for something."""
    return [n for n in nodes if n.op is TABLE["require"] or any(_checks(g.nodes) for g in graphs_in(n.attrs))]


def _pruned(graph: Graph, always: Collection[Node] = ()) -> Graph:
    """The graph without nodes that are neither needed by its outputs nor among ``always``; others that may raise have
    done so before."""
    live = {*graph.outputs, *always}
    for node in reversed(graph.nodes):
        if node in live:
            live.update(node.inputs)
    return Graph(graph.name, graph.inputs, tuple([n for n in graph.nodes if n in live]), graph.outputs)


@_tangents_without_effects
def cond_jvp(
    b: Builder, tangents: Values, outs: Values, which: Value, *xs: Value, branches: tuple[Graph, ...]
) -> tuple[Any, ...]:
    along = [i for i, t in enumerate(tangents[1:]) if t is not None]
    graphs = tuple([jvp(branch, along) for branch in branches])
    results = b.results(b.cond(which, *xs, *(tangents[i + 1] for i in along), branches=graphs))
    return _tangents(outs, results[len(outs) :])


def _tangents(outs: Values, rates: Values) -> tuple[Any, ...]:
    """For each result its tangent; ``rates`` are those of floats."""
    rest = iter(rates)
    return tuple([next(rest) if _is_float(out) else None for out in outs])


# ---- scan


@dataclass(frozen=True)
class _Shape:
    """How the operands of a scan lie: ``carries``, ``stacked`` ones, and what is the same in each iteration."""

    carries: int
    stacked: int
    length: Extent
    reverse: bool

    def is_carry(self, i: int) -> bool:
        return i < self.carries

    def is_stacked(self, i: int) -> bool:
        return self.carries <= i < self.carries + self.stacked


@_without_effects
def scan_vjp(
    b: Builder, gs: Values, outs: Values, *xs: Value, body: Graph, carries: int, stacked: int, length: Extent,
    reverse: bool, so_far: Values, wanted: Flags,
) -> list[Cotangent]:  # fmt: skip
    shape = _Shape(carries, stacked, length, reverse)
    slices = xs[carries : carries + stacked]
    has_gradients_of_slices = any(map(_is_float, slices)) or any(g is not None for g in gs[carries:])
    is_peelable = isinstance(length, int) and length > 0 and not has_gradients_of_slices
    if not is_peelable or not _needs_peeling(xs, carries, so_far, wanted):
        return _scan_totals(b, gs, xs, body, shape, so_far, wanted)
    at, begin = (length - 1, 0) if reverse else (0, 1)
    first = [b.reshape(_row(b, x, at, at + 1), shape=x.type.shape[1:]) for x in slices]

    def totals_after_first(inputs: Values, starts: Values, before: Values) -> list[Any]:
        rest = [_row(b, x, begin, begin + length - 1) for x in slices] if length > 1 else slices
        operands = [*inputs[:carries], *rest, *inputs[carries + stacked :]]
        shorter = _Shape(carries, stacked, length - 1, reverse)
        return _scan_totals(b, gs, operands, body, shorter, starts, wanted, before)

    inputs = [*xs[:carries], *first, *xs[carries + stacked :]]
    return _peeled_totals(b, xs, inputs, body, carries, so_far, wanted, totals_after_first)


def _needs_peeling(xs: Values, carries: int, so_far: Values, wanted: Flags) -> bool:
    """Whether a loop begins with a value that something else reads, too.  Without a loop its first iteration would add
    to what has come together for that value."""
    ids = [id(x) for x in xs]
    floats = [k for k in range(carries) if wanted[k] and _is_float(xs[k])]
    return any(so_far[k] is not None or ids.count(ids[k]) > 1 for k in floats)


def _peeled_totals(
    b: Builder, xs: Values, inputs: Values, body: Graph, carries: int, so_far: Values, wanted: Flags,
    totals_after_first: Callable[[Values, Values, Values], list[Any]],
) -> list[Cotangent]:  # fmt: skip
    """Totals of a loop with its first iteration peeled off.  ``inputs`` are those of that iteration; of the inputs of
    the next one, of what has come together for them, and of what its ``RowWrites.operands`` are, ``totals_after_first``
    makes the totals of the others."""
    values, records = _inlined_values(b, body, inputs)
    outputs = [values[n] for n in body.outputs]
    writes = row_writes(body, carries)
    sums = {id(x): (x, total) for x, total in zip(xs, so_far) if total is not None}
    next_inputs = [*outputs[:carries], *inputs[carries:]]
    ids = [id(x) for x in next_inputs]
    starts: list[Any] = [None] * len(ids)
    for i in range(carries, len(ids)):
        if ids[i] in sums and ids.index(ids[i]) == i:
            starts[i] = sums[ids[i]][1]
    totals = totals_after_first(next_inputs, starts, [values[n] for n in writes.operands])
    for i in range(carries, len(ids)):
        if totals[i] is not None:
            is_added = starts[i] is None and ids[i] in sums
            sums[ids[i]] = next_inputs[i], b.add(sums[ids[i]][1], totals[i]) if is_added else totals[i]
    seeds = [*sums.values(), *((outputs[k], totals[k]) for k in range(carries) if totals[k] is not None)]
    sources = {id(x): x for x, w in zip(xs, wanted) if w and _is_float(x)}
    late = {id(values[n]) for n in writes.late}
    written = [records.pop(n) for n in writes.nodes]
    of_writes = [x for record in written for x in record.inputs if _is_float(x) and id(x) not in late]
    all_seeds = _totals_of(b, written, seeds, of_writes)
    gradients = dict(zip(sources, backward(b, list(records.values()), all_seeds, list(sources.values()))))
    return [gradients.pop(id(x), None) for x in xs]


def _totals_of(b: Any, records: Sequence[Record], seeds: Values, operands: Values) -> Values:
    """The seeds of what comes before records that nothing but seeds follows: the totals for their ``operands``."""
    if not records:
        return seeds
    outputs = {id(out) for record in records for out in record.outputs}
    sources = {id(x): x for x in operands if id(x) not in outputs}
    totals = backward(b, records, seeds, list(sources.values()))
    known = [(x, total) for x, total in zip(sources.values(), totals) if total is not None]
    return [*known, *((x, g) for x, g in seeds if id(x) not in sources and id(x) not in outputs)]


def _scan_totals(
    b: Any, gs: Values, xs: Values, body: Graph, shape: _Shape, so_far: Values, wanted: Flags, before: Values = ()
) -> list[Cotangent]:
    """Totals of a loop.  ``before`` are ``RowWrites.operands`` of the iteration before the first one, if there was one:
    what that one wrote has no part in other totals."""
    if shape.length == 0:
        return [_sum(b, so_far[i], gs[i]) if i < shape.carries else so_far[i] for i in range(len(xs))]
    iteration = _Iteration(body, shape, gs, [w and _is_float(x) for w, x in zip(wanted, xs)], bool(before))
    kept = iteration.split()
    stacks: Values = ()
    if kept.saved:
        attrs = {
            "carries": shape.carries,
            "stacked": shape.stacked,
            "length": shape.length,
            "reverse": shape.reverse,
        }
        stacks = b.results(b.scan(*xs, body=kept.forward, **attrs))[len(body.outputs) :]
    return _Backward(b, iteration, kept, gs, xs, stacks, so_far, before).totals()


@dataclass(frozen=True)
class _Split:
    """What an iteration's derivative is made of: the forward body that also returns ``saved`` values, and the nodes of
    the derivative, which read these, inputs of the body and cotangents."""

    forward: Graph
    saved: list[Node]
    nodes: list[Node]
    read: set[Node]


class _Iteration:
    """One iteration and its derivative in one graph.

    ``moving`` are the carries with a cotangent, ``stacks`` the stacked results with one.  A stacked result that is a
    carry too (``same``) is one value with it: what the stack's cotangent says of the iteration before is where the sum
    for the carry starts.  So it is with what the iteration before wrote into a row of another carry (``writes.late``):
    ``before`` has for parameters what they were in that iteration, ``first`` is the one that says that there was none.
    """

    def __init__(self, body: Graph, shape: _Shape, gs: Values, asked: Flags, follows: bool) -> None:
        self.body, self.shape, self.follows = body, shape, follows
        self.writes = RowWrites() if shape.reverse else row_writes(body, shape.carries)
        self.same: dict[int, int] = {}
        for j in range(shape.carries, len(body.outputs)):
            if gs[j] is not None:
                for k in range(shape.carries):
                    if body.outputs[k] is body.outputs[j] and k not in self.same:
                        self.same[k] = j
                        break
        self.stacks = [
            j for j in range(shape.carries, len(gs)) if gs[j] is not None and j not in self.same.values()
        ]  # fmt: skip
        self.asked = [i for i, flag in enumerate(asked) if flag and not shape.is_carry(i)]
        moving = {k for k in range(shape.carries) if gs[k] is not None} | self.same.keys()
        while True:
            self._build(sorted(moving))
            more = {k for k, total in self.carried.items() if total is not None} - moving
            if not more:
                break
            moving |= more

    def _build(self, moving: list[int]) -> None:
        body, shape = self.body, self.shape
        self.moving = moving
        self.b = c = GraphBuilder(TABLE, "turn")
        self.inputs = [c.parameter(n.type, n.attrs["name"]) for n in body.inputs]
        self.values, records = _inlined_values(c, body, self.inputs)
        self.outputs = [self.values[n] for n in body.outputs]
        self.forward_nodes = list(c.nodes)
        self.of_carry = {k: c.parameter(body.inputs[k].type, f"cotangent{k}") for k in moving}
        self.of_stack = {j: c.parameter(body.outputs[j].type, f"cotangent{j}") for j in self.stacks}
        self.begun = {k: c.parameter(body.inputs[k].type, f"start{k}") for k in moving if k in self.same}
        self.summed = {
            i: c.parameter(body.inputs[i].type, f"total{i}") for i in self.asked if not shape.is_stacked(i)
        }  # fmt: skip
        seeds: Any = [
            *((self.inputs[k], g) for k, g in self.begun.items()),
            *((self.inputs[i], g) for i, g in self.summed.items()),
            *((self.outputs[k], g) for k, g in self.of_carry.items()),
            *((self.outputs[j], g) for j, g in self.of_stack.items()),
        ]
        buffers = [k for k in self.writes.buffers if k in self.of_carry]
        self.late = {k: self.values[n] for n, k in self.writes.late.items()} if buffers else {}
        self.before: dict[Node, Node] = {}
        self.first: Node | None = None
        self.written = [records.pop(n) for n in self.writes.nodes] if buffers else []
        late = set(map(id, self.late.values()))
        of_writes = [x for record in self.written for x in record.inputs if _is_float(x) and id(x) not in late]
        seeds = _totals_of(c, self.written, seeds, of_writes)
        of_buffers = {k: g for k in buffers for x, g in seeds if x is self.inputs[k]}
        seeds = [(x, g) for x, g in seeds if all(x is not self.inputs[k] for k in buffers)]
        if self.late and of_buffers:
            seeds = [*self._shares(of_buffers), *seeds]
        floats = [k for k in range(shape.carries) if _is_float(body.inputs[k])]
        sources = [*floats, *self.asked]
        totals = dict(zip(sources, backward(c, list(records.values()), seeds, [self.inputs[i] for i in sources])))
        self.carried = {k: of_buffers.get(k, totals[k]) for k in floats}
        self.sums = {i: totals[i] for i in self.summed if totals[i] is not None and totals[i] is not self.summed[i]}
        self.slices = {i: totals[i] for i in self.asked if shape.is_stacked(i) and totals[i] is not None}
        if shape.length != 1:  # each slice is a piece of a whole that is 0 elsewhere, and -0.0 + 0 is 0
            self.slices = {i: c.add(g, c.full(0, like=g)) for i, g in self.slices.items()}

    def _shares(self, of_buffers: dict[int, Any]) -> list[tuple[Any, Any]]:
        """For carries what begins their sums: the share of the rows that the iteration before wrote."""
        c, last = self.b, len(self.inputs) - self.shape.carries - self.shape.stacked
        invariant = self.inputs[len(self.inputs) - last :]
        for n in self.writes.operands:
            self.before[c.parameter(n.type, "before")] = self.values[n]
        of_source = {source: node for node, source in self.before.items()}
        known = {**dict(zip(invariant, invariant)), **of_source}
        shares = self.shares_of_rows(c, of_buffers, known, {k: self.inputs[k] for k in self.late}, {})
        if not self.follows:
            self.first = first = c.parameter(TensorType((), bool_), "first")
            shares = {
                k: c.where(_everywhere(c, first, g), _zero_cotangent(c, self.inputs[k]), g) for k, g in shares.items()
            }
        return [(self.inputs[k], g) for k, g in shares.items()]

    def shares_of_rows(
        self, b: Any, of_buffers: dict[int, Any], known: dict[Any, Any], carries: dict[int, Any], begun: dict[int, Any]
    ) -> dict[int, Any]:
        """The cotangents of ``late`` values, here ``carries``, where those of the buffers are given after an iteration
        in which operands of its writes were ``known``.  ``begun`` is what has come together for carries."""
        stand_ins: dict[int, Any] = {id(self.late[k]): x for k, x in carries.items()}

        def stand_in(x: Any) -> Any:  # of which only the type counts
            if not _is_float(x):
                return x
            if id(x) not in stand_ins:
                stand_ins[id(x)] = b.full(0, like=x.type)
            return stand_ins[id(x)]

        records = []
        for op, operands, attrs, outputs, _ in self.written:
            copies = [known[x] if x in known else stand_in(x) for x in operands]
            results: Any = [stand_in(x) for x in outputs]
            records.append(
                Record(op, tuple(copies), attrs, Results(results) if isinstance(outputs, Results) else results)
            )
        starts = [(x, begun.get(k, _zero_cotangent(b, x))) for k, x in carries.items()]
        seeds = [*starts, *((stand_in(self.outputs[k]), g) for k, g in of_buffers.items())]
        totals = backward(b, records, seeds, list(carries.values()))
        return {k: g for k, g in zip(carries, totals) if g is not None}

    # ---- which values are kept

    def split(self) -> _Split:
        """Decide what is stacked for the derivative, and what it computes again."""
        first = self._first_nodes()
        computed: set[Node] = set()
        saved: list[Node] = []
        read: set[Node] = set()
        carries = set(self.inputs[: self.shape.carries])
        stack = [n for n in (*self.carried.values(), *self.sums.values(), *self.slices.values()) if n is not None]
        stack += _checks(n for n in self.b.nodes if n not in first)
        same = self._unchanging()
        while stack:
            node = stack.pop()
            if node in computed or node in read:
                continue
            if node in carries or (node in first and not self._is_free(node, same)):
                saved.append(node)
                read.add(node)
            elif node.is_parameter:
                read.add(node)
            else:
                computed.add(node)
                stack += node.inputs
        saved += [source for source in self.before.values() if source not in saved]
        nodes = [n for n in self.b.nodes if n in computed]
        forward = _pruned(
            Graph("body", tuple(self.inputs), tuple([n for n in self.b.nodes if n in first]),
                  (*self.outputs, *saved)), {*self.forward_nodes, *_checks(first)}
        )  # fmt: skip
        return _Split(forward, saved, nodes, read)

    def _first_nodes(self) -> set[Node]:
        """The nodes of the iteration, and of the derivative those loops that need no cotangent, with what they read."""
        first = set(self.forward_nodes)
        later = [n for n in self.b.nodes if n not in first]
        free: set[Node] = set()
        known = {*self.inputs, *first}
        for node in later:
            if all(n in known or n in free for n in node.inputs):
                free.add(node)
        for node in reversed(later):
            if node in free and node.op.kind is Kind.CONTROL and node.op is not TABLE["require"]:
                stack = [node]
                while stack:
                    one = stack.pop()
                    if one in free and one not in first:
                        first.add(one)
                        stack += one.inputs
        return first | {n for n in later if n.op.kind is Kind.PROJECT and n.inputs[0] in first}

    def _unchanging(self) -> set[Node]:
        """Nodes that are the same in each iteration."""
        result = set(self.inputs[self.shape.carries + self.shape.stacked :])
        for node in self.b.nodes:
            if all(n in result for n in node.inputs):
                result.add(node)
        return result

    @staticmethod
    def _is_free(node: Node, same: Collection[Node]) -> bool:
        """Whether a value is computed again rather than kept."""
        return node in same or node.op.kind in (Kind.CREATE, Kind.VIEW)


def _row(b: Any, x: Any, begin: Extent, end: Extent) -> Any:
    """The slices of a stack from one position to another."""
    rank = len(x.type.shape)
    return b.slice(x, start=(begin, *[0] * (rank - 1)), stop=(end, *x.type.shape[1:]), step=(1,) * rank)


class _Backward:
    """The scan that goes back.  Its operands are collected as its body's inputs are made."""

    def __init__(
        self, b: Any, iteration: _Iteration, kept: _Split, gs: Values, xs: Values, stacks: Values, so_far: Values,
        before: Values,
    ) -> None:  # fmt: skip
        self.b, self.iteration, self.kept, self.before = b, iteration, kept, before
        self.is_after: Any = None  # whether so many iterations were before, for none to all
        self.gs, self.xs, self.stacks, self.so_far = gs, xs, stacks, so_far
        self.new: dict[Node, Node] = {}
        self.inputs: list[Node] = []
        self.operands: list[Any] = []

    def _take(self, node: Node, operand: Any) -> None:
        placeholder = parameter(node.type, node.attrs["name"] if node.is_parameter else f"kept{len(self.inputs)}")
        self.new[node] = placeholder
        self.inputs.append(placeholder)
        self.operands.append(operand)

    def totals(self) -> list[Any]:
        b, iteration, shape = self.b, self.iteration, self.iteration.shape
        for k, g in iteration.of_carry.items():
            self._take(g, self._last(k))
        for i in iteration.sums:
            self._take(
                iteration.summed[i], _zero_cotangent(b, self.xs[i]) if self.so_far[i] is None else self.so_far[i]
            )
        carries = len(self.inputs)
        for i in range(shape.carries, shape.carries + shape.stacked):
            if iteration.inputs[i] in self.kept.read:
                self._take(iteration.inputs[i], self.xs[i])
        for node, x in zip(self.kept.saved, self.stacks):
            if node in self.kept.read:
                self._take(node, x)
        for number, (node, source) in enumerate(iteration.before.items()):
            if node in self.kept.read:
                self._take(node, _row(b, self._with_first(number, source), 0, shape.length))
        if iteration.first in self.kept.read:
            self._take(iteration.first, _row(b, self._is_none_before(), 0, shape.length))
        for j, g in iteration.of_stack.items():
            self._take(g, self.gs[j])
        for k, g in iteration.begun.items():
            self._take(g, self._shifted(k))
        stacked = len(self.inputs) - carries
        for i in range(shape.carries + shape.stacked, len(iteration.inputs)):
            if iteration.inputs[i] in self.kept.read:
                self._take(iteration.inputs[i], self.xs[i])
        attrs = {"carries": carries, "stacked": stacked, "length": shape.length, "reverse": not shape.reverse}
        results = b.results(b.scan(*self.operands, body=self._body(), **attrs))
        return self._sorted(results)

    def _body(self) -> Graph:
        iteration = self.iteration
        c = GraphBuilder(TABLE, "body")
        c.inputs = self.inputs
        for node in self.kept.nodes:
            copy = Node(node.op, [self.new[n] for n in node.inputs], node.attrs, node.type, node.where)
            c.nodes.append(copy)
            self.new[node] = copy
        outputs = []
        for k in iteration.moving:
            total = iteration.carried[k]
            outputs.append(_zero_cotangent(c, iteration.inputs[k]) if total is None else self.new[total])
        more: Any = (*iteration.sums.values(), *iteration.slices.values())
        outputs += [self.new[n] for n in more]
        return c.finish(outputs)

    def _last(self, k: int) -> Any:
        """The cotangent of a carry after the last iteration."""
        b, shape, g = self.b, self.iteration.shape, self.gs[k]
        if k in self.iteration.same:
            n = shape.length
            last = _row(b, self.gs[self.iteration.same[k]], *((0, 1) if shape.reverse else (n - 1, n)))
            return _sum(b, g, b.reshape(last, shape=self.xs[k].type.shape))
        start = _zero_cotangent(b, self.xs[k]) if g is None else g
        return self._with_rows(k, start) if k in self.iteration.late and self.iteration.before else start

    def _with_rows(self, k: int, start: Any) -> Any:
        """That of a carry which the last iteration wrote into a row: ``start``, and the share of that row."""
        b, iteration, n = self.b, self.iteration, self.iteration.shape.length
        known = dict(zip(iteration.inputs[iteration.shape.carries :], self.xs[iteration.shape.carries :]))
        for number, source in enumerate(iteration.before.values()):
            last = _row(b, self._with_first(number, source), n, n + 1)
            known[source] = b.reshape(last, shape=source.type.shape)
        of_buffers = {i: self.gs[i] for i in iteration.writes.buffers if self.gs[i] is not None}
        total = iteration.shares_of_rows(
            b, of_buffers, known, {i: _zero_cotangent(b, self.xs[i]) for i in iteration.late}, {k: start}
        ).get(k, start)
        if self.before or isinstance(n, int):
            return total
        none = b.reshape(_row(b, self._is_none_before(), n, n + 1), shape=())
        return b.where(_everywhere(b, none, total), start, total)

    def _with_first(self, number: int, source: Node) -> Any:
        """What an operand of writes was in all iterations, and in the one before them."""
        stack = self.stacks[self.kept.saved.index(source)]
        first = self.before[number] if self.before else self.b.full(0, like=source.type)
        return self.b.concat(self.b.reshape(first, shape=(1, *source.type.shape)), stack, axis=0)

    def _is_none_before(self) -> Any:
        """For each number of iterations whether it is 0."""
        if self.is_after is None:
            count = self.b.iota(shape=(self.iteration.shape.length + 1,), axis=0, dtype=int64)
            self.is_after = self.b.equal(count, self.b.full(0, like=count.type))
        return self.is_after

    def _shifted(self, k: int) -> Any:
        """For each iteration what the sum for the carry that it began with starts with: the cotangent of the slice that
        the iteration before stacked."""
        b, shape, x = self.b, self.iteration.shape, self.xs[k]
        g = self.gs[self.iteration.same[k]]
        row = b.reshape(_zero_cotangent(b, x), shape=(1, *x.type.shape))
        if shape.length == 1:
            return row
        if isinstance(shape.length, int):
            rest = _row(b, g, 1, shape.length) if shape.reverse else _row(b, g, 0, shape.length - 1)
            return b.concat(rest, row, axis=0) if shape.reverse else b.concat(row, rest, axis=0)
        # One slice more, and then one less: of n - 1 slices it would not be known whether they are more than one.
        if shape.reverse:
            return _row(b, b.concat(g, row, axis=0), 1, shape.length + 1)
        return _row(b, b.concat(row, g, axis=0), 0, shape.length)

    def _sorted(self, gradients: Values) -> list[Any]:
        """Totals in the order of the operands."""
        b, iteration = self.b, self.iteration
        totals: list[Any] = list(self.so_far)
        results = iter(gradients)
        for k in iteration.moving:
            totals[k] = _sum(b, self.so_far[k], next(results))  # what a loop starts with is a value of its own
        for i in iteration.sums:
            totals[i] = next(results)
        for i in iteration.slices:
            totals[i] = _sum(b, self.so_far[i], next(results))
        return totals


@_tangents_without_effects
def scan_jvp(
    b: Builder, tangents: Values, outs: Values, *xs: Value, body: Graph, carries: int, stacked: int, length: Extent,
    reverse: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Tangents of carries are carries, those of slices are stacked."""
    along = [i for i, x in enumerate(xs) if (i < carries and _is_float(x)) or tangents[i] is not None]
    graph = jvp(body, along)
    extra = graph.inputs[len(xs) :]
    ends = (carries, carries + stacked, len(xs))
    inputs: list[Node] = []
    operands: list[Any] = []
    counts = []
    for begin, end in zip((0, *ends), ends):
        inputs += graph.inputs[begin:end]
        operands += xs[begin:end]
        for i, node in zip(along, extra):
            if begin <= i < end:
                inputs.append(node)
                operands.append(b.full(0, like=xs[i]) if tangents[i] is None else tangents[i])
        counts.append(len(inputs))
    count = len(body.outputs)
    moved = [k for k, n in enumerate(body.outputs) if _is_float(n)]
    of = dict(zip(moved, graph.outputs[count:]))
    first = [k for k in moved if k < carries]
    outputs = [
        *graph.outputs[:carries], *(of[k] for k in first), *graph.outputs[carries:count],
        *(of[k] for k in moved if k >= carries),
    ]  # fmt: skip
    wide = Graph(graph.name, tuple(inputs), graph.nodes, tuple(outputs))
    attrs = {"carries": counts[0], "stacked": counts[1] - counts[0], "length": length, "reverse": reverse}
    results = b.results(b.scan(*operands, body=wide, **attrs))
    return _tangents(outs, [*results[carries : counts[0]], *results[count + len(first) :]])


# ---- while


@_without_effects
def while_vjp(
    b: Builder, gs: Values, outs: Values, *xs: Value, cond: Graph, body: Graph, so_far: Values, wanted: Flags
) -> list[Cotangent]:
    """A forward scan over as many iterations as there were, which is known when the program runs, and one back."""
    count = len(body.outputs)
    iterations = _trip_count(b, outs, xs, cond, body)
    if not _needs_peeling(xs, count, so_far, wanted):
        return _while_totals(b, iterations, gs, xs, body, so_far, wanted, 0)
    distinct = list({id(x): x for x in xs}.values())
    first = [next(k for k, other in enumerate(xs) if other is x) for x in xs]  # where each operand stands first
    seeded = [k for k, g in enumerate(gs) if g is not None]
    begun = [i for i, total in enumerate(so_far) if total is not None]
    operands = [iterations, *distinct, *(gs[k] for k in seeded), *(so_far[i] for i in begun)]
    branches: list[tuple[GraphBuilder, list[Any]]] = []
    for has_iterations in (True, False):
        c = GraphBuilder(TABLE, "derivative")
        number, *parameters = [c.parameter(x.type, f"x{i}") for i, x in enumerate(operands)]
        of_operand = dict(zip(map(id, distinct), parameters))
        others = iter(parameters[len(distinct) :])
        cotangents: list[Any] = [None] * count
        starts: list[Any] = [None] * len(xs)
        for values, positions in ((cotangents, seeded), (starts, begun)):
            for k in positions:
                values[k] = next(others)
        if has_iterations:
            inputs = [of_operand[id(x)] for x in xs]
            after_first = functools.partial(_totals_after_first, c, number, cotangents, body, wanted)
            totals: list[Any] = _peeled_totals(c, inputs, inputs, body, count, starts, wanted, after_first)
        else:
            totals = list(starts)
            for k in seeded:
                totals[first[k]] = _sum(c, totals[first[k]], cotangents[k])
        branches.append((c, totals))
    reached = [i for i in range(len(xs)) if any(totals[i] is not None for _, totals in branches)]
    graphs = [
        _pruned(c.finish([c.full(0, like=xs[i].type) if totals[i] is None else totals[i] for i in reached]),
                _checks(c.nodes))
        for c, totals in branches
    ]  # fmt: skip
    some = b.not_equal(iterations, b.literal(0, iterations.type.dtype))
    by_position = dict(zip(reached, b.results(b.cond(some, *operands, branches=tuple(graphs)))))
    return [by_position.get(i) for i in range(len(xs))]


def _totals_after_first(
    b: Builder, iterations: Value, gs: Values, body: Graph, wanted: Flags, xs: Values, so_far: Values, before: Values
) -> list[Any]:
    """The totals of the iterations after the first one."""
    one = b.literal(1, iterations.type.dtype)
    return _while_totals(b, b.subtract(iterations, one), gs, xs, body, so_far, wanted, -0.0, before)


def _while_totals(
    b: Any, iterations: Value, gs: Values, xs: Values, body: Graph, so_far: Values, wanted: Flags, nothing: float,
    before: Values = (),
) -> list[Any]:  # fmt: skip
    """The totals after so many iterations, ``nothing`` where there is no iteration, and so no sum."""
    count = len(body.outputs)
    symbol = _symbol(body)
    seeded = [k for k, g in enumerate(gs) if g is not None]
    begun = [i for i in range(len(xs)) if so_far[i] is not None]
    c = GraphBuilder(TABLE, "derivative")
    inputs = [c.parameter(x.type, f"x{i}") for i, x in enumerate(xs)]
    own_totals: list[Any] = [None] * count
    for k in seeded:
        own_totals[k] = c.parameter(xs[k].type, f"cotangent{k}")
    starts: list[Any] = [None] * len(xs)
    for i in begun:
        starts[i] = c.parameter(xs[i].type, f"total{i}")
    own_before = [c.parameter(x.type, f"before{k}") for k, x in enumerate(before)]
    shape = _Shape(count, 0, Dim(symbol) - 2, False)
    totals = _scan_totals(c, own_totals, inputs, body, shape, starts, wanted, own_before)
    reached = [i for i, total in enumerate(totals) if total is not None]
    graph = _pruned(c.finish([totals[i] for i in reached]), _checks(c.nodes))
    operands = [*xs, *(gs[k] for k in seeded), *(so_far[i] for i in begun), *before]
    gradients = dict(zip(reached, b.results(b.sized(iterations, *operands, body=graph, symbol=symbol))))
    none = b.equal(iterations, b.literal(0, iterations.type.dtype))
    late = row_writes(body, count).late.values() if before else ()
    for i, total in gradients.items():
        if so_far[i] is None and i not in late and (i >= count or gs[i] is None):
            gradients[i] = b.where(_everywhere(b, none, total), b.full(nothing, like=total), total)
    return [gradients.get(i) for i in range(len(xs))]


def _everywhere(b: Builder, x: Value, like: Any) -> Value:
    shape = like.type.shape
    return b.broadcast(x, shape=shape, axes=()) if shape else x


def _symbol(body: Graph) -> str:
    """A name for the number of iterations, which no loop inside has."""
    return f"turns{_depth(body)}"


def _depth(graph: Graph) -> int:
    inner = [_depth(part) for node in graph.nodes for part in graphs_in(node.attrs)]
    return 1 + max(inner, default=0)


_ADDITIONS = ("add", "checked_add")


def counter(body: Graph) -> int | None:
    """The number of a carry to which each iteration adds 1, in 64 bits."""
    for k, (node, new) in enumerate(zip(body.inputs, body.outputs)):
        if node.type == TensorType((), int64) and new.op.name in _ADDITIONS and node in new.inputs:
            other = new.inputs[1] if new.inputs[0] is node else new.inputs[0]
            if other.op is TABLE["constant"] and other.attrs["value"].array == 1:
                return k
    return None


def _trip_count(b: Builder, outs: Values, xs: Values, cond: Graph, body: Graph) -> Value:
    """How many iterations there were: what a counter says, or else a loop that counts them."""
    k = counter(body)
    if k is not None:
        return b.subtract(outs[k], xs[k])
    count = len(body.outputs)
    c = GraphBuilder(TABLE, "body")
    inputs = [c.parameter(n.type, n.attrs["name"]) for n in body.inputs]
    number = c.parameter(TensorType((), int64), "turns")
    outputs, _ = inlined(c, body, inputs)
    outputs.append(c.add(number, c.literal(1, int64)))
    c.inputs = [*inputs[:count], number, *inputs[count:]]
    asked = list(cond.inputs)
    asked.insert(count, parameter(number.type, "turns"))
    counting = {
        "cond": Graph(cond.name, tuple(asked), cond.nodes, cond.outputs),
        "body": c.finish(outputs),
    }
    operands = [*xs[:count], b.literal(0, int64), *xs[count:]]
    return b.results(b.emit(TABLE["while"], *operands, **counting))[count]


@_tangents_without_effects
def while_jvp(b: Builder, tangents: Values, outs: Values, *xs: Value, cond: Graph, body: Graph) -> tuple[Any, ...]:
    """Tangents of carries are carries; the condition does not look at them."""
    count = len(body.outputs)
    along = [i for i, x in enumerate(xs) if (i < count and _is_float(x)) or tangents[i] is not None]
    graph = jvp(body, along)
    dense_tangents = {i: b.full(0, like=xs[i]) if tangents[i] is None else tangents[i] for i in along}
    extra = dict(zip(along, graph.inputs[len(xs) :]))
    carried = [i for i in along if i < count]
    rest = [i for i in along if i >= count]
    order = [*graph.inputs[:count], *(extra[i] for i in carried), *graph.inputs[count : len(xs)],
             *(extra[i] for i in rest)]  # fmt: skip
    of = dict(zip([k for k, n in enumerate(body.outputs) if _is_float(n)], graph.outputs[count:]))
    outputs = (*graph.outputs[:count], *(of[i] for i in carried))
    asked = list(cond.inputs)
    asked[count:count] = [parameter(xs[i].type, f"unread{i}") for i in carried]
    asked += [parameter(xs[i].type, f"unread{i}") for i in rest]
    operands = [*xs[:count], *(dense_tangents[i] for i in carried), *xs[count:], *(dense_tangents[i] for i in rest)]
    results = b.results(
        b.emit(
            TABLE["while"], *operands, cond=Graph(cond.name, tuple(asked), cond.nodes, cond.outputs),
            body=Graph(graph.name, tuple(order), graph.nodes, outputs),
        )
    )  # fmt: skip
    return _tangents(outs, results[count:])


# ---- sized


@_without_effects
def dynamic_extent_vjp(
    b: Builder,
    gs: Values,
    outs: Values,
    count: Any,
    *xs: Value,
    body: Graph,
    symbol: str,
    so_far: Values,
    wanted: Flags,
) -> list[Cotangent]:
    """The derivative knows the extent as well."""
    seeded = [k for k, g in enumerate(gs) if g is not None]
    asked = [i for i, x in enumerate(xs) if wanted[i + 1] and _is_float(x)]
    begun = [i for i in asked if so_far[i + 1] is not None]
    c, gradients, checks = _branch_derivative(body, seeded, asked, begun)
    reached = [k for k, total in enumerate(gradients) if total is not None]
    graph = _pruned(c.finish([gradients[k] for k in reached]), checks)
    operands = [*xs, *(gs[k] for k in seeded), *(so_far[i + 1] for i in begun)]
    results = b.results(b.sized(count, *operands, body=graph, symbol=symbol))
    totals: list[Any] = [None] * (len(xs) + 1)
    for k, total in zip(reached, results):
        totals[asked[k] + 1] = total
    return totals


@_tangents_without_effects
def dynamic_extent_jvp(
    b: Builder, tangents: Values, outs: Values, count: object, *xs: Value, body: Graph, symbol: str
) -> tuple[Any, ...]:
    along = [i for i, t in enumerate(tangents[1:]) if t is not None]
    operands = [*xs, *(tangents[i + 1] for i in along)]
    results = b.results(b.sized(count, *operands, body=jvp(body, along), symbol=symbol))
    return _tangents(outs, results[len(outs) :])


# ---- custom


def custom_vjp(
    b: Builder, gs: Values, outs: Values, *xs: Value, derivative: Graph, given: int, made: int
) -> list[Cotangent]:
    cotangents = [b.full(0, like=x.type) if g is None else g for g, x in zip(gs, xs)]
    gradients, _ = inlined(b, derivative, [*cotangents, *xs[made + given :]])
    shares = [g if _is_float(x) else None for g, x in zip(gradients, xs[made:])]
    return [*[None] * made, *shares, *[None] * (len(xs) - made - given)]
