"""Chains of views have one normal form: the same elements, from a chain that is never longer."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.text import to_text
from hybridflow.compiler.ir.types import Dim, TensorType, is_static
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.passes.pass_manager import run
from hybridflow.compiler.passes.pass_pipeline import SIMPLIFY_PIPELINE

ORDER = ["slice", "reverse", "reshape", "transpose", "broadcast"]


def grown(b: GraphBuilder, x: Node, rng: np.random.Generator) -> Node:
    """One view more, of any kind; symbolic extents are left whole."""
    shape, ndim = x.shape, x.type.ndim
    kind = rng.choice(["slice", "slice", "reverse", "transpose", "transpose", "broadcast", "reshape", "unit"])
    if kind == "slice":
        cuts = []
        for extent in shape:
            start, step = (int(rng.integers(0, 2)), int(rng.integers(1, 3))) if isinstance(extent, int) else (0, 1)
            start = start if isinstance(extent, int) and extent > 1 else 0
            stop = extent if not isinstance(extent, int) or rng.random() < 0.6 else max(start, extent - 1)
            cuts.append((start, stop, step))
        start, stop, step = zip(*cuts) if cuts else ((), (), ())
        return b.slice(x, start=start, stop=stop, step=step)
    if kind == "reverse":
        return b.reverse(x, axes=tuple(a for a in range(ndim) if rng.random() < 0.5))
    if kind == "transpose":
        return b.transpose(x, perm=tuple(int(a) for a in rng.permutation(ndim)))
    if kind == "broadcast" and ndim < 5:
        at = int(rng.integers(0, ndim + 1))
        extent = int(rng.integers(1, 4))
        axes = tuple(a for a in range(ndim + 1) if a != at)
        return b.broadcast(x, shape=(*shape[:at], extent, *shape[at:]), axes=axes)
    if kind == "reshape" and is_static(shape) and 0 not in shape:
        size = math.prod(shape)
        first = int(rng.choice([d for d in range(1, size + 1) if size % d == 0]))
        return b.reshape(x, shape=(first, size // first))
    if ndim < 5:
        at = int(rng.integers(0, ndim + 1))
        return b.reshape(x, shape=(*shape[:at], 1, *shape[at:]))
    return x


def chain(seed: int, shape: tuple[Any, ...]) -> Graph:
    rng = np.random.default_rng(seed)
    b = GraphBuilder(TABLE)
    x = b.parameter(TensorType(shape, dt.int64))
    view = x
    for _ in range(int(rng.integers(1, 7))):
        view = grown(b, view, rng)
    return b.finish([view])


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2), (5,), (1, 3), (2, 0), (Dim("n"), 3), (2, Dim("n"), Dim("m"))])
@pytest.mark.sample(3)
def test_chains_have_a_normal_form_with_the_same_elements(shape: Any) -> None:
    for seed in range(150):
        graph = chain(seed, shape)
        after = run(graph, SIMPLIFY_PIPELINE)
        extents = {"n": 3, "m": 2}
        actual = tuple(extents[str(e)] if isinstance(e, Dim) else e for e in shape)
        x = np.arange(math.prod(actual)).reshape(actual)
        assert np.array_equal(interpret(graph, [x])[0][0], interpret(after, [x])[0][0]), to_text(graph) + to_text(after)
        assert len(after.nodes) <= len(graph.nodes)
        assert run(after, SIMPLIFY_PIPELINE) is after
        names = [node.op.name for node in after.nodes]
        for first, second in itertools.pairwise(names):
            if 0 in after.outputs[0].shape:
                continue  # views of nothing stay as they are
            assert first != second, to_text(after)
            if "reshape" not in (first, second):
                assert ORDER.index(first) < ORDER.index(second), to_text(after)


def links(graph: Graph) -> list[str]:
    return [node.op.name for node in run(graph, SIMPLIFY_PIPELINE).nodes]


def of(build: Any, *shape: Any) -> list[str]:
    b = GraphBuilder(TABLE)
    return links(b.finish([build(b, b.parameter(TensorType(shape, dt.float32)))]))


def test_chains_that_do_nothing_go() -> None:
    n = Dim("n")
    assert of(lambda b, x: b.transpose(b.transpose(x, perm=(1, 2, 0)), perm=(2, 0, 1)), 2, 3, 4) == []
    turned = {"perm": (1, 0)}
    for shape in ((3, 4), (n, 4), (n, Dim("m"))):
        assert of(lambda b, x: b.transpose(b.reverse(b.transpose(b.reverse(x, axes=0), **turned), axes=1), **turned),
                  *shape) == []  # fmt: skip
    assert of(lambda b, x: b.reshape(b.reshape(x, shape=(n, 2, 2)), shape=(n, 4)), n, 4) == []


def test_axes_of_one_element_come_and_go_without_a_move() -> None:
    unit = {"shape": (3, 1, 4)}
    assert of(lambda b, x: b.transpose(b.reshape(x, **unit), perm=(1, 0, 2)), 3, 4) == ["reshape"]
    assert of(lambda b, x: b.transpose(b.reshape(x, **unit), perm=(2, 1, 0)), 3, 4) == ["reshape", "transpose"]
    assert of(lambda b, x: b.reshape(b.broadcast(x, shape=(1, 3, 1), axes=(1,)), shape=(3,)), 3) == []


def test_moves_go_to_the_small_side_of_broadcasts() -> None:
    wide = {"shape": (8, 3, 4), "axes": (1, 2)}
    assert of(lambda b, x: b.transpose(b.broadcast(x, **wide), perm=(2, 0, 1)), 3, 4) == ["transpose", "broadcast"]
    assert of(lambda b, x: b.transpose(b.broadcast(x, **wide), perm=(0, 1, 2)), 3, 4) == ["broadcast"]
    assert of(lambda b, x: b.reverse(b.broadcast(x, **wide), axes=(0, 2)), 3, 4) == ["reverse", "broadcast"]
    cut = {"start": (2, 0, 1), "stop": (4, 3, 3), "step": (1, 2, 1)}
    assert of(lambda b, x: b.slice(b.broadcast(x, **wide), **cut), 3, 4) == ["slice", "broadcast"]


def test_reshapes_that_take_axes_apart_stay() -> None:
    assert of(lambda b, x: b.transpose(b.reshape(b.transpose(x, perm=(1, 0)), shape=(2, 6)), perm=(1, 0)), 3, 4) == [
        "transpose", "reshape", "transpose",
    ]  # fmt: skip
