"""A graph for one example made into a graph for many at once: every value that depends on a batched input gets one axis
more, in front.

What an op means for a batch follows from its kind, where a rule of its own (``OpDef.batch``) does not say it.  Results
have the bits of the op applied to each example: no order of a sum changes by an axis in front that is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from hybridflow.compiler.ir.build import Builder, GraphBuilder, Value
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import Extent
from hybridflow.compiler.ops.batching_rules import PartlyBatched, axis_to_front, broadcast_batched, meets
from hybridflow.compiler.ops.contraction_dims import Contraction
from hybridflow.compiler.ops.op_table import TABLE, Kind, OpDef
from hybridflow.errors import ArgumentError

EXCHANGED = "exchanged"  # the name of an input that stands for the last exchange before the graph, and after it

Attrs = Mapping[str, Any]
Flags = tuple[bool, ...]


def _behind(size: Extent, attrs: Attrs) -> dict[str, int]:
    """Attributes that name axes by ``axis`` and ``axes``, for inputs with one axis more in front."""
    moved = dict(attrs)
    if "axis" in attrs:
        moved["axis"] = attrs["axis"] + 1
    if "axes" in attrs:
        moved["axes"] = tuple(axis + 1 for axis in attrs["axes"])
    return moved


def _contracted(b: Builder, op: OpDef, size: Extent, batched: Sequence[bool], /, *inputs: Any, **attrs: Any) -> Any:
    """One batch axis more.  An op whose attributes cannot say where it lies reads operands that are transposed."""
    assert op.contraction and op.contracting, op
    types = tuple(
        x.type.with_shape(x.type.shape[1:]) if is_batched else x.type for x, is_batched in zip(inputs, batched)
    )
    left, right = (factor.behind(1) for factor in op.contraction(types, attrs).factors)
    operands = [axis_to_front(b, x, is_batched, size) for x, is_batched in zip(inputs, batched)]
    return b.emit(op, *operands, **{**attrs, **(op.contracting(Contraction(left, right)) or {})})


Rule = Callable[..., Any]

_ALONG_AXES: Rule = broadcast_batched(_behind)

_RULES: dict[Kind, Rule] = {
    Kind.ELEMENTWISE: _ALONG_AXES,
    Kind.REDUCE: _ALONG_AXES,
    Kind.SCAN: _ALONG_AXES,
    Kind.SORT: _ALONG_AXES,
    Kind.CONTRACT: _contracted,
}


def applied(
    b: Builder, op: OpDef, size: Extent, batched: Sequence[bool], inputs: Sequence[Value], attrs: Attrs
) -> tuple[Any, Flags]:
    """``op`` for ``size`` examples, and which of its results have their axis.  ``batched`` says which inputs have it.

    The results of an op with several are a tuple.
    """
    if not any(batched) and not meets(op, attrs):
        node = b.emit(op, *inputs, **attrs)
        several = isinstance(node.type, TupleType)
        return (b.results(node), (False,) * len(node.type.parts)) if several else (node, (False,))
    rule = op.batch or _RULES.get(op.kind)
    if rule is None:
        raise ArgumentError(op.name, f"there is no rule for many examples at once ({op.kind.value} ops).")
    node = rule(b, op, size, tuple(batched), *inputs, **attrs)
    if isinstance(node, PartlyBatched):
        return node.results, node.batched
    several = isinstance(node.type, TupleType)
    return (b.results(node), (True,) * len(node.type.parts)) if several else (node, (True,))


def batched_graph(
    graph: Graph, batched: Sequence[bool], size: Extent, wanted: Sequence[bool] | None = None
) -> tuple[Graph, Flags]:
    """The graph for ``size`` examples, whose inputs have one axis more in front where ``batched``; and which of its
    outputs have it: those that depend on such inputs, and those that are ``wanted`` to."""
    b = GraphBuilder(TABLE, graph.name)
    values: dict[Node, Any] = {}
    flags: dict[Node, Flags] = {}
    for node, is_batched in zip(graph.inputs, batched):
        b.location = node.where
        type = node.type.with_shape((size, *node.shape)) if is_batched else node.type
        values[node] = b.parameter(type, node.attrs["name"], node.attrs["role"])
        flags[node] = (is_batched,)
        if node.attrs["name"] == EXCHANGED:
            b.exchanged = values[node]
    for node in graph.nodes:
        b.location = node.where
        if node.op.kind is Kind.PROJECT:
            whole, k = node.inputs[0], node.attrs["index"]
            values[node], flags[node] = values[whole][k], (flags[whole][k],)
        else:
            differ = [flags[n][0] for n in node.inputs]
            values[node], flags[node] = applied(b, node.op, size, differ, [values[n] for n in node.inputs], node.attrs)
    for node in graph.inputs:
        if node.attrs["name"] == EXCHANGED:
            values[node] = b.exchanged
    output_flags = tuple(
        [flags[n][0] or (wanted is not None and wanted[k]) for k, n in enumerate(graph.outputs)]
    )  # fmt: skip
    outputs = [
        axis_to_front(b, values[n], flags[n][0], size) if is_batched else values[n]
        for n, is_batched in zip(graph.outputs, output_flags)
    ]
    updates = {k: (values[n], flags[n][0]) for k, n in graph.updates.items()}
    for k, (_, is_batched) in updates.items():
        if is_batched and not batched[k]:
            name = graph.inputs[k].attrs["name"]
            raise ArgumentError("batch", f"the state {name!r} is one for all examples, and would get a value of each.")
    kept = {
        k: axis_to_front(b, value, is_batched, size) if batched[k] else value
        for k, (value, is_batched) in updates.items()
    }
    return b.finish(outputs, kept), output_flags


def batch(graph: Graph, batched: Collection[int], size: Extent) -> Graph:
    """The graph for ``size`` examples: the inputs in ``batched``, and all outputs, have one axis more in front.

    Raises ArgumentError where a state input that is not batched would get a value for each example.
    """
    flags = [k in batched for k in range(len(graph.inputs))]
    return batched_graph(graph, flags, size, [True] * len(graph.outputs))[0]
