"""Products under masks: what nobody sees is not computed, zeros at the ends of rows are left out, and no bit tells."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler import target as targets
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.mask_analysis import needed_elements
from hybridflow.compiler.pipeline import compile_graph, optimize
from hybridflow.compiler.target import Target
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cutting_host import check_cuts, outcome
from tests.support.twins import ordered_product

pytestmark = pytest.mark.code

TARGETS = [one for one in targets.NAMED.values() if host_target.can_run(one)]
SIZES = [(1, 1, 3), (2, 9, 5), (7, 8, 4), (13, 31, 33), (40, 100, 17), (70, 300, 64), (25, 600, 8), (261, 257, 5)]


def product_graph(x: np.ndarray, y: np.ndarray, turned: bool, other: bool) -> Graph:
    b = GraphBuilder(TABLE)
    given = [b.parameter(TensorType(a.shape, a.dtype), name) for a, name in ((x, "x"), (y, "y"))]
    out = b.matmul(*given, transpose_a=turned, transpose_b=other, gaps=True)
    return Graph("product", tuple(given), tuple(b.nodes), (out,))


def with_gaps(m: int, k: int, dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Rows that begin and end with so many zeros, of either sign; some are zero throughout, some nowhere."""
    x = rng.standard_normal((m, k)).astype(dtype)
    for row in x:
        first, last = np.sort(rng.integers(0, k + 1, 2))
        if rng.random() < 0.8:
            row[:first] = 0.0
            row[last:] = -0.0
    x[m // 2 :] *= np.arange(k) >= np.arange(m)[m // 2 :, None] // 2
    return x


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.cpu}")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_zeros_at_the_ends_of_rows(target: Target, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for number, (m, k, n) in enumerate(SIZES):
        x, y = with_gaps(m, k, dtype, rng), rng.standard_normal((k, n)).astype(dtype)
        y[rng.random(y.shape) < 0.1] = -0.0
        turned, other = bool(number & 1), bool(number & 2)
        a, b = (np.ascontiguousarray(v.T if turn else v) for v, turn in ((x, turned), (y, other)))
        found = outcome(compile_graph(product_graph(a, b, turned, other), target), [a, b])
        assert same_bits(found[1], ordered_product(x, y, np.dtype(dtype))), (m, k, n)


@pytest.mark.parametrize("turned", [False, True])
def test_what_is_not_finite_is_left_out_nowhere(turned: bool) -> None:
    """Zero times infinity is NaN, wherever it stands."""
    rng = np.random.default_rng(1)
    x = np.tril(rng.standard_normal((150, 150)).astype(np.float32))
    a = np.ascontiguousarray(x.T) if turned else x
    for place, value in (((149, 0), np.inf), ((70, 63), -np.inf), ((50, 20), np.nan), ((3, 3), 3e38)):
        y = rng.standard_normal((150, 64)).astype(np.float32)
        y[place] = value
        found = check_cuts(compile_graph(product_graph(a, y, turned, False), host_target.target()), [a, y])
        expected = ordered_product(x, y, np.dtype("float32"))
        assert same_bits(found[1], expected)
        assert np.isnan(expected).any() == (value != 3e38)


def test_sums_that_vanish_have_no_sign() -> None:
    """A sum that rounds to -0 is +0 in the end, whatever is left out behind it."""
    x = np.zeros((64, 128), np.float32)
    x[:, 40] = 1e-30
    y = np.full((128, 48), -1e-30, np.float32)
    found = outcome(compile_graph(product_graph(x, y, False, False), host_target.target()), [x, y])
    expected = ordered_product(x, y, np.dtype("float32"))
    assert same_bits(found[1], expected)
    assert not np.signbit(found[1]).any()


def causal(n: int, m: int) -> Any:
    return hf.arange(n)[:, None] >= hf.arange(m)[None]


def window(n: int, m: int) -> Any:
    apart = hf.arange(n)[:, None] - hf.arange(m)[None]
    return hf.logical_and(apart >= 0, apart < 9)


def far_away(n: int, m: int) -> Any:
    return hf.logical_not(window(n, m))


def never(n: int, m: int) -> Any:
    apart = hf.arange(n)[:, None] - hf.arange(m)[None]
    return apart * apart == 3


MASKS: dict[str, Callable[[int, int], Any]] = {"causal": causal, "window": window, "far": far_away, "never": never}


@pytest.mark.parametrize("sizes", [(3, 5, 4), (40, 8, 33), (64, 32, 64), (131, 70, 90), (100, 300, 100)])
@pytest.mark.parametrize("name", MASKS)
def test_what_a_mask_hides(name: str, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, m, k)).astype("f4"), rng.standard_normal((2, k, n)).astype("f4")
    x[0, m // 2, 0], y[1, 0, n - 1] = np.nan, np.inf

    def program(x: Any, y: Any) -> Any:
        return hf.where(MASKS[name](m, n), (x @ y) * 0.5, -np.inf)

    graph = optimize(hf.function(program).get_concrete_function(x, y).graph)
    product = next(node for node in graph.nodes if node.op.name == "matmul")
    assert needed_elements(product, graph.nodes, graph.outputs, graph.inputs) is not None
    mask = np.asarray(MASKS[name](m, n))
    with np.errstate(all="ignore"):
        expected = np.where(mask, ordered_product(x, y, np.dtype("f4")) * np.float32(0.5), np.float32(-np.inf))
    for target in TARGETS:
        assert same_bits(check_cuts(compile_graph(graph, target), [x, y])[1], expected), target.cpu


@pytest.mark.parametrize("keys", [1, 8, 77, 300])
@pytest.mark.parametrize("depth", [7, 64, 300])
@pytest.mark.parametrize("turned", [False, True])
def test_one_row_of_which_a_part_is_seen(keys: int, depth: int, turned: bool) -> None:
    """As a step that is decoded looks at a cache that is not full: what else lies there is not even read."""
    rng = np.random.default_rng(6)
    q, k = rng.standard_normal((2, 1, depth)).astype("f4"), rng.standard_normal((2, keys, depth)).astype("f4")

    def program(q: Any, k: Any, at: Any) -> Any:
        product = (k @ q.mT).mT if turned else q @ k.mT
        return hf.where(hf.arange(keys) <= at, product * 0.5, -np.inf)

    graph = optimize(hf.function(program).get_concrete_function(q, k, np.int64(0)).graph)
    product = next(node for node in graph.nodes if node.op.name == "matmul")
    assert needed_elements(product, graph.nodes, graph.outputs, graph.inputs) is not None
    lanes = product.attrs["lanes"]
    for at in (-1, 0, keys // 2, keys):
        k[:, at + 1 :] = np.nan
        with np.errstate(all="ignore"):
            whole = ordered_product(q, np.swapaxes(k, 1, 2), np.dtype("f4"), lanes=lanes) * np.float32(0.5)
        expected = np.where(np.arange(keys) <= at, whole, np.float32(-np.inf))
        for target in TARGETS:
            found = check_cuts(compile_graph(graph, target), [q, k, np.asarray(at)])
            assert same_bits(found[1], expected), (target.cpu, at)
        k = rng.standard_normal(k.shape).astype("f4")


def test_a_mask_that_is_given() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((90, 40)).astype("f4"), rng.standard_normal((40, 77)).astype("f4")
    mask = np.zeros((90, 77), bool)
    mask[30:33, 5:9] = mask[89, 76] = True

    @hf.function
    def program(x: Any, y: Any, mask: Any) -> Any:
        return hf.where(mask, x @ y, 7.0)

    expected = np.where(mask, ordered_product(x, y, np.dtype("f4")), np.float32(7))
    assert same_bits(np.asarray(program(x, y, mask)), expected)


def test_open_extents() -> None:
    spec = hf.TensorSpec((None, None), hf.float32)

    @hf.function(input_signature=[spec, spec])
    def program(x: Any, y: Any) -> Any:
        return hf.where(causal(x.shape[0], y.shape[1]), x @ y, -1.0)

    rng = np.random.default_rng(4)
    for m, k, n in ((2, 2, 3), (50, 20, 40), (33, 270, 65)):
        x, y = rng.standard_normal((m, k)).astype("f4"), rng.standard_normal((k, n)).astype("f4")
        expected = np.where(np.tri(m, n, dtype=bool), ordered_product(x, y, np.dtype("f4")), np.float32(-1))
        assert same_bits(np.asarray(program(x, y)), expected)


def wanted_beside(x: Any, y: Any) -> Any:
    product = x @ y
    return hf.where(causal(8, 8), product, 0.0) + hf.sin(product)


def by_a_mask_of_floats(x: Any, y: Any) -> Any:
    return hf.where(x > 0, x @ y, 0.0)


def by_the_product_itself(x: Any, y: Any) -> Any:
    product = x @ y
    return hf.where(product > 0, product, 0.0)


def by_two_masks(x: Any, y: Any) -> Any:
    product = x @ y
    return hf.where(causal(8, 8), product, 0.0) + hf.where(window(8, 8), product, 0.0)


def as_the_fill(x: Any, y: Any) -> Any:
    return hf.where(causal(8, 8), 0.0, x @ y)


def as_both(x: Any, y: Any) -> Any:
    product = x @ y
    return hf.where(causal(8, 8), product, product)


def summed_first(x: Any, y: Any) -> Any:
    return hf.where(causal(8, 8), hf.sum(x @ y, axis=1, keepdims=True), 0.0)


@pytest.mark.parametrize(
    "program",
    [wanted_beside, by_a_mask_of_floats, by_the_product_itself, by_two_masks, as_the_fill, as_both, summed_first],
)
def test_what_is_looked_at_in_any_case_is_computed(program: Callable[..., Any]) -> None:
    x, y = np.random.default_rng(5).standard_normal((2, 8, 8)).astype("f4")
    graph = optimize(hf.function(program).get_concrete_function(x, y).graph)
    for node in graph.nodes:
        if node.op.name == "matmul":
            assert needed_elements(node, graph.nodes, graph.outputs, graph.inputs) is None
    np.testing.assert_allclose(
        np.asarray(hf.function(program)(x, y)), np.asarray(program(hf.asarray(x), hf.asarray(y))), rtol=1e-6
    )


def test_what_counts_along_a_line_is_found_without_a_division() -> None:
    """Masks and slopes of counters: with one loop over all elements each lane would divide its position."""

    def scores(q, k):
        t = hf.arange(70)
        d = t[:, None] - t[None, :]
        return hf.where((d >= 0) & (d < 9), q @ k - 0.5 * d.astype("float32"), -1e9)

    arrays = [np.random.default_rng(3).normal(size=shape).astype(np.float32) for shape in ((2, 70, 40), (2, 40, 70))]
    text = str(hf.function(scores).ir(*arrays, stage="llvm"))
    assert not re.search(r"[us](div|rem) <", text)
