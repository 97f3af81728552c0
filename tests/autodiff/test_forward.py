"""Tangents: of every op on its samples, and of whole programs, against finite differences and against reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hybridflow.compiler.autodiff import backward, records_of
from hybridflow.compiler.forward_mode import jvp
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.text import to_text
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import NOT_DIFFERENTIABLE, TABLE, Kind, OpDef
from hybridflow.errors import HybridflowError
from tests.compiler.ops.test_ops_table import DIFFERENTIABLE, NO_DERIVATIVE, smooth, types_of
from tests.support.bits import same_bits
from tests.support.random_programs import traced

pytestmark = pytest.mark.code


def of_op(op: OpDef, arrays: tuple[np.ndarray, ...], attrs: dict[str, Any]) -> Graph:
    b = GraphBuilder(TABLE)
    made = b.emit(op, *(b.parameter(t) for t in types_of(arrays)), **attrs)
    return b.finish(b.results(made) if isinstance(made.type, TupleType) else [made])


def float_inputs(graph: Graph) -> list[int]:
    """Those that have a tangent: real and complex ones."""
    return [k for k, node in enumerate(graph.inputs) if dt.is_inexact(node.dtype)]


def drawn(rng: np.random.Generator, node: Node) -> np.ndarray:
    made = rng.standard_normal(node.shape)
    if dt.is_complex(node.dtype):
        made = made + 1j * rng.standard_normal(node.shape)
    return np.asarray(made).astype(node.dtype)


def values(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return interpret(graph, arrays)[0]


OPS = [op for op in DIFFERENTIABLE if op.name not in NO_DERIVATIVE]  # to all of their inputs


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_tangents_against_finite_differences(op: OpDef) -> None:
    rng = np.random.default_rng(5)
    checked = 0
    for arrays, attrs in op.samples(rng, dt.float64):
        if op.kind is Kind.ELEMENTWISE and (arrays[0].size > 20 or attrs.get("dtype", dt.float64) != dt.float64):
            continue
        arrays = smooth(op, arrays, rng)
        graph = of_op(op, arrays, attrs)
        along = float_inputs(graph)
        moves = [drawn(rng, graph.inputs[k]) for k in along]
        value, *_, tangent = values(jvp(graph, along), [*arrays, *moves])
        ends = []
        for h in (1e-5, -1e-5):
            moved = list(arrays)
            for k, move in zip(along, moves):
                moved[k] = arrays[k] + h * move
            ends.append(values(graph, moved)[0])
        assert tangent.shape == value.shape and tangent.dtype == value.dtype
        np.testing.assert_allclose(tangent, (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-6)
        checked += value.size > 0
    assert checked


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_tangents_along_each_input_alone_have_the_type_of_the_result(op: OpDef) -> None:
    for dtype in (dt.float16, dt.float32):
        for arrays, attrs in op.samples(np.random.default_rng(0), dtype):
            graph = of_op(op, arrays, attrs)
            made = [out.type for out in graph.outputs]
            for k in float_inputs(graph):
                types = [node.type for node in jvp(graph, [k]).outputs]
                assert types == [*made, *(type for type in made if dt.is_float(type.dtype))]


def test_no_smooth_dependence_is_a_tangent_of_zeros() -> None:
    b = GraphBuilder(TABLE)
    x, n = b.parameter(TensorType((3,), dt.float32)), b.parameter(TensorType((3,), dt.int64))
    graph = b.finish([b.floor(x), b.add(n, n), b.multiply(x, b.stop_gradient(x)), b.convert(n, dtype=dt.float32)])
    given = [np.float32([1.5, 2, -3]), np.array([1, 2, 3]), np.float32([1, 10, 100])]
    *_, floor, product, converted = values(jvp(graph, [0]), given)
    assert same_bits(floor, np.zeros(3, np.float32)) and same_bits(converted, np.zeros(3, np.float32))
    assert same_bits(product, np.float32([1.5, 20, -300]))


def test_tangents_of_updates_follow_those_of_the_outputs() -> None:
    b = GraphBuilder(TABLE)
    v = b.parameter(TensorType((2,), dt.float64), "v", Role.STATE)
    graph = jvp(b.finish([b.square(v)], {0: b.multiply(v, b.square(v))}), [0])
    outputs, updates = interpret(graph, [np.array([2.0, 3.0]), np.array([1.0, 10.0])])
    assert [x.tolist() for x in outputs] == [[4, 9], [4, 60], [12, 270]]
    assert updates[0].tolist() == [8, 27]


@pytest.mark.parametrize("name", ["sqrt", "rsqrt", "log", "reciprocal"])
def test_where_shields_tangents_from_poles(name: str) -> None:
    b = GraphBuilder(TABLE)
    x = b.parameter(TensorType((3,), dt.float64))
    zero = b.full(0, like=x.type)
    inside = b.greater(x, zero)
    guarded = b.where(inside, getattr(b, name)(b.where(inside, x, zero)), zero)
    given = [np.array([0.0, -1.0, 4.0]), np.ones(3)]
    tangent = values(jvp(b.finish([guarded]), [0]), given)[1]
    assert np.array_equal(tangent[:2], [0, 0]) and np.isfinite(tangent[2])


def transposed_pair(graph: Graph, rng: np.random.Generator, arrays: list[np.ndarray]) -> tuple[float, float, float]:
    """<w, J t> by forward mode, <J' w, t> by reverse mode, and what their terms amount to.

    Of complex numbers it is the real part of the product, neither of whose operands is conjugated.
    """
    along = float_inputs(graph)
    moves = [drawn(rng, graph.inputs[k]) for k in along]
    floats = [node for node in graph.results if dt.is_inexact(node.dtype)]
    weights = [drawn(rng, node) for node in floats]
    tangents = values(jvp(graph, along), [*arrays, *moves])[len(graph.outputs) :]

    def products(left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return [(np.complex128(x) * y).real for x, y in zip(left, right, strict=True)]

    b = GraphBuilder(TABLE)
    b.inputs, b.nodes = list(graph.inputs), list(graph.nodes)
    records = records_of(graph.nodes)
    seeds = [(node, b.parameter(node.type)) for node in floats]
    sources = [graph.inputs[k] for k in along]
    found = backward(b, records, seeds, sources)
    cotangents = values(b.finish([b.full(0, like=x.type) if g is None else g for x, g in zip(sources, found)]),
                        [*arrays, *weights])  # fmt: skip
    terms, others = products(weights, tangents), products(cotangents, moves)
    size = sum(float(np.abs(x).sum()) for x in (*terms, *others))
    return sum(float(x.sum()) for x in terms), sum(float(x.sum()) for x in others), size


def test_forward_and_reverse_mode_agree_on_random_programs(some: Callable[..., list[int]]) -> None:
    compared, seeds = 0, some(range(120), 40)
    for seed in seeds:
        found = traced(seed)
        if found is None or not float_inputs(found[0]):
            continue
        graph, arrays = found
        dtypes = {n.dtype for n in (*graph.inputs, *graph.nodes)}
        if any(dt.is_complex(dtype) or (dt.is_float(dtype) and dtype.itemsize < 4) for dtype in dtypes):
            continue  # of reals alone: which results have a tangent is taken for granted
        try:
            forward, reverse, size = transposed_pair(graph, np.random.default_rng(seed), arrays)
        except HybridflowError:
            continue  # a program that raises
        if np.isfinite(size) and size > 0:
            assert abs(forward - reverse) <= 1e-4 * size, f"program {seed}\n{to_text(graph)}"
            compared += 1
    assert compared > len(seeds) // 8


def test_ops_that_are_not_differentiable_have_no_rule_for_tangents() -> None:
    assert not [op.name for op in TABLE.values() if op.jvp is not None and op.vjp is NOT_DIFFERENTIABLE]
