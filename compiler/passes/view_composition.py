"""Chains of views, each as one index map.

What a chain of views does is a map from positions of its result to positions of the array beneath it, composed of the
ops' own element rules.  Where each axis beneath runs along one axis of the result (or stands still), the chain is
written anew in its normal form.  That leaves out every link that does nothing:

    slice  ->  reverse  ->  reshape (drops axes of one element)  ->  transpose  ->  broadcast

A map that keeps the row-major order is a reshape, or nothing at all.  A reshape that takes axes apart or joins them
stays where it is, and the links above and below it are chains of their own.  Only moves of elements change, no bits.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hybridflow.compiler.index.access_maps import access_maps_of
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar, variable
from hybridflow.compiler.ir.attributes import attrs_key, node_attrs_key
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Node, parameter
from hybridflow.compiler.ir.types import Extent, Shape, TensorType, is_one, same_extents, same_size
from hybridflow.compiler.ops import TABLE, Kind, OpDef
from hybridflow.errors import SymbolicExtentError

SLICE, REVERSE, RESHAPE = TABLE["slice"], TABLE["reverse"], TABLE["reshape"]
TRANSPOSE, BROADCAST = TABLE["transpose"], TABLE["broadcast"]
_ORDER = (SLICE, REVERSE, RESHAPE, TRANSPOSE, BROADCAST)

MOST = 8  # links that are looked at together: what lies beneath them has its normal form already


@dataclass(frozen=True)
class Link:
    """One view of a chain: an op, and its canonical attributes."""

    op: OpDef
    attrs: Mapping[str, Any] = field(compare=False)
    key: Hashable  # of the attributes

    @staticmethod
    def of(op: OpDef, attrs: Mapping[str, Any]) -> Link:
        return Link(op, attrs, attrs_key(attrs))


class AxisRun(NamedTuple):
    """Where an axis beneath is read: at ``start + step * i``, where i counts along axis ``axis`` of the result (None
    for an axis that stands still); ``turns`` positions in all."""

    axis: int | None
    start: Extent
    step: int
    length: Extent


def compose_views(b: GraphBuilder, node: Node) -> Node | None:
    """The value of a view as the normal form of the longest chain of views that ends there and has a better one."""
    chain = [node]
    while len(chain) < MOST and _is_view(chain[-1].inputs[0]):
        chain.append(chain[-1].inputs[0])
    chain.reverse()
    better = _better_form(chain[0].inputs[0].type, tuple([Link(n.op, n.attrs, node_attrs_key(n)) for n in chain]))
    if better is None:
        return None
    start, links = better
    value = chain[start].inputs[0]
    for link in links:
        value = b.emit(link.op, value, **link.attrs)
    return value


@functools.lru_cache(maxsize=4096)  # unrolled loops ask for few chains, hundreds of times each
def _better_form(beneath: TensorType, chain: tuple[Link, ...]) -> tuple[int, list[Link]] | None:
    """The first link of a chain over a value from which on it has a better form, and that form."""
    nodes = [parameter(beneath, "")]
    for link in chain:
        nodes.append(Node(link.op, [nodes[-1]], link.attrs, link.op.result((nodes[-1].type,), link.attrs)))
    for start in range(len(chain)):
        new = _normal_form(nodes[-1], nodes[start])
        if new is not None and _better(new, chain[start:]):
            return start, new
    return None


def _is_view(node: Node) -> bool:
    return not node.is_parameter and node.op.kind is Kind.VIEW


def _better(new: Sequence[Link], old: Sequence[Link]) -> bool:
    """Whether the new chain is shorter, or has more reshapes, or its links in better order; a single link may also
    have attributes that say the same more simply.  Each step is towards one end, so rewriting comes to one."""
    if len(new) == len(old) == 1 and new[0].op is old[0].op:
        return new[0].key != old[0].key
    return _measure(new) < _measure(old)


def _measure(chain: Sequence[Link]) -> tuple[int, int, int]:
    ranks = [_ORDER.index(link.op) if link.op in _ORDER else -1 for link in chain]
    inverted = sum(a > b for k, a in enumerate(ranks) for b in ranks[k + 1 :])
    return len(chain), sum(not link.op.shares_memory for link in chain), inverted


def _normal_form(node: Node, beneath: Node) -> list[Link] | None:
    """The views that make ``node`` of ``beneath``, or None where its map is not of the kind that they are."""
    vars = [LoopVar(f"i{k}", extent) for k, extent in enumerate(node.shape)]
    position = Index(node.shape, axes=[variable(var) for var in vars])
    ((_, index),) = access_maps_of(node, position, lambda n: n is beneath).leaves
    if same_size(beneath.shape, node.shape) and index.linear == position.linear:
        same = same_extents(beneath.shape, node.shape)
        return [] if same else [Link.of(RESHAPE, {"shape": node.shape})]
    runs = [_run(ix, vars) for ix in index.axes]
    known_runs = [run for run in runs if run is not None]
    axes = [run.axis for run in known_runs if run.axis is not None]
    if len(known_runs) < len(runs) or len(set(axes)) < len(axes) or 0 in node.shape:
        return None  # (without elements positions mean nothing)
    try:
        return list(_links(known_runs, beneath.type, node.shape))
    except SymbolicExtentError:  # of a slice that symbols do not allow
        return None


def _run(ix: IndexExpr, vars: Sequence[LoopVar]) -> AxisRun | None:
    start: Extent = 0
    axis, step = None, 1
    for atom, factor in ix.strides.items():
        if atom is None:
            start = factor
        elif isinstance(atom, LoopVar) and axis is None and isinstance(factor, int):
            axis, step = vars.index(atom), factor
        else:
            return None
    return AxisRun(axis, start, step, 1 if axis is None else vars[axis].extent)


def _links(runs: Sequence[AxisRun], beneath: TensorType, shape: Shape) -> Iterator[Link]:
    """The normal form's links that do something."""
    cut, turned = _cut(runs)
    if not same_extents(tuple(run.length for run in runs), beneath.shape):
        yield Link.of(SLICE, SLICE.canon((beneath,), cut))  # type: ignore[misc]
    if turned:
        yield Link.of(REVERSE, {"axes": turned})
    places = _places(runs, shape)
    kept = [place for place in places if place is not None]
    order = sorted(kept)
    moved = [run.axis for run in runs if run.axis is not None]
    small = tuple(shape[axis] for axis in order)
    if moved != sorted(moved):
        if len(kept) < len(runs):
            yield Link.of(RESHAPE, {"shape": tuple(shape[axis] for axis in kept)})
        yield Link.of(TRANSPOSE, {"perm": tuple(kept.index(axis) for axis in order)})
    rest = [extent for axis, extent in enumerate(shape) if axis not in kept]
    now = tuple(run.length for run in runs) if moved == sorted(moved) else small
    if all(map(is_one, rest)):
        small = shape  # new axes of one element repeat nothing
    if not same_extents(now, small):
        yield Link.of(RESHAPE, {"shape": small})
    if not same_extents(small, shape):
        yield Link.of(BROADCAST, {"shape": shape, "axes": tuple(order)})


def _places(runs: Sequence[AxisRun], shape: Shape) -> list[int | None]:
    """The axis of the result at which each axis ends up, None for those that are dropped.  Axes that stand still take
    the places of axes of one element, as long as there are any, and ones between their neighbours' if they can."""
    free = [axis for axis, extent in enumerate(shape) if is_one(extent)]
    result: list[int | None] = []
    for k, run in enumerate(runs):
        place = run.axis
        if place is None and free:
            before = next((p for p in reversed(result) if p is not None), -1)
            behind = next((r.axis for r in runs[k:] if r.axis is not None), len(shape))
            place = next((axis for axis in free if before < axis < behind), free[0])
            free.remove(place)
        result.append(place)
    return result


def _cut(runs: Sequence[AxisRun]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The attributes of the slice that takes each run out, counted upwards, and the axes that are then reversed."""
    start, stop, step, turned = [], [], [], []
    for axis, run in enumerate(runs):
        first, stride = run.start, run.step
        if stride < 0:
            turned.append(axis)
            first, stride = first + stride * (run.length - 1), -stride
        nothing = run.length == 0
        start.append(0 if nothing else first)
        stop.append(0 if nothing else first + stride * (run.length - 1) + 1)
        step.append(stride)
    return {"start": tuple(start), "stop": tuple(stop), "step": tuple(step)}, tuple(turned)
