"""Forward-mode differentiation: tangents (directional derivatives) of what operations make, from those of their inputs.

An op's tangent comes from its ``vjp``, which is linear in the cotangent.  Where element i of the result depends on
element i of each input alone, a cotangent and a tangent are multiplied by one and the same number.  So the ``vjp``
applied to a tangent is the tangent, with zeros shielded from poles as in reverse mode.  Everything else is transposed:
the ``vjp`` is written down for a cotangent that nobody needs to know, and differentiated backwards by it.  An op may
say otherwise (``OpDef.jvp``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hybridflow.compiler.autodiff import Record, Results, backward
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder, GraphBuilder, Value
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, TABLE, Kind, OpDef


def pushed(
    b: Builder, op: OpDef, inputs: Sequence[Any], attrs: Mapping[str, Any], out: Any, tangents: Sequence[Value | None]
) -> Any | None:
    """The tangent of ``out``, which ``op`` made of ``inputs`` under canonical attributes; None where it is zero, or
    where the result does not depend smoothly on an input.  ``tangents`` has one for each input, or None for zero.

    Where ``out`` is the ``Results`` of an op with several, a tuple of tangents, or None for all of them.
    """
    if op.vjp is NOT_DIFFERENTIABLE or all(t is None for t in tangents):
        return None
    if not isinstance(out, Results) and not dt.is_inexact(out.type.dtype):
        return None
    if op.jvp is not None:
        return op.jvp(b, tuple(tangents), out, *inputs, **attrs)
    if op.kind is Kind.ELEMENTWISE:
        return _elementwise(b, op, inputs, attrs, out, tangents)
    return _transposed(b, op, inputs, attrs, out, tangents)


def _elementwise(
    b: Builder, op: OpDef, inputs: Any, attrs: Any, out: Any, tangents: Sequence[Value | None]
) -> Any | None:
    total = None
    shares: dict[int, Any] = {}  # inputs that are one value have one tangent, and their cotangents may come together
    for k, tangent in enumerate(tangents):
        if tangent is None:
            continue
        if id(tangent) not in shares:
            shares[id(tangent)] = op.vjp(b, tangent, out, *inputs, **attrs)
        share = shares[id(tangent)][k]
        share = share() if callable(share) else share
        if share is not None:
            total = share if total is None else b.add(total, share)
    return total


class _Recording(Builder):
    """Applies ops through another builder, and keeps records of them."""

    def __init__(self, b: Builder) -> None:
        super().__init__(TABLE)
        self._b = b
        self.records: list[Record] = []

    def emit(self, op: OpDef, *inputs: Value, **attrs: Any) -> Value:
        if op.canon is not None:
            attrs = op.canon(tuple(x.type for x in inputs), attrs)
        out = self._b.emit(op, *inputs, **attrs)
        several = isinstance(out, tuple) or isinstance(out.type, TupleType)
        if several:
            out = self._b.results(out)
        self.records.append(Record(op, inputs, attrs, Results(out) if several else (out,)))
        return out

    def results(self, value: Any) -> tuple[Any, ...]:
        result: tuple[Any, ...] = value
        return result


def _transposed(
    b: Builder, op: OpDef, inputs: Any, attrs: Any, out: Any, tangents: Sequence[Value | None]
) -> Any | None:
    recording = _Recording(b)
    # Any value would do for a cotangent: what is linear in it has a derivative without it.
    parts = out if isinstance(out, Results) else (out,)
    cotangents = tuple(b.full(0, like=part.type) if dt.is_inexact(part.type.dtype) else None for part in parts)
    shares = op.vjp(recording, cotangents if isinstance(out, Results) else cotangents[0], out, *inputs, **attrs)
    seeds = []
    for share, tangent in zip(shares, tangents):
        if tangent is not None and share is not None:
            seeds.append((share() if callable(share) else share, tangent))
    transposed = iter(backward(b, recording.records, seeds, [g for g in cotangents if g is not None]))
    transposed_tangents = tuple(None if g is None else next(transposed) for g in cotangents)
    return transposed_tangents if isinstance(out, Results) else transposed_tangents[0]


def forward(
    b: Builder,
    records: Sequence[Record],
    seeds: Iterable[tuple[Any, Any]],
    through: Callable[[Record, Sequence[Any]], Sequence[Any]],
) -> dict[int, Any]:
    """The tangents of all recorded values that move with the seeded ones, by the ids of the values.

    ``seeds`` are (value, its tangent) pairs, ``through(record, tangents of its inputs)`` the tangents of the outputs of
    a record with a derivative of its own.
    """
    tangents: dict[int, Any] = {}
    for value, tangent in seeds:
        known = tangents.get(id(value))
        tangents[id(value)] = tangent if known is None else b.add(known, tangent)
    for record in records:
        input_tangents = [tangents.get(id(x)) for x in record.inputs]
        if all(t is None for t in input_tangents):
            continue
        if record.vjp is not None:
            results = through(record, input_tangents)
        else:
            several = isinstance(record.outputs, Results)
            out = record.outputs if several else record.outputs[0]
            result = pushed(b, record.op, record.inputs, record.attrs, out, input_tangents)
            results = (result or ()) if several else (result,)
        for value, tangent in zip(record.outputs, results):
            if tangent is not None:
                tangents[id(value)] = tangent
    return tangents


def jvp(graph: Graph, along: Sequence[int]) -> Graph:
    """The graph with the tangents of its results.

    ``along`` lists the inputs, real or complex, that have a tangent: the new graph takes these after its own inputs.
    It returns the outputs, then the tangents of real and complex outputs, then those of such updates in input order.
    """
    b = GraphBuilder(TABLE, graph.name)
    b.inputs = list(graph.inputs)
    tangent: dict[Node, Any] = {}  # a tuple where there are several results
    for k in along:
        primal = graph.inputs[k]
        tangent[primal] = b.parameter(primal.type, f"d_{primal.attrs['name']}")
    for node in graph.nodes:
        b.nodes.append(node)
        b.location = node.where
        input_tangents = [tangent.get(n) for n in node.inputs]
        if node.op.kind is Kind.PROJECT:
            tangent[node] = input_tangents[0] and input_tangents[0][node.attrs["index"]]
            continue
        moves = any(t is not None for t in input_tangents)
        out = Results(b.results(node)) if moves and isinstance(node.type, TupleType) else node
        tangent[node] = pushed(b, node.op, node.inputs, node.attrs, out, input_tangents)

    def of(node: Node) -> Node:
        known = tangent.get(node)
        return b.full(0, like=node.type) if known is None else known

    tangents = [of(node) for node in graph.results if dt.is_inexact(node.dtype)]
    return b.finish([*graph.outputs, *tangents], graph.updates)
