"""Local algebra, as rows of (pattern, replacement).

Every row preserves the bits of every result, NaN, infinities and signed zeros included.  That is why some familiar
rules are absent for floats: 0 * x is NaN for an infinite x, x - x too, x + 0.0 turns -0.0 into 0.0, and sums are
never regrouped.  A row's replacement may still say None, for conditions that its pattern cannot express.

The rows at the end follow from the facts that ops declare, so that a new op usually needs no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.op_table import Kind
from hybridflow.compiler.ops.value_ranges import bounds, decided_comparison
from hybridflow.compiler.passes.affine_gathers import affine_gather_as_view
from hybridflow.compiler.passes.matmul_rewrites import small_matmul_as_fma
from hybridflow.compiler.passes.pattern_match import Apply, Match, Number, Value, find, op, splat
from hybridflow.compiler.passes.rewriter import rewrite
from hybridflow.compiler.passes.view_composition import BROADCAST, compose_views


class Row(NamedTuple):
    pattern: Apply
    replace: Callable[[GraphBuilder, Match], Node | None]


def simplify(graph: Graph) -> Graph:
    return rewrite(graph, _apply_rows)


def _apply_rows(b: GraphBuilder, node: Node) -> Node | None:
    for row in _ROWS_OF.get(node.op.name, ()):
        match = find(row.pattern, node)
        if match is not None:
            replacement = row.replace(b, match)
            if replacement is not None:
                return replacement
    if node.op.kind is Kind.VIEW:
        return compose_views(b, node)
    return _before_broadcast(b, node) if node.op.kind is Kind.ELEMENTWISE else None


X, Y, Z = Value(), Value(), Value()
C, D = Value(lambda node: splat(node) is not None), Value(lambda node: splat(node) is not None)
I = Value(lambda node: dtypes.is_integer(node.dtype))
ZERO = Number(0)


# Arithmetic


def _multiply_by_reciprocal(b: GraphBuilder, m: Match) -> Node | None:
    """x / 2**k is x * 2**-k: both are the one number, rounded once, as long as 2**-k is a number of the dtype."""
    divisor: Any = splat(m[C])
    mantissa, _ = np.frexp(np.float64(divisor))
    with np.errstate(all="ignore"):
        reciprocal = divisor.dtype.type(1) / divisor
    if abs(mantissa) != 0.5 or not np.isfinite(reciprocal) or reciprocal == 0:
        return None
    return b.multiply(m[X], b.full(reciprocal, m.root.type))


ARITHMETIC = [
    Row(X / C, _multiply_by_reciprocal),
    Row(I * ZERO, lambda b, m: m[ZERO]),
    Row(I - I, lambda b, m: b.full(0, m.root.type)),
    Row(op.stop_gradient(X), lambda b, m: m[X]),  # a mark for differentiation, which is over by now
    Row(op.transfer(X), lambda b, m: m[X]),  # a program has one device: it was cut before it came here
    Row(op.transfer_back(X, Y), lambda b, m: m[X]),
]


# Truth and selection

TRUTH = [
    Row(op.where(Z, X, X), lambda b, m: m[X]),
    Row(op.where(op.logical_not(Z), X, Y), lambda b, m: b.where(m[Z], m[Y], m[X])),
    Row(op.logical_not(op.logical_not(X)), lambda b, m: m[X]),
    # With a NaN, x == y is false and x != y true.  No such pair exists for <: both x < y and x >= y are false.
    Row(op.logical_not(op.equal(X, Y)), lambda b, m: b.not_equal(m[X], m[Y])),
    Row(op.logical_not(op.not_equal(X, Y)), lambda b, m: b.equal(m[X], m[Y])),
]


def _decided(b: GraphBuilder, m: Match) -> Node | None:
    """A comparison of integers whose bounds do not meet."""
    x, y = m.root.inputs
    if dtypes.is_float(x.dtype):
        return None
    answer = decided_comparison(m.root.op.name, bounds(x), bounds(y))
    return None if answer is None else b.full(answer, m.root.type)


COMPARISONS = [
    Row(Apply(name, ...), _decided) for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
]


# Conversions

FIRST = op.convert(X)


def _convert_once(b: GraphBuilder, m: Match) -> Node | None:
    """x -> through -> to without the stop, where the stop loses nothing that arrives at the end."""
    x, through, to = m[X].dtype, m[FIRST].dtype, m.root.dtype
    if all(map(dtypes.is_integer, (x, through, to))) and to.itemsize <= through.itemsize:
        return b.convert(m[X], dtype=to)  # integers wrap: only the low bits count
    if not dtypes.embeds(x, through):
        return None
    if dtypes.is_integer(x) and dtypes.is_float(through) and dtypes.is_integer(to) and not dtypes.embeds(x, to):
        return None  # floats saturate where integers wrap
    return b.convert(m[X], dtype=to)


CONVERSIONS = [
    Row(op.convert(X), lambda b, m: m[X] if m[X].type == m.root.type else None),
    Row(op.convert(FIRST), _convert_once),
]


# Joins


def _unchanged(b: GraphBuilder, m: Match) -> Node | None:
    return m[X] if m[X].type == m.root.type else None


def _concat_of_nonempty(b: GraphBuilder, m: Match) -> Node | None:
    axis = m.root.attrs["axis"]
    parts = [n for n in m.root.inputs if n.shape[axis] != 0]
    if len(parts) == len(m.root.inputs) > 1 or not parts:
        return None
    return b.concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


CONCATS = [
    Row(op.pad(X), _unchanged),
    Row(op.concat(...), _concat_of_nonempty),
]


# Look-ups, and sums of one element a line

SCATTER = op.scatter_add_along_axis(C, X, Y)


def _at_one_place(b: GraphBuilder, m: Match) -> Node | None:
    """c + y where a line's only index points, c elsewhere: the derivative of one element looked up in each line, which
    kernels then calculate where they read it, instead of an array of next to nothing but zeros."""
    base, indices, axis = m[C], m[X], m.root.attrs["axis"]
    extent, dtype = base.shape[axis], indices.dtype
    in_range = dtype == dtypes.int64 or (isinstance(extent, int) and extent < 1 << 31)
    if indices.shape[axis] != 1 or not in_range:
        return None
    # Nothing, but for the check that the index lies inside.
    inside = b.take(b.full(0, TensorType((extent,), dtype)), indices, axis=0)
    length = b.broadcast(b.extent(value=extent, dtype=dtype), shape=indices.shape, axes=())
    from_front = b.where(b.less(indices, b.full(0, indices)), b.add(indices, length), indices)
    place = _along(b, b.add(from_front, inside), base, axis)
    here = b.equal(b.iota(shape=base.shape, axis=axis, dtype=dtype), place)
    return b.where(here, b.add(base, _along(b, m[Y], base, axis)), base)


def _along(b: GraphBuilder, x: Node, like: Node, axis: int) -> Node:
    """An array of one element along an axis, repeated there."""
    axes = tuple(a for a in range(like.type.ndim) if a != axis)
    line = b.reshape(x, shape=tuple(like.shape[a] for a in axes))
    return b.broadcast(line, shape=like.shape, axes=axes)


GATHERS = [
    Row(SCATTER, _at_one_place),
    Row(op.take(X, I), lambda b, m: affine_gather_as_view(b, m.root)),
]


# Products of few numbers

PRODUCTS = [Row(op.matmul(X, Y), lambda b, m: small_matmul_as_fma(b, m.root))]


# What the declared facts say


def _regroup(b: GraphBuilder, m: Match) -> Node:
    """f(f(x, c), d) is f(x, f(c, d)), which folding makes one constant."""
    return b.emit(m.root.op, m[X], b.emit(m.root.op, m[C], m[D]))


def _rows_of_facts(name: str, arity: int | None, facts: Mapping[str, Any]) -> Iterator[Row]:
    if arity == 1:
        inner = Apply(name, X)
        if facts.get("idempotent"):
            yield Row(Apply(name, inner), lambda b, m: m[inner])
        if facts.get("involution"):
            yield Row(Apply(name, inner), lambda b, m: m[X])
        return
    if facts.get("idempotent"):
        yield Row(Apply(name, X, X), lambda b, m: m[X])
    for side in ("identity", "right_identity"):
        if side in facts:
            yield Row(Apply(name, X, facts[side]), lambda b, m: m[X])
    if "absorbing" in facts:
        absorbing = Number(facts["absorbing"])
        yield Row(Apply(name, X, absorbing), lambda b, m: m[absorbing])
    if facts.get("associative") and facts.get("commutative") and facts.get("exact"):
        yield Row(Apply(name, Apply(name, X, C), D), _regroup)


FACTS = [
    row
    for declared in TABLE.values()
    if declared.kind is Kind.ELEMENTWISE
    for row in _rows_of_facts(declared.name, declared.arity, declared.facts)
]

_ROWS_OF: dict[str, list[Row]] = {}
for _row in (*ARITHMETIC, *TRUTH, *COMPARISONS, *CONVERSIONS, *CONCATS, *GATHERS, *PRODUCTS, *FACTS):
    _ROWS_OF.setdefault(_row.pattern.op.name, []).append(_row)


# Not a row, because it holds for every elementwise op


def _before_broadcast(b: GraphBuilder, node: Node) -> Node | None:
    """f(broadcast(x), broadcast(y)) is broadcast(f(x, y)): fewer elements, and constants meet constants.

    The inputs must be broadcasts of equal shapes along equal axes, or of scalars.  An op that may raise stays:
    the broadcast may be empty and what it repeats not.
    """
    if any(n.op is not BROADCAST for n in node.inputs):
        return None
    if node.may_raise:
        return None
    kinds = {(n.inputs[0].shape, n.attrs["axes"]) for n in node.inputs}
    scalar = ((), ())
    if len(kinds - {scalar}) > 1:
        return None
    shape, axes = next(iter(kinds - {scalar}), scalar)
    if len(shape) == node.type.ndim:  # nothing is repeated
        return None
    small = [
        n.inputs[0] if n.inputs[0].shape == shape else b.broadcast(n.inputs[0], shape=shape, axes=())
        for n in node.inputs
    ]
    return b.broadcast(b.emit(node.op, *small, **node.attrs), shape=node.shape, axes=axes)
