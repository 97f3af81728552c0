"""Look-ups at places that lie evenly: they are views.

``x[i[:, None] * 160 + j]`` with two ranges reads frames of a signal.  The places that are looked up may be known to be
``start + step * i + ...`` in the positions i along the axes of the indices.  Where none lies outside, no index has to
be made, looked at, or gathered with: what is read is a slice, or windows of one, some axes of which are turned round or
repeated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridflow.compiler.index.access_maps import access_maps_of
from hybridflow.compiler.index.index_expr import Index, LoopVar, variable
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Shape, is_static
from hybridflow.compiler.ops.op_table import Kind
from hybridflow.compiler.passes.pattern_match import literal, splat

_MOST = 64  # nodes that are looked at for one answer


class AffineSequence(NamedTuple):
    """Integers that are ``start``, and ``steps[a]`` more at each position along axis a."""

    start: int
    steps: tuple[int, ...]

    def ends(self, shape: Shape) -> tuple[int, int]:
        """The least and the most of an array that is not empty."""
        ways = [step * (extent - 1) for step, extent in zip(self.steps, shape) if isinstance(extent, int)]
        return self.start + sum(min(way, 0) for way in ways), self.start + sum(max(way, 0) for way in ways)


def affine_gather_as_view(b: GraphBuilder, node: Node) -> Node | None:
    """What a ``take`` reads, as a view, where its indices lie evenly and inside."""
    x, indices = node.inputs
    axis = node.attrs["axis"]
    extent, shape = x.shape[axis], indices.shape
    if not isinstance(extent, int) or not is_static(shape) or 0 in shape:
        return None
    affine = _AffineAnalysis().of(indices)
    if affine is None:
        return None
    low, high = affine.ends(shape)
    if not _holds(indices.dtype, low, high):
        return None
    if -extent <= low and high < 0:  # counted from the end
        affine = affine._replace(start=affine.start + extent)
        low, high = low + extent, high + extent
    if low < 0 or high >= extent:
        return None
    return _strided_view(b, x, axis, affine, shape, node.shape)


def _strided_view(b: GraphBuilder, x: Node, axis: int, places: AffineSequence, shape: Shape, result: Shape) -> Node:
    moving = [a for a, step in enumerate(places.steps) if step and shape[a] != 1]
    low, high = places.ends(shape)
    value = _cut(b, x, axis, low, high, abs(places.steps[moving[0]]) if len(moving) == 1 else 1)
    # From the innermost axis on: each leaves in its place an axis of the places at which its windows begin.
    for number in range(len(moving) - 1, 0, -1):
        a, before = moving[number], moving[number - 1]
        step = abs(places.steps[before]) if number == 1 else 1
        size, dilation = (shape[a],), (abs(places.steps[a]),)
        value = b.windows(value, axes=(axis,), size=size, step=(step,), dilation=dilation)
    turned = tuple(axis + number for number, a in enumerate(moving) if places.steps[a] < 0)
    value = b.reverse(value, axes=turned) if turned else value
    small = (*result[:axis], *(shape[a] for a in moving), *result[axis + len(shape) :])
    if not moving:
        value = b.reshape(value, shape=small)
    kept = (*range(axis), *(axis + a for a in moving), *range(axis + len(shape), len(result)))
    return b.broadcast(value, shape=result, axes=kept) if small != result else value


def _cut(b: GraphBuilder, x: Node, axis: int, low: int, high: int, step: int) -> Node:
    """From ``low`` to ``high`` along an axis."""
    start = tuple(low if a == axis else 0 for a in range(x.type.ndim))
    stop = tuple(high + 1 if a == axis else n for a, n in enumerate(x.shape))
    return b.slice(x, start=start, stop=stop, step=tuple(step if a == axis else 1 for a in range(x.type.ndim)))


class _AffineAnalysis:
    """Finds out whether integers lie evenly."""

    def __init__(self) -> None:
        self.seen = 0

    def of(self, node: Node) -> AffineSequence | None:
        """Of a node without empty axes.  Sums and products are not asked whether they wrap: one that
        lies inside of an array in the end was right all the while."""
        self.seen += 1
        if node.is_parameter or self.seen > _MOST or not dt.is_integer(node.dtype):
            return None
        number = splat(node)
        if number is not None:
            return AffineSequence(int(number), (0,) * node.type.ndim)
        name, attrs = node.op.name, node.attrs
        if name == "iota":
            return AffineSequence(0, tuple(int(a == attrs["axis"]) for a in range(node.type.ndim)))
        if name == "constant":
            return _of_elements(node)
        if name in ("add", "subtract", "multiply"):
            sides = [self.of(side) for side in node.inputs]
            return None if None in sides else _calculated(name, *sides)  # type: ignore[arg-type]
        return self._through(node) if node.op.kind in (Kind.VIEW, Kind.ELEMENTWISE) and len(node.inputs) == 1 else None

    def _through(self, node: Node) -> AffineSequence | None:
        """Of a view, or a conversion."""
        (beneath,) = node.inputs
        even = self.of(beneath)
        if even is None:
            return None
        if node.op.kind is Kind.VIEW:
            return _viewed(even, node, beneath)
        if not is_static(node.shape):  # what is beneath may be of any shape
            return None
        low, high = even.ends(node.shape)
        fits = _holds(beneath.dtype, low, high) and _holds(node.dtype, low, high)
        return even if fits and node.op.name == "convert" else None


def _viewed(even: AffineSequence, node: Node, beneath: Node) -> AffineSequence | None:
    vars = [LoopVar(f"i{k}", extent) for k, extent in enumerate(node.shape)]
    position = Index(node.shape, axes=[variable(var) for var in vars])
    ((_, index),) = access_maps_of(node, position, lambda n: n is beneath).leaves
    start, steps = even.start, [0] * len(vars)
    for step, ix in zip(even.steps, index.axes):
        for atom, factor in ix.strides.items() if step else ():
            if not isinstance(factor, int):
                return None  # from the end of an axis whose extent is open
            if atom is None:
                start += step * factor
            elif isinstance(atom, LoopVar):
                steps[vars.index(atom)] += step * factor
            else:
                return None  # a reshape that takes axes apart
    return AffineSequence(start, tuple(steps))


def _holds(dtype: np.dtype, low: int, high: int) -> bool:
    limits = np.iinfo(dtype)
    return int(limits.min) <= low and high <= int(limits.max)


def _of_elements(node: Node) -> AffineSequence | None:
    """Of a constant that was calculated."""
    known = literal(node)
    if known is None:
        return None
    elements = np.frombuffer(known.data, known.type.dtype).reshape(known.type.shape).astype(object)
    first = elements[(0,) * elements.ndim]
    steps = [_next(elements, a) - first if elements.shape[a] > 1 else 0 for a in range(elements.ndim)]
    positions = np.indices(elements.shape).astype(object)
    wanted = first + sum((step * position for step, position in zip(steps, positions)), np.zeros_like(elements))
    return AffineSequence(first, tuple(steps)) if np.array_equal(wanted, elements) else None


def _next(elements: np.ndarray, axis: int) -> int:
    return elements[tuple(int(a == axis) for a in range(elements.ndim))]


def _calculated(name: str, x: AffineSequence, y: AffineSequence) -> AffineSequence | None:
    if name == "multiply":
        if any(x.steps):
            x, y = y, x
        if any(x.steps):
            return None
        return AffineSequence(x.start * y.start, tuple(x.start * step for step in y.steps))
    sign = -1 if name == "subtract" else 1
    return AffineSequence(x.start + sign * y.start, tuple(a + sign * c for a, c in zip(x.steps, y.steps)))
