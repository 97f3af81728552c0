"""The reverse walk: what is followed, what is accumulated, and what is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybridflow.compiler.autodiff import Record, backward, records_of
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE

pytestmark = pytest.mark.code

VECTOR = TensorType((3,), dt.float64)


def setup(count: int = 1) -> tuple[GraphBuilder, list[Node]]:
    b = GraphBuilder(TABLE)
    return b, [b.parameter(VECTOR) for _ in range(count)]


def value(b: GraphBuilder, node: Node, *arrays: Any) -> np.ndarray:
    return interpret(b.finish([node]), [np.asarray(a, np.float64) for a in arrays])[0][0]


def ones(b: GraphBuilder) -> Node:
    return b.full(1, like=VECTOR)


def test_uses_of_a_value_add_up() -> None:
    b, (x,) = setup()
    y = b.add(b.multiply(x, x), x)
    (g,) = backward(b, records_of(b.nodes), [(y, ones(b))], [x])
    assert np.array_equal(value(b, g, [1, 2, 3]), [3, 5, 7])


def test_seeds_of_several_targets_add_up() -> None:
    b, (x,) = setup()
    y, z = b.square(x), b.negative(x)
    (g,) = backward(b, records_of(b.nodes), [(y, ones(b)), (z, ones(b)), (x, ones(b))], [x])
    assert np.array_equal(value(b, g, [1, 2, 3]), [2, 4, 6])


def test_intermediate_values_can_be_sources() -> None:
    b, (x,) = setup()
    y = b.square(x)
    z = b.multiply(y, x)
    gx, gy, gz = backward(b, records_of(b.nodes), [(z, ones(b))], [x, y, z])
    assert np.array_equal(value(b, gx, [1, 2, 3]), [3, 12, 27])
    assert np.array_equal(value(b, gy, [1, 2, 3]), [1, 2, 3])
    assert np.array_equal(value(b, gz, [1, 2, 3]), [1, 1, 1])


def test_unconnected_sources_give_none() -> None:
    b, (x, y) = setup(2)
    z = b.stop_gradient(b.square(x))
    assert backward(b, records_of(b.nodes), [(z, ones(b))], [x, y]) == [None, None]
    assert backward(b, records_of(b.nodes), [], [x]) == [None]
    whole = b.convert(b.convert(x, dtype=dt.int64), dtype=dt.float64)
    assert backward(b, records_of(b.nodes), [(whole, ones(b))], [x]) == [None]


def test_nothing_is_computed_off_the_path() -> None:
    b = GraphBuilder(TABLE)
    matrix = TensorType((3, 3), dt.float64)
    data, weights = b.parameter(matrix), b.parameter(matrix)
    z = b.matmul(b.exp(data), weights)
    records, before = records_of(b.nodes), len(b.nodes)
    seed = b.parameter(matrix)
    (g,) = backward(b, records, [(z, seed)], [weights])
    assert [n.op.name for n in b.nodes[before:]] == ["matmul"]
    assert (g.attrs["transpose_a"], g.attrs["transpose_b"]) == (True, False)


def test_records_with_a_derivative_of_their_own() -> None:
    b, (x, y) = setup(2)
    p, q = b.square(x), b.square(y)
    made = (b.parameter(VECTOR), b.parameter(VECTOR))
    seen = []

    def vjp(*cotangents: Any) -> tuple[Any, ...]:
        seen.append(cotangents)
        return b.negative(cotangents[0]), None

    records = [*records_of(b.nodes), Record(None, (p, q), {}, made, vjp)]
    seed = ones(b)
    gx, gy = backward(b, records, [(made[0], seed)], [x, y])
    assert seen == [(seed, None)]
    assert gy is None
    inputs = [[1, 2, 3]] * 4
    assert np.array_equal(value(b, gx, *inputs), [-2, -4, -6])


@pytest.mark.parametrize("depth", [3])
def test_derivatives_of_derivatives(depth: int) -> None:
    b, (x,) = setup()
    y = b.multiply(b.multiply(x, x), b.multiply(x, x))
    for _ in range(depth):
        (y,) = backward(b, records_of(b.nodes), [(y, ones(b))], [x])
    assert np.allclose(value(b, y, [1, 2, 3]), [24, 48, 72])
