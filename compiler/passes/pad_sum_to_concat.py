"""Sums of arrays that are zero but for a part of each, no two parts at one place: one array joined from the parts.

That is what derivatives of slices add up to: ``x[:, :64]`` and ``x[:, 64:]``, or ``x[t]`` for each step of a loop, or
``x[:, ::2]`` and ``x[:, 1::2]``, as in pooling.  As a sum, n slices write n whole arrays and read them again.  Joined,
every element is written once.

To add zero changes nothing but the sign of a zero: ``v + 0`` is all that the other terms do to ``v``, be they one or
many.  So the joined parts are ``v + 0``, and the bits are those of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.extents import Extent, compare
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops import TABLE

_ADD, _PAD = TABLE["add"], TABLE["pad"]
_MOST_TEETH = 8  # of which some may be missing, and are filled with zeros


def sums_of_pads_to_concat(graph: Graph) -> Graph:
    sums = {top: runs for top, terms in _sums(graph).items() if len(runs := _runs(terms)) < len(terms)}
    if not sums:
        return graph
    b = GraphBuilder(TABLE)
    new: dict[Node, Node] = {}
    for old in graph.nodes:
        if old in sums:
            b.location = old.where
            total, *others = (run.value(b, new) for run in sums[old])
            for value in others:
                total = b.add(total, value)
            new[old] = total
            continue
        node = old
        if any(n in new for n in old.inputs):
            node = new[old] = Node(old.op, [new.get(n, n) for n in old.inputs], old.attrs, old.type, old.where)
        b.nodes.append(node)
    return graph.rebuild(new, b.nodes)


class _Part(NamedTuple):
    """What an array has from ``start`` to ``stop`` along an axis, and zero elsewhere."""

    value: Node
    start: Extent
    stop: Extent


class _Run:
    """Terms that follow each other in a sum.  ``parts`` lie along ``axis`` in this order, none over another; a term of
    any other kind (the axis is None) is a run by itself."""

    def __init__(self, term: Node) -> None:
        self.term = term
        self.axis = _padded_axis(term)
        self.parts = [] if self.axis is None else [_part(term, self.axis)]

    def add_part(self, term: Node) -> bool:
        """Whether a term has become one of the parts."""
        if self.axis is None or _padded_axis(term) != self.axis:
            return False
        new, count = _part(term, self.axis), len(self.parts)
        for k in (0, count, *range(1, count)):  # slices mostly come in an order, forwards or backwards
            follows = k == 0 or compare(new.start, self.parts[k - 1].stop)
            if follows and (k == count or compare(self.parts[k].start, new.stop)):
                self.parts.insert(k, new)
                return True
        return False

    def value(self, b: GraphBuilder, new: Mapping[Node, Node]) -> Node:
        axis = self.axis
        if axis is None or len(self.parts) == 1:
            return new.get(self.term, self.term)
        before, after = self.term.shape[:axis], self.term.shape[axis + 1 :]
        pieces: list[Node] = []
        end: Extent = 0
        for part in (*self.parts, None):
            start = self.term.shape[axis] if part is None else part.start
            if start != end:
                pieces.append(b.full(0, self.term.type.with_shape((*before, start - end, *after))))
            if part is not None:
                value = new.get(part.value, part.value)
                pieces.append(b.add(value, b.full(0, value.type)))
                end = part.stop
        return b.concat(*pieces, axis=axis)


class _Comb:
    """Terms that follow each other in a sum and have every ``step``-th element along ``axis`` each, from ``parts``'
    numbers on: together they are the parts side by side, along an axis behind that."""

    def __init__(self, term: Node, axis: int) -> None:
        self.term, self.axis = term, axis
        self.step = term.attrs["interior"][axis] + 1
        self.parts = {term.attrs["low"][axis]: term.inputs[0]}

    def add_part(self, term: Node) -> bool:
        """Whether a term has become one of the parts."""
        axis = self.axis
        if _combed_axis(term) != axis or term.attrs["interior"] != self.term.attrs["interior"]:
            return False
        first = term.attrs["low"][axis]
        if term.inputs[0].shape != self.term.inputs[0].shape or first in self.parts:
            return False
        self.parts[first] = term.inputs[0]
        return True

    def value(self, b: GraphBuilder, new: Mapping[Node, Node]) -> Node:
        if len(self.parts) == 1:
            return new.get(self.term, self.term)
        axis, type, shape = self.axis, self.term.inputs[0].type, self.term.shape
        before, count, after = type.shape[:axis], type.shape[axis], type.shape[axis + 1 :]
        pieces: list[Node] = []
        for k in range(self.step):
            zero = b.full(0, type)
            value = b.add(new.get(self.parts[k], self.parts[k]), zero) if k in self.parts else zero
            pieces.append(b.reshape(value, shape=(*before, count, 1, *after)))
        joined = b.reshape(b.concat(*pieces, axis=axis + 1), shape=(*before, count * self.step, *after))
        high = [shape[axis] - count * self.step if k == axis else 0 for k in range(len(shape))]
        none = (0,) * len(shape)
        return b.pad(joined, low=none, high=tuple(high), interior=none, value=0) if any(high) else joined


def _sums(graph: Graph) -> dict[Node, list[Node]]:
    """The terms of each sum that adds them from first to last, by the node that adds the last one."""
    users, results = graph.users(), set(graph.results)
    result: dict[Node, list[Node]] = {}
    for node in graph.nodes:  # in program order: the sum so far is there
        if node.op is _ADD:
            first, term = node.inputs
            before = (
                result.pop(first) if first in result and users[first] == [node] and first not in results else [first]
            )
            before.append(term)
            result[node] = before
    return result


def _runs(terms: list[Node]) -> list[_Run | _Comb]:
    runs: list[_Run | _Comb] = []
    for term in terms:
        if not (runs and runs[-1].add_part(term)):
            combed = _combed_axis(term)
            runs.append(_Run(term) if combed is None else _Comb(term, combed))
    return runs


def _padded_axis(node: Node) -> int | None:
    """The only axis along which a node is zero but for a part without gaps."""
    if not _adds_zeros(node) or any(node.attrs["interior"]):
        return None
    axes = [axis for axis, low in enumerate(node.attrs["low"]) if low != 0 or node.attrs["high"][axis] != 0]
    return axes[0] if len(axes) == 1 else None


def _combed_axis(node: Node) -> int | None:
    """The only axis along which a node is zero but for one of each ``step`` elements, as many as there are steps."""
    if not _adds_zeros(node):
        return None
    low, high, interior = (node.attrs[name] for name in ("low", "high", "interior"))
    axes = [axis for axis, between in enumerate(interior) if between != 0 or low[axis] != 0 or high[axis] != 0]
    if len(axes) != 1:
        return None
    (axis,) = axes
    step, count, all = interior[axis] + 1, node.inputs[0].shape[axis], node.shape[axis]
    if not 1 < step <= _MOST_TEETH or not isinstance(count, int) or not isinstance(all, int):
        return None
    return axis if all // step == count and low[axis] < step else None


def _adds_zeros(node: Node) -> bool:
    """Whether a node is another one with zeros around it, or between its elements."""
    fill = None if node.is_parameter or node.op is not _PAD else node.attrs["value"]
    return fill == 0 and math.copysign(1, fill) > 0


def _part(pad: Node, axis: int) -> _Part:
    start = pad.attrs["low"][axis]
    return _Part(pad.inputs[0], start, start + pad.inputs[0].shape[axis])
