"""Few elements that a turn of a loop writes into an array which it carries: they are scattered, not chosen everywhere.

``x[0] = v`` chooses between ``v``, padded to the shape of ``x``, and ``x``: a pass over the whole array, which costs
nothing more where one is made anyway.  A carry is not made anew where all that a turn does is to write parts of it: it
stays in its memory then (``loops.alias_analysis``), and each part takes the time of its own elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybridflow.compiler.ir.graph import Graph, Literal, Node
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.passes.pattern_match import splat

FEW = 8  # times fewer elements than the array has
LEAST = 4096  # bytes of an array of which a pass takes longer than a kernel for each part
MAX_WRITTEN = 64  # along an axis, which are a constant


class _Part(NamedTuple):
    value: Node
    axis: int
    start: int


def selects_to_scatters(body: Graph, carries: int) -> Graph:
    """The body of a loop that scatters what it writes into its first inputs, the carries."""
    written = {node: part for k in range(carries) for node, part in _written(body.outputs[k])}
    if not written:
        return body
    new: dict[Node, Node] = {}
    nodes: list[Node] = []

    def add(op: str, inputs: list[Node], where: str | None, **attrs: object) -> Node:
        definition = TABLE[op]
        node = Node(definition, inputs, attrs, definition.result(tuple([n.type for n in inputs]), attrs), where)
        nodes.append(node)
        return node

    for old in body.nodes:
        if old in written:
            value, axis, start = written[old]
            value = new.get(value, value)
            if _is_view(value):  # of the array, perhaps: it is read before that is written
                value = add("after", [value, value], old.where)
            array = new.get(old.inputs[-1], old.inputs[-1])
            places = Literal.of(np.arange(start, start + value.shape[axis], dtype=np.int64))
            at = add("constant", [], old.where, value=places)
            new[old] = add("scatter_set", [array, at, value], old.where, axis=axis, known=True)
            continue
        node = old
        if any(n in new for n in old.inputs):
            node = new[old] = Node(old.op, [new.get(n, n) for n in old.inputs], old.attrs, old.type, old.where)
        nodes.append(node)
    return replace(body, nodes=tuple(nodes), outputs=tuple([new.get(n, n) for n in body.outputs]))


def _written(node: Node) -> Iterator[tuple[Node, _Part]]:
    """The choices between a part and the rest of which alone, and of scattering, a value is made from one in memory."""
    chain = []
    while not node.is_parameter and node.op.kind is not Kind.PROJECT:
        part = _part(node)
        if part is not None:
            chain.append((node, part))
            node = node.inputs[-1]
        elif node.op.kind is Kind.SCATTER or node.op.shares_memory:
            node = node.inputs[0]
        else:
            return
    yield from chain


def _part(node: Node) -> _Part | None:
    """What is written where, if a node chooses between a few padded elements and an array."""
    if node.op.name != "where" or not node.type.is_static or node.type.size * node.dtype.itemsize < LEAST:
        return None
    there, padded, _ = node.inputs
    if there.is_parameter or padded.is_parameter or there.op.name != "pad" or padded.op.name != "pad":
        return None
    placed = [{name: n.attrs[name] for name in ("low", "high", "interior")} for n in (there, padded)]
    if placed[0] != placed[1] or splat(there.inputs[0]) is None or not splat(there.inputs[0]) or there.attrs["value"]:
        return None
    (value,), low, high = padded.inputs, there.attrs["low"], there.attrs["high"]
    axes = [axis for axis in range(node.type.ndim) if low[axis] or high[axis]]
    if len(axes) != 1 or any(there.attrs["interior"]) or min(*low, *high) < 0:
        return None
    if not 0 < FEW * value.type.size <= node.type.size or value.shape[axes[0]] > MAX_WRITTEN:
        return None
    return _Part(value, axes[0], low[axes[0]])


def _is_view(node: Node) -> bool:
    return node.is_parameter or node.op.kind is Kind.VIEW
