"""Index arithmetic: the position that a chain of views reads, against NumPy, at every turn of the loops.

Symbolic extents are followed once and evaluated for several sizes.  Divisions are unsigned in machine code, so what is
divided may never be negative.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hybridflow import flags
from hybridflow.compiler.codegen.core.elements import _spell_atoms, _written_first
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.index import iteration_space as spaces
from hybridflow.compiler.index.access_maps import AccessMaps, _Anything
from hybridflow.compiler.index.index_expr import Index, IndexExpr, LoopVar, Quotient, Remainder, computed, variable
from hybridflow.compiler.index.permutations import is_permutation
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.extents import Dim, value_at
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.polynomial import Bound
from hybridflow.compiler.ir.types import Shape, TensorType, same_size
from hybridflow.compiler.ops import TABLE
from hybridflow.errors import CompileError

Sizes = dict[str, int]


def size_of(extent: int | Dim, sizes: Sizes) -> int:
    return value_at(extent, sizes)


def evaluate(ix: IndexExpr, at: dict[LoopVar, int], sizes: Sizes) -> int:
    total = 0
    for (atom, names), factor in ix.terms:
        part = factor * math.prod(sizes[name] for name in names)
        if isinstance(atom, LoopVar):
            part *= at[atom]
        elif isinstance(atom, (Quotient, Remainder)):
            value, divisor = evaluate(atom.value, at, sizes), size_of(atom.divisor, sizes)
            assert value >= 0, f"{atom.value} is negative"
            part *= value // divisor if isinstance(atom, Quotient) else value % divisor
        total += part
    return total


def at_sizes(polynomial: Bound, sizes: Sizes) -> int:
    return sum(factor * math.prod(sizes[name] for name in names) for names, factor in polynomial.items())


def random_view(b: GraphBuilder, rng: np.random.Generator, x: Node) -> Node:
    """A view of ``x``: of symbolic extents only what is allowed of them."""
    kind = rng.choice(["transpose", "reverse", "slice", "merge", "split", "expand", "broadcast"])
    if kind == "transpose":
        return b.transpose(x, perm=tuple(int(a) for a in rng.permutation(x.type.ndim)))
    if kind == "reverse":
        return b.reverse(x, axes=tuple(a for a in range(x.type.ndim) if rng.random() < 0.6))
    if kind == "slice":
        cuts = [random_cut(rng, extent) for extent in x.shape]
        start, stop, step = zip(*cuts) if cuts else ((), (), ())
        return b.slice(x, start=start, stop=stop, step=step)
    if kind == "broadcast" and x.type.ndim < 4:
        at = int(rng.integers(0, x.type.ndim + 1))
        shape = (*x.shape[:at], int(rng.integers(1, 4)), *x.shape[at:])
        return b.broadcast(x, shape=shape, axes=tuple(a for a in range(len(shape)) if a != at))
    if kind == "expand" and x.type.ndim < 4:
        at = int(rng.integers(0, x.type.ndim + 1))
        return b.reshape(x, shape=(*x.shape[:at], 1, *x.shape[at:]))
    if x.type.is_static:
        options = [
            s for s in itertools.product(range(1, 13), repeat=int(rng.integers(1, 4))) if math.prod(s) == x.type.size
        ]
    else:  # the same extents as other axes
        options = [tuple(s) for s in itertools.permutations(x.shape)] if x.type.ndim < 5 else []
    return b.reshape(x, shape=options[rng.integers(0, len(options))]) if options else x


def random_cut(rng: np.random.Generator, extent: int | Dim) -> tuple[int, int | Dim, int]:
    if isinstance(extent, Dim) or rng.random() < 0.5:
        return 0, extent, 1
    start = int(rng.integers(0, extent))
    return start, int(rng.integers(start + 1, extent + 1)), int(rng.integers(1, 3))


def reference(graph: Graph, size: int, sizes: Sizes) -> np.ndarray:
    """Which element of the parameter each element of the result is."""
    first = graph.inputs[0]
    values = {first: np.arange(size).reshape([size_of(e, sizes) for e in first.shape])}
    for node in graph.nodes:
        attrs = {k: tuple(size_of(e, sizes) if isinstance(e, Dim) else e for e in v) for k, v in node.attrs.items()}
        values[node] = np.asarray(node.op.reference(values[node.inputs[0]], **attrs))
    return values[graph.outputs[0]]


SHAPES: list[Shape] = [
    (3, 3),
    (2, 3, 4),
    (12,),
    (1, 6),
    (5, 1, 2),
    (Dim("n"), 3),
    (Dim("n"), Dim("m")),
    (4, Dim("n"), 1),
    (Dim("n"), Dim("n")),
    (Dim("n"), 2, Dim("m")),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_permutes_reaches_every_element_once(shape: Shape) -> None:
    rng = np.random.default_rng(len(shape))
    found = {True: 0, False: 0}
    sizes = {"n": 4, "m": 3}
    size = math.prod(size_of(e, sizes) for e in shape)
    for _ in range(150):
        b = GraphBuilder(TABLE, "views")
        x = y = b.parameter(TensorType(shape, dt.float32))
        for _ in range(int(rng.integers(1, 4))):
            y = random_view(b, rng, y)
        space = spaces.flat(y.shape)
        reads = AccessMaps(lambda node: node.is_parameter)
        reads.follow(y, Index(y.shape, linear=space.full))
        elements = reference(b.finish([y]), size, sizes).ravel()
        if same_size(x.shape, y.shape):
            once = sorted(elements.tolist()) == list(range(size))
            sure = is_permutation(reads.leaves[0][1].linear, space)
            assert once or not sure
            found[sure] += 1
    assert found[True] > found[False]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("flat", [False, True], ids=["per axis", "flat"])
def test_chains_of_views_read_what_numpy_reads(shape: Shape, flat: bool) -> None:
    rng = np.random.default_rng(len(shape) + flat)
    for _ in range(60):
        b = GraphBuilder(TABLE, "views")
        x = y = b.parameter(TensorType(shape, dt.float32))
        for _ in range(int(rng.integers(2, 7))):
            y = random_view(b, rng, y)
        graph = b.finish([y])
        space = spaces.flat(y.shape) if flat else spaces.over(y.shape)
        reads = AccessMaps(lambda node: node.is_parameter)
        if flat:
            reads.follow(y, Index(y.shape, linear=space.full))
        else:
            reads.follow(y, Index(y.shape, axes=[variable(v) for v in space.vars]))
        ((leaf, index),) = reads.leaves
        assert leaf is x
        for n, m in ((2, 2), (2, 3), (3, 2), (3, 4)) if not y.type.is_static else ((1, 1),):
            sizes = {"n": n, "m": m}
            expected = reference(graph, math.prod(size_of(e, sizes) for e in shape), sizes).ravel()
            extents = [range(size_of(v.extent, sizes)) for v in space.vars]
            low, high = index.linear.bounds
            for want, turn in zip(expected, itertools.product(*extents), strict=True):
                found = evaluate(index.linear, dict(zip(space.vars, turn)), sizes)
                assert found == want, index
                assert low is None or at_sizes(low, sizes) <= found
                assert high is None or found <= at_sizes(high, sizes)


def test_a_constant_is_not_split_from_what_it_keeps_positive() -> None:
    i = LoopVar("i", 7)
    position = variable(i) * -1 + 6
    for turn in range(7):
        assert evaluate(position // 3, {i: turn}, {}) == (6 - turn) // 3
        assert evaluate(position % 3, {i: turn}, {}) == (6 - turn) % 3


def test_a_reversed_symbolic_axis_is_split_without_dividing() -> None:
    n = Dim("n")
    i, j = LoopVar("i", 5), LoopVar("j", n)
    position = variable(i) * n + n - 1 - variable(j)
    assert position // n == variable(i)
    assert position % n == variable(j) * -1 + n - 1


def test_dividing_what_may_be_negative_is_an_error_when_verifying(monkeypatch: pytest.MonkeyPatch) -> None:
    i = LoopVar("i", 7)
    position = variable(i) * -1 + 6
    monkeypatch.setattr(IndexExpr, "_split", lambda self, divisor: (IndexExpr({(None, ()): 2}), variable(i) * -1))
    with flags.VERIFY(1), pytest.raises(CompileError, match="may be negative"):
        position // 3
    with flags.VERIFY(1), pytest.raises(CompileError, match="may be negative"):
        position % 3


def test_terms_of_one_factor_are_written_in_one_order() -> None:
    """The order must not follow the hashes, which are addresses: the text is what the disk cache is keyed by."""
    orders = set()
    for _ in range(50):
        i, j, k = (LoopVar(name, 5) for name in "ijk")
        a, b = variable(i) * 7 + variable(j), variable(j) * 7 + variable(k)
        looked_up = [computed(Val(ref, dt.int64, 1), 9) for ref in ("%v1", "%v2", "%v3")]
        total = a // 3 + b // 3 + a % 3 + b % 3 + looked_up[0] + looked_up[1] + (looked_up[2] + variable(k)) // 2
        assert len(total.terms) == 7
        orders.add(str([_spell_atoms(atom) for (atom, _), _ in sorted(total.terms, key=_written_first)]))
    assert len(orders) == 1


@pytest.mark.parametrize("decide", [bool, len, list, int, lambda v: v == 1, lambda v: v < 1, lambda v: 1 in v, hash])
def test_an_element_rule_may_not_decide_by_a_value(decide: Callable[[Any], Any]) -> None:
    value = _Anything()
    assert value.add(value, 1)[0] is value
    with pytest.raises((CompileError, TypeError)):
        decide(value)


def test_digits_that_repeat_or_are_left_out_permute_nothing() -> None:
    p, q = LoopVar("p", 12), LoopVar("q", 12)
    flat, square = spaces.Space((p,), (False,)), spaces.Space((p, q), (False, False))
    x, y = variable(p), variable(q)
    assert is_permutation(x, flat) and is_permutation(x * -1 + 11, flat)
    assert is_permutation(x % 4 * 3 + x // 4, flat) and is_permutation(x // 4 * 4 + (x % 4 * -1 + 3), flat)
    assert is_permutation(x + y * 12, square) and is_permutation(x * 12 + y, square)
    for position in (x % 4, x // 4, x % 4 + x // 4, x % 4 * 3, x % 6 * 2 + x // 4, x * 2, x % 5 * 3 + x // 5):
        assert not is_permutation(position, flat), position
    for position in (x, x + y, x * 12 + y * 12, x * 12 + y % 4, x * 11 + y):
        assert not is_permutation(position, square), position


@pytest.mark.parametrize("divisor", [2, 3, 7, 112])
def test_of_a_constant_what_the_divisor_divides_is_divided(divisor: int) -> None:
    i = LoopVar("i", 5)
    for start in range(3 * divisor + 2):
        for step in (-1, 1, 3):
            if start + 4 * step < 0:
                continue
            position = variable(i) * step + start
            for turn in range(5):
                at = {i: turn}
                assert evaluate(position // divisor, at, {}) == (start + step * turn) // divisor
                assert evaluate(position % divisor, at, {}) == (start + step * turn) % divisor
    row = variable(LoopVar("j", 96)) + 8 * 112 + 8
    assert row % 112 == row - 8 * 112 and row // 112 == IndexExpr({(None, ()): 8})
