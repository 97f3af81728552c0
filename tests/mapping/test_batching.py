"""Graphs for many examples: every op on its samples, and whole programs, against the examples one after another."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hybridflow import errors
from hybridflow.compiler.batching import batch
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Role
from hybridflow.compiler.ir.text import to_text
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import TABLE, Kind, OpDef
from hybridflow.eager import single_op_programs
from hybridflow.errors import HybridflowError
from tests.autodiff.test_forward import of_op
from tests.support.bits import same_bits
from tests.support.random_programs import traced

OPS = [op for op in TABLE.values() if op.arity != 0 and op.kind not in (Kind.PROJECT, Kind.CONTROL, Kind.COLLECTIVE)]
SIZE = 3


def results(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Outputs and updates, one op at a time, each by the program that eager mode runs."""
    values: dict[Any, Any] = dict(zip(graph.inputs, arrays))
    for node in graph.nodes:
        given = tuple(values[n] for n in node.inputs)
        if node.op.kind is Kind.PROJECT:
            values[node] = np.asarray(given[0][node.attrs["index"]], node.dtype)
        else:
            found = single_op_programs.run(node.op, given, node.attrs, node.type)
            values[node] = found if isinstance(found, tuple) else np.asarray(found, node.dtype)
    return [values[node] for node in graph.results]


def examples(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some arrays of one type, with the same elements in other places: indices stay in range, divisors other than 0."""
    turned = [array.ravel()[rng.permutation(array.size)].reshape(array.shape) for _ in range(SIZE - 1)]
    return np.stack([array, *turned])


def check(graph: Graph, arrays: list[np.ndarray], batched: tuple[int, ...], rng: np.random.Generator) -> bool:
    """Whether there was something to compare: examples that raise have no results."""
    tables = {node.inputs[1] for node in graph.nodes if node.op.kind is Kind.TRANSFORM}  # which are no data
    varied = [examples(a, rng) if x not in tables else np.stack([a] * SIZE) for x, a in zip(graph.inputs, arrays)]
    stacked = [varied[k] if k in batched else a for k, a in enumerate(arrays)]
    together = batch(graph, batched, SIZE)
    verify(together)
    with np.errstate(all="ignore"):
        try:
            alone = [
                results(graph, [x[i, ...] if k in batched else x for k, x in enumerate(stacked)]) for i in range(SIZE)
            ]
        except HybridflowError as error:
            with pytest.raises(type(error)):
                results(together, stacked)
            return False
        found = results(together, stacked)
    for position, (one, all_of_it) in enumerate(zip(graph.results, found)):
        for i in range(SIZE):
            part = all_of_it[i] if all_of_it.ndim > one.type.ndim else all_of_it
            assert same_bits(np.ascontiguousarray(part), np.ascontiguousarray(alone[i][position])), (
                f"result {position}, example {i}, batched {batched}\n{to_text(graph)}{to_text(together)}"
            )
    return True


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_ops_for_many_examples_have_the_bits_of_each(op: OpDef) -> None:
    rng = np.random.default_rng(1)
    checked = 0
    for dtype in dict.fromkeys(d for d in (dt.float32, dt.int8, op.dtypes[0]) if d in op.dtypes):
        for arrays, attrs in op.samples(rng, dtype)[:12]:
            if op.kind is Kind.ELEMENTWISE and (arrays[0].size > 200 or arrays[0].ndim == 0):
                continue
            graph = of_op(op, arrays, attrs)
            for count in range(1, min(len(arrays), 3) + 1):
                for batched in itertools.combinations(range(len(arrays)), count):
                    checked += check(graph, list(arrays), batched, rng)
    assert checked


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_number_of_examples_may_be_a_symbol(op: OpDef) -> None:
    size = Dim("examples")
    for arrays, attrs in op.samples(np.random.default_rng(0), op.dtypes[0])[:4]:
        graph = of_op(op, arrays, attrs)
        together = batch(graph, range(len(arrays)), size)
        verify(together)
        assert [out.shape for out in together.outputs] == [(size, *out.shape) for out in graph.outputs]


def test_what_depends_on_no_example_is_computed_once() -> None:
    b = GraphBuilder(TABLE)
    x, y = (b.parameter(TensorType((3,), dt.float32)) for _ in range(2))
    graph = batch(b.finish([b.add(x, b.exp(y)), b.sin(y)]), [0], 5)
    of = {node.op.name: node for node in graph.nodes}
    assert of["exp"].shape == of["sin"].shape == (3,)
    assert [node.shape for node in graph.outputs] == [(5, 3), (5, 3)]


def test_one_state_for_all_examples_takes_one_value() -> None:
    b = GraphBuilder(TABLE)
    x = b.parameter(TensorType((2,), dt.float32), "x")
    v = b.parameter(TensorType((2,), dt.float32), "v", Role.STATE)
    graph = b.finish([x], {1: b.add(v, x)})
    with pytest.raises(errors.ArgumentError, match="the state 'v' is one for all examples"):
        batch(graph, [0], 4)
    together = batch(graph, [0, 1], 2)
    _, updates = interpret(together, [np.float32([[1, 2], [3, 4]]), np.float32([[10, 20], [30, 40]])])
    assert updates[1].tolist() == [[11, 22], [33, 44]]
    kept = batch(b.finish([x], {1: b.exp(v)}), [0], 4)
    assert kept.updates[1].shape == (2,)


def test_random_programs_for_many_examples() -> None:
    checked = 0
    for seed in range(60):
        found = traced(seed)
        if found is None or not found[0].inputs:
            continue
        graph, arrays = found
        rng = np.random.default_rng(seed)
        state = [k for k, node in enumerate(graph.inputs) if node.attrs["role"] is Role.STATE]
        others = [k for k in range(len(arrays)) if k not in state]
        chosen = [k for k in others if rng.random() < 0.6] or others[:1]
        batched: Any = tuple(sorted([*state, *chosen]))
        if batched and max((a.size for a in arrays), default=0) < 2000:
            checked += check(graph, arrays, batched, rng)
    assert checked > 20
