"""Control flow for many examples at once (``OpDef.batch``): control flow again, over sub-graphs for many examples.

Where all examples go one way (the condition does not depend on them) so does the control flow for all of them.  Else

    cond     computes each branch to which some example comes for all of them, and chooses for each
    while    goes on until all examples are done; one that is done keeps what it has

Examples that do not come to a branch or an iteration take part as copies of one that does: what is computed for them is
nobody's, and can neither raise nor, being an infinity or NaN, spoil a derivative.  Where something has an effect, which
is to happen once for each example that comes to it, a scan runs one example after another.  Carries that come to depend
on the examples in some iteration do so from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridflow.compiler.batching import batched_graph
from hybridflow.compiler.ir.build import Builder, GraphBuilder, Value
from hybridflow.compiler.ir.dtypes import bool_, int64
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Graph, graphs_in
from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops.batching_rules import PartlyBatched, axis_to_front, refuse_divergence
from hybridflow.compiler.ops.control_flow_derivatives import inlined
from hybridflow.compiler.ops.op_table import TABLE, OpDef

Flags = Sequence[bool]


def _is_pure(graphs: Sequence[Graph]) -> bool:
    return not any(g.is_ordered or any(is_token(n.type) for n in g.inputs) for g in graphs)


def example_by_example(
    b: Builder, op: OpDef, size: Extent, batched: Flags, /, *xs: Value, **attrs: Any
) -> PartlyBatched:
    """The op for one example after another.  Tokens go from each to the next."""
    refuse_divergence(op, graphs_in(attrs))
    tokens = [i for i, x in enumerate(xs) if is_token(x.type)]
    rows = [i for i in range(len(xs)) if batched[i]]
    order = [*tokens, *rows, *(i for i in range(len(xs)) if i not in tokens and not batched[i])]
    c = GraphBuilder(TABLE, "example")
    operands = {
        i: c.parameter(xs[i].type.with_shape(xs[i].type.shape[1:]) if batched[i] else xs[i].type, f"x{i}")
        for i in order
    }
    outputs = c.results(c.emit(op, *(operands[i] for i in range(len(xs))), **attrs))
    last = [k for k, x in enumerate(outputs) if is_token(x.type)]
    others = [k for k in range(len(outputs)) if k not in last]
    body = c.finish([*(outputs[k] for k in last), *(outputs[k] for k in others)])
    scanned = b.results(
        b.scan(
            *(xs[i] for i in order), body=body, carries=len(tokens), stacked=len(rows), length=size, reverse=False
        )
    )  # fmt: skip
    results: list[Any] = [None] * len(outputs)
    for k, x in zip((*last, *others), scanned):
        results[k] = x
    return PartlyBatched(results, tuple([k not in last for k in range(len(outputs))]))


def _each(b: Builder, which: Value, like: Any) -> Value:
    """A choice for each example, everywhere in its value."""
    shape = like.type.shape
    return which if len(shape) == 1 else b.broadcast(which, shape=shape, axes=(0,))


# ---- call, cond


def call_batch(b: Builder, op: object, size: Extent, batched: Flags, /, *xs: Value, body: Graph) -> PartlyBatched:
    graph, flags = batched_graph(body, batched, size)
    return PartlyBatched(b.results(b.call(*xs, body=graph)), flags)


def _both_branches(b: Builder, chosen: Value, xs: Sequence[Value], batched: Flags) -> list[Value]:
    """The values of the examples that are ``chosen``, of which there is one; the others are like one of them.  Of no
    examples none is chosen, and the values are none."""
    if chosen.type.shape == (0,):
        return list(xs)
    lanes = b.iota(shape=chosen.type.shape, axis=0, dtype=int64)
    some = b.max(b.where(chosen, lanes, b.full(-1, like=lanes.type)), axes=(0,))
    source = b.where(chosen, lanes, b.broadcast(some, shape=chosen.type.shape, axes=()))
    return [b.take(x, source, axis=0) if is_batched else x for x, is_batched in zip(xs, batched)]


def cond_batch(
    b: Builder, op: OpDef, size: Extent, batched: Flags, /, which: Value, *xs: Value, branches: tuple[Graph, ...]
) -> PartlyBatched:
    if batched[0] and not _is_pure(branches):
        return example_by_example(b, op, size, batched, which, *xs, branches=branches)
    operand_flags = batched[1:]
    kinds = [batched_graph(branch, operand_flags, size)[1] for branch in branches]
    flags = tuple([batched[0] or any(results) for results in zip(*kinds)])
    graphs = tuple([batched_graph(branch, operand_flags, size, flags)[0] for branch in branches])
    if not batched[0]:
        return PartlyBatched(b.results(b.cond(which, *xs, branches=graphs)), flags)
    refuse_divergence(op, branches)
    chosen = _select(b, which, len(branches))
    branch_results = [_branch(b, own_choice, graph, xs, operand_flags) for own_choice, graph in zip(chosen, graphs)]
    results = []
    for parts in zip(*branch_results):
        selected = parts[-1]
        for choice, part in reversed([*zip(chosen, parts[:-1])]):
            selected = b.where(_each(b, choice, part), part, selected)
        results.append(selected)
    return PartlyBatched(results, flags)


def _select(b: Builder, which: Value, count: int) -> list[Value]:
    """For each branch, which examples come to it."""
    if which.type.dtype == bool_:
        return [which, b.logical_not(which)]
    conditions = [b.equal(which, b.full(k, like=which.type)) for k in range(count - 1)]
    rest = b.full(True, like=which.type.with_dtype(bool_))
    for choice in conditions:
        rest = b.logical_and(rest, b.logical_not(choice))
    return [*conditions, rest]


def _branch(b: Builder, chosen: Value, graph: Graph, xs: Sequence[Value], batched: Flags) -> tuple[Value, ...]:
    """The results of a branch where some example comes to it, else zeros."""
    c = GraphBuilder(TABLE, graph.name)
    choice = c.parameter(chosen.type, "chosen")
    inputs = [c.parameter(n.type, n.attrs["name"]) for n in graph.inputs]
    outputs, _ = inlined(c, graph, _both_branches(c, choice, inputs, batched))
    d = GraphBuilder(TABLE, "nobody")
    for n in (choice, *inputs):
        d.parameter(n.type, n.attrs["name"])
    nobody = d.finish([d.full(0, like=x.type) for x in outputs])
    some = b.any(chosen, axes=(0,))
    result: tuple[Any, ...] = b.results(b.cond(some, chosen, *xs, branches=(c.finish(outputs), nobody)))
    return result


# ---- while


def while_batch(
    b: Builder, op: Any, size: Extent, batched: Flags, /, *xs: Value, cond: Graph, body: Graph
) -> PartlyBatched:
    count = len(body.outputs)
    flags = list(batched)
    while True:
        _, result_flags = batched_graph(body, flags, size)
        grown = [is_batched or new for is_batched, new in zip(flags, result_flags)]
        if grown == flags[:count]:
            break
        flags[:count] = grown
    asked = [is_batched for is_batched, x in zip(flags, xs) if not is_token(x.type)]
    question, (differs,) = batched_graph(cond, asked, size)
    if not differs:
        graph, _ = batched_graph(body, flags, size, flags[:count])
        starts = [
            axis_to_front(b, x, is_batched, size) if flag else x for x, is_batched, flag in zip(xs, batched, flags)
        ]
        return PartlyBatched(b.results(b.emit(op, *starts, cond=question, body=graph)), tuple(flags[:count]))
    if not _is_pure((cond, body)):
        return example_by_example(b, op, size, batched, *xs, cond=cond, body=body)
    refuse_divergence(op, (cond, body))
    return _while_any_active(b, op, size, batched, xs, cond, body)


def _while_any_active(
    b: Builder, op: Any, size: Extent, batched: Flags, xs: Sequence[Value], cond: Graph, body: Graph
) -> PartlyBatched:
    """A loop that also carries which examples go on, and a count of its iterations, for derivatives."""
    count = len(body.outputs)
    every = [True] * count
    flags = [*every, *batched[count:]]
    starts = [axis_to_front(b, x, flag, size) for x, flag in zip(xs[:count], batched)]
    question, _ = batched_graph(cond, flags, size, [True])
    graph, _ = batched_graph(body, flags, size, every)
    (active,) = inlined(b, question, [*starts, *xs[count:]])[0]
    c = GraphBuilder(TABLE, "body")
    carried = [c.parameter(x.type, f"carry{k}") for k, x in enumerate(starts)]
    going = c.parameter(active.type, "active")
    iterations = c.parameter(TensorType((), int64), "turns")
    rest = [c.parameter(x.type, f"x{k}") for k, x in enumerate(xs[count:])]
    branch_operands = _both_branches(c, going, [*carried, *rest], flags)
    stepped, _ = inlined(c, graph, branch_operands)
    kept = [c.where(_each(c, going, new), new, old) for new, old in zip(stepped, carried)]
    (more,) = inlined(c, question, [*stepped, *branch_operands[count:]])[0]
    loop = c.finish([*kept, c.logical_and(going, more), c.add(iterations, c.literal(1, int64))])
    d = GraphBuilder(TABLE, "cond")
    asked = [d.parameter(n.type, n.attrs["name"]) for n in loop.inputs]
    ends = d.finish([d.any(asked[count], axes=(0,))])
    operands = [*starts, active, b.literal(0, int64), *xs[count:]]
    return PartlyBatched(b.results(b.emit(op, *operands, cond=ends, body=loop))[:count], tuple(every))


# ---- scan


def scan_batch(
    b: Builder, op: object, size: Extent, batched: Flags, /, *xs: Value, body: Graph, carries: int, stacked: int,
    length: Extent, reverse: bool,
) -> PartlyBatched:  # fmt: skip
    """The axis of examples lies behind that of the slices, in operands and in stacks that are made."""
    flags = list(batched)
    while True:
        _, result_flags = batched_graph(body, flags, size)
        grown = [flag or new for flag, new in zip(flags[:carries], result_flags)]
        if grown == flags[:carries]:
            break
        flags[:carries] = grown
    wanted = [*flags[:carries], *result_flags[carries:]]
    graph, output_flags = batched_graph(body, flags, size, wanted)
    operands = []
    for i, x in enumerate(xs):
        if i < carries and flags[i]:
            x = axis_to_front(b, x, batched[i], size)
        elif carries <= i < carries + stacked and batched[i]:
            x = _swap_first_two_axes(b, x)
        operands.append(x)
    attrs = {"carries": carries, "stacked": stacked, "length": length, "reverse": reverse}
    results = list(b.results(b.scan(*operands, body=graph, **attrs)))
    for k in range(carries, len(results)):
        if output_flags[k]:
            results[k] = _swap_first_two_axes(b, results[k])
    return PartlyBatched(results, output_flags)


def _swap_first_two_axes(b: Builder, x: Value) -> Value:
    return b.transpose(x, perm=(1, 0, *range(2, len(x.type.shape))))


# ---- sized, custom


def dynamic_extent_batch(
    b: Builder, op: Any, size: Extent, batched: Flags, /, count: Any, *xs: Value, body: Graph, symbol: str
) -> PartlyBatched:
    if batched[0]:
        return example_by_example(b, op, size, batched, count, *xs, body=body, symbol=symbol)
    graph, flags = batched_graph(body, batched[1:], size)
    return PartlyBatched(b.results(b.sized(count, *xs, body=graph, symbol=symbol)), flags)


def custom_batch(
    b: Builder, op: object, size: Extent, batched: Flags, /, *xs: Value, derivative: Graph, given: int, made: int
) -> Any:
    """Each example has cotangents of its own, and so a source of its own."""
    count = made + given
    operands = [axis_to_front(b, x, flag, size) if i < count else x for i, (x, flag) in enumerate(zip(xs, batched))]
    flags = [*[True] * made, *batched[count:]]
    graph, _ = batched_graph(derivative, flags, size, [True] * given)
    return b.custom(*operands, derivative=graph, given=given, made=made)
