"""A graph for one example made into a graph for many at once: every value that depends on a batched input gets one axis
more, in front.

What an op means for a batch follows from its kind, where a rule of its own (``OpDef.batch``) does not say it.  Results
have the bits of the op applied to each example: no order of a sum changes by an axis in front that is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from hybridflow.compiler.ir.build import Builder, GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import Extent
from hybridflow.compiler.ops.batched import in_front, together
from hybridflow.compiler.ops.contraction import Contraction
from hybridflow.compiler.ops.table import TABLE, Kind, OpDef
from hybridflow.errors import ArgumentError

Attrs = Mapping[str, Any]


def _behind(size: Extent, attrs: Attrs) -> dict[str, Any]:
    """Attributes that name axes by ``axis`` and ``axes``, for inputs with one axis more in front."""
    moved = dict(attrs)
    if "axis" in attrs:
        moved["axis"] = attrs["axis"] + 1
    if "axes" in attrs:
        moved["axes"] = tuple(axis + 1 for axis in attrs["axes"])
    return moved


def _contracted(b: Any, op: OpDef, size: Extent, batched: Sequence[bool], /, *inputs: Any, **attrs: Any) -> Any:
    """One batch axis more.  An op whose attributes cannot say where it lies reads operands that are transposed."""
    assert op.contraction and op.contracting, op
    types = tuple(x.type.with_shape(x.type.shape[1:]) if own else x.type for x, own in zip(inputs, batched))
    left, right = (factor.behind(1) for factor in op.contraction(types, attrs).factors)
    operands = [in_front(b, x, own, size) for x, own in zip(inputs, batched)]
    return b.emit(op, *operands, **{**attrs, **(op.contracting(Contraction(left, right)) or {})})


def _projected(b: Any, op: OpDef, size: Extent, batched: Sequence[bool], whole: Any, /, index: int) -> Any:
    return b.project(whole, index=index)


Rule = Callable[..., Any]

_ALONG_AXES: Rule = together(_behind)

_RULES: dict[Kind, Rule] = {
    Kind.ELEMENTWISE: _ALONG_AXES,
    Kind.REDUCE: _ALONG_AXES,
    Kind.SCAN: _ALONG_AXES,
    Kind.SORT: _ALONG_AXES,
    Kind.CONTRACT: _contracted,
    Kind.PROJECT: _projected,
}


def applied(
    b: Builder, op: OpDef, size: Extent, batched: Sequence[bool], inputs: Sequence[Any], attrs: Attrs
) -> tuple[Any, bool]:
    """``op`` for ``size`` examples, and whether the result has their axis.  ``batched`` says which inputs have it."""
    if not any(batched):
        return b.emit(op, *inputs, **attrs), False
    rule = op.batch or _RULES.get(op.kind)
    if rule is None:
        raise ArgumentError(op.name, f"there is no rule for many examples at once ({op.kind.value} ops).")
    return rule(b, op, size, tuple(batched), *inputs, **attrs), True


def batch(graph: Graph, batched: Collection[int], size: Extent) -> Graph:
    """The graph for ``size`` examples: the inputs in ``batched``, and all outputs, have one axis more in front.

    Raises ArgumentError where a state input that is not batched would get a value for each example.
    """
    b = GraphBuilder(TABLE, graph.name)
    new: dict[Node, tuple[Any, bool]] = {}
    for k, node in enumerate(graph.inputs):
        type = node.type.with_shape((size, *node.shape)) if k in batched else node.type
        b.location = node.where
        new[node] = b.parameter(type, node.attrs["name"], node.attrs["role"]), k in batched
    for node in graph.nodes:
        b.location = node.where
        values, own = zip(*(new[n] for n in node.inputs)) if node.inputs else ((), ())
        new[node] = applied(b, node.op, size, own, values, node.attrs)
    for k, node in graph.updates.items():
        if new[node][1] and k not in batched:
            name = graph.inputs[k].attrs["name"]
            raise ArgumentError("batch", f"the state {name!r} is one for all examples, and would get a value of each.")
    outputs = [in_front(b, *new[node], size) for node in graph.outputs]
    updates = {k: in_front(b, *new[n], size) if k in batched else new[n][0] for k, n in graph.updates.items()}
    return b.finish(outputs, updates)
