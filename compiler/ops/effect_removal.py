"""Sub-graphs without their effects, which derivatives are made of: what has happened once does not happen again.

What a function in Python returned is asked for again, as of one that computes from its arguments alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import TupleType, is_token
from hybridflow.compiler.ops.op_table import TABLE, Kind

Values = Sequence[Any]


def without_effects(graph: Graph) -> Graph:
    """The graph without tokens, and without the calls that they put in order."""
    if not any(is_token(node.type) for node in graph.inputs):
        return graph
    b = GraphBuilder(TABLE, graph.name)
    b.inputs = [node for node in graph.inputs if not is_token(node.type)]
    new: dict[Node, Any] = {node: node for node in b.inputs}  # of nodes with several results, what each has become
    for node in graph.nodes:
        b.location = node.where
        if node.op.kind is Kind.PROJECT:
            result = new[node.inputs[0]][node.attrs["index"]]
            if result is not None:
                new[node] = result
        elif any(is_token(n.type) for n in node.inputs):
            new[node] = _several(b, node, [new[n] for n in node.inputs if not is_token(n.type)])
        else:
            emitted: Any = b.emit(node.op, *(new[n] for n in node.inputs), **node.attrs)
            new[node] = b.results(emitted) if isinstance(node.type, TupleType) else emitted
    return b.finish([new[node] for node in graph.outputs if not is_token(node.type)])


def _several(b: GraphBuilder, node: Node, inputs: Values) -> list[Node | None]:
    """The results of a node that takes a token, without it; None for the token that it hands on."""
    types: Any = node.type
    outputs: Sequence[Node] = ()
    if node.op.name != "callback":
        outputs = b.results(b.emit(node.op, *inputs, **_attrs(node.inputs, node.attrs)))
    elif node.attrs["types"]:
        outputs = b.results(b.emit(TABLE["ask"], *inputs, **node.attrs, is_last=False))
    results = iter(outputs)
    return [None if is_token(part) else next(results) for part in types.parts]


def _attrs(inputs: Values, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a node of control flow whose inputs are tokens no more."""
    result = dict(attrs)
    if "carries" in attrs:
        result["carries"] = sum(not is_token(x.type) for x in inputs[: attrs["carries"]])
    for name, value in attrs.items():
        if isinstance(value, Graph):
            result[name] = without_effects(value)
        elif name == "branches":
            result[name] = tuple(map(without_effects, value))
    return result


def derivative(
    vjp: Callable[..., list[Any]], b: object, gs: Values, outs: Values, xs: Values, so_far: Values,
    wanted: Sequence[bool], attrs: Mapping[str, Any],
) -> list[Any]:  # fmt: skip
    """What the derivative ``vjp`` of control flow gives for its twin without effects."""
    kept, result_flags = [not is_token(x.type) for x in xs], [not is_token(out.type) for out in outs]
    gradients = vjp(
        b, _where(gs, result_flags), _where(outs, result_flags), *_where(xs, kept), so_far=_where(so_far, kept),
        wanted=_where(wanted, kept), **_attrs(xs, attrs),
    )  # fmt: skip
    return _spread(gradients, kept)


def tangents(
    jvp: Callable[..., Sequence[Any]], b: object, rates_in: Values, outs: Values, xs: Values, attrs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The same for tangents."""
    kept, result_flags = [not is_token(x.type) for x in xs], [not is_token(out.type) for out in outs]
    rates = jvp(b, _where(rates_in, kept), _where(outs, result_flags), *_where(xs, kept), **_attrs(xs, attrs))
    return tuple(_spread(rates, result_flags))


def _where(values: Values, flags: Sequence[bool]) -> Any:
    kind: Any = type(values) if type(values) in (list, tuple) else tuple
    return kind([value for value, flag in zip(values, flags) if flag])


def _spread(compact: Values, flags: Sequence[bool]) -> list[Any]:
    values = iter(compact)
    return [next(values) if flag else None for flag in flags]
