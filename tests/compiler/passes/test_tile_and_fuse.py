"""Panels of rows: the pass finds attention however it is written, the scores lie nowhere, and bits stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.compiler import target as targets
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.passes import tile_and_fuse as passes, tile_heights, tile_regions
from hybridflow.compiler.passes.tile_heights import TileHeights
from hybridflow.compiler.pipeline import compile_graph, optimize
from hybridflow.compiler.target import Target
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cutting_host import check_cuts, outcome

pytestmark = pytest.mark.code

Program = Callable[..., Any]
NEAR = TileHeights(1 << 19)


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def turned(x: Any) -> Any:
    return hf.permute_dims(x, (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2))


def by_hand(q: Any, k: Any, v: Any) -> Any:
    return hf.nn.softmax(q @ turned(k) / np.float32(q.shape[-1] ** 0.5)) @ v


def by_einsum(q: Any, k: Any, v: Any) -> Any:
    """Steps before heads."""
    scores = hf.einsum("bthd,bshd->bhts", q, k) * 0.25
    return hf.einsum("bhts,bshd->bthd", hf.nn.softmax(scores, axis=-1), v)


def unshifted(q: Any, k: Any, v: Any) -> Any:
    powers = hf.exp(q @ turned(k) * 0.1)
    return powers @ v / hf.sum(powers, axis=-1, keepdims=True)


def hidden(q: Any, k: Any, v: Any) -> Any:
    n = q.shape[-2]
    seen = hf.arange(n)[:, None] >= hf.arange(n)[None]
    return hf.nn.softmax(hf.where(seen, q @ turned(k), -1e9)) @ v


def columns(q: Any, k: Any, v: Any) -> Any:
    """The rows of the softmax are columns of the product."""
    return turned(turned(v) @ hf.nn.softmax(k @ turned(q), axis=-2))


def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return hf.nn.softmax(q @ turned(k) + mask) @ v


def of_one_array(x: Any, w: Any) -> Any:
    """Queries, keys and values are parts of one product's result."""
    b, t, c = x.shape
    q, k, v = hf.permute_dims(hf.reshape(x @ w, (b, t, 3, 2, c // 2)), (2, 0, 3, 1, 4))
    return hf.reshape(hf.permute_dims(by_hand(q, k, v), (0, 2, 1, 3)), (b, t, c))


def causal_of_one_array(x: Any, w: Any) -> Any:
    """Rows' maxima are kept for the derivatives in another shape than that in which they are made."""
    b, t, c = x.shape
    q, k, v = hf.permute_dims(hf.reshape(x @ w, (b, t, 3, 2, c // 2)), (2, 0, 3, 1, 4))
    return hf.reshape(hf.permute_dims(causal(q, k, v), (0, 2, 1, 3)), (b, t, c))


def two_layers(x: Any, w: Any) -> Any:
    return of_one_array(hf.tanh(of_one_array(x, w)), w)


def attend(q: Any, k: Any, v: Any) -> Any:
    return hf.nn.scaled_dot_product_attention(q, k, v)


def causal(q: Any, k: Any, v: Any) -> Any:
    return hf.nn.scaled_dot_product_attention(q, k, v, is_causal=True)


def gradient(program: Program) -> Program:
    def run(*given: Any) -> Any:
        sources = given[:3]  # not of a mask: that is what a gradient of scores is for
        with hf.GradientTape() as tape:
            tape.watch(sources)
            loss = hf.sum(hf.sin(program(*given)))
        return [loss, *tape.gradient(loss, sources)]

    return run


def shared(q: Any, k: Any, v: Any) -> Any:
    """Heads share keys and values: their queries are the rows of one product."""
    return hf.nn.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def shared_causal(q: Any, k: Any, v: Any) -> Any:
    return hf.nn.scaled_dot_product_attention(q, k, v, enable_gqa=True, is_causal=True)


def shared_masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return hf.nn.scaled_dot_product_attention(q, k, v, enable_gqa=True, attn_mask=mask)


def heads(t: int, s: int, d: int, *batch: int) -> list[np.ndarray]:
    return [some(*batch, t, d), some(*batch, s, d), some(*batch, s, d + 1)]


ONE_ARRAY = [some(2, 37, 12), some(12, 36)]
WAYS: dict[str, tuple[Program, list[np.ndarray]]] = {
    "by hand": (by_hand, heads(70, 70, 5, 2, 3)),
    "one matrix": (by_hand, heads(300, 41, 4)),
    "einsum": (by_einsum, [some(2, 33, 3, 8), some(2, 50, 3, 8), some(2, 50, 3, 9)]),
    "unshifted": (unshifted, heads(33, 64, 8, 4)),
    "hidden": (hidden, heads(45, 45, 8, 1, 4)),
    "columns": (columns, heads(40, 33, 6, 3)),
    "mask of its own": (masked, [*heads(34, 50, 6, 2, 3), some(34, 50)]),
    "mask of keys": (masked, [*heads(34, 50, 6, 2, 3), some(2, 1, 1, 50)]),
    "of one array": (of_one_array, ONE_ARRAY),
    "two layers": (two_layers, ONE_ARRAY),
    "attend": (attend, heads(64, 64, 8, 2, 2)),
    "causal": (causal, heads(65, 65, 8, 2, 2)),
    "shared": (shared, [some(2, 6, 40, 5), some(2, 2, 33, 5), some(2, 2, 33, 6)]),
    "shared by all": (shared_causal, [some(4, 37, 5), some(1, 37, 5), some(1, 37, 6)]),
    "shared, with masks": (
        shared_masked,
        [some(2, 6, 40, 5), some(2, 2, 33, 5), some(2, 2, 33, 6), some(2, 6, 40, 33)],
    ),
    "shared, with one mask": (
        shared_masked,
        [some(2, 6, 40, 5), some(2, 3, 33, 5), some(2, 3, 33, 6), some(40, 33)],
    ),
    "gradient by hand": (gradient(by_hand), heads(70, 90, 5, 2)),
    "gradient of long rows": (gradient(by_hand), heads(520, 80, 4, 2)),
    "gradient of columns": (gradient(columns), heads(270, 33, 6, 2)),
    "gradient of single values": (gradient(by_hand), [some(2, 260, 5), some(2, 70, 5), some(2, 70, 1)]),
    "gradient of hidden": (gradient(hidden), heads(260, 260, 4, 2)),
    "gradient of one array": (gradient(of_one_array), ONE_ARRAY),
    "gradient of causal of one array": (gradient(causal_of_one_array), ONE_ARRAY),
    "gradient of two layers": (gradient(two_layers), ONE_ARRAY),
    "gradient of attend": (gradient(attend), heads(64, 64, 8, 3)),
    "gradient of causal": (gradient(causal), heads(257, 257, 3, 2)),
    "gradient of masked": (gradient(masked), [*heads(34, 50, 6, 2, 3), some(3, 34, 50)]),
}


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_regions, "LEAST", 1)
    monkeypatch.setattr(tile_heights, "FEW_UNITS", 1)


def graph_of(program: Program, arrays: Sequence[np.ndarray]) -> Graph:
    return optimize(hf.function(program).get_concrete_function(*arrays).graph)


def largest(graph: Graph) -> int:
    """The elements of the largest value outside of panels, but for views and what is made of nothing."""
    return max(n.type.size for n in graph.nodes if n.inputs and n.op.name not in ("panels", "broadcast"))


def program_of(graph: Graph, target: Target, plainly: bool = False) -> Any:
    with flags.SKIP("tile_and_fuse" if plainly else ""):
        return compile_graph(graph, target)


@pytest.mark.parametrize("way", WAYS)
def test_scores_lie_nowhere_and_bits_stay(way: str) -> None:
    program, arrays = WAYS[way]
    graph = graph_of(program, arrays)
    found = passes.tile_and_fuse(graph, TileHeights(1 << 14))
    verify(found, way)
    assert to_text(parse(to_text(found), TABLE)) == to_text(found)
    assert sum(n.op.name == "panels" for n in found.nodes) >= (2 if "two" in way else 1)
    assert largest(found) < largest(graph)
    for one, other in zip(interpret(found, arrays)[0], interpret(graph, arrays)[0]):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    target = host_target.target().with_(l2=1 << 14)
    plain = outcome(program_of(graph, target, plainly=True), arrays)
    expected = check_cuts(program_of(graph, target), arrays)
    assert all(map(same_bits, expected[1:], plain[1:]))


@pytest.mark.parametrize("name", [name for name, one in targets.NAMED.items() if host_target.can_run(one)])
@pytest.mark.parametrize("way", ["gradient of one array", "gradient of causal"])
def test_other_targets_have_the_same_bits(way: str, name: str) -> None:
    program, arrays = WAYS[way]
    graph = graph_of(program, arrays)
    found = outcome(program_of(graph, targets.NAMED[name]), arrays)
    plain = outcome(program_of(graph, host_target.target(), plainly=True), arrays)
    assert all(map(same_bits, found[1:], plain[1:]))


@pytest.mark.parametrize("program", [by_hand, causal, gradient(hidden)], ids=["by hand", "causal", "gradient"])
def test_what_is_not_finite_goes_the_same_way(program: Program) -> None:
    arrays = heads(66, 66, 4, 2)
    arrays[0][0, 3] = np.inf
    arrays[1][1, 5] = np.nan
    arrays[2][0, 60] = -np.inf
    arrays[0][1, 7] = 3e38
    graph = graph_of(program, arrays)
    with np.errstate(all="ignore"):
        found, plain = (outcome(program_of(graph, host_target.target(), plainly), arrays) for plainly in (False, True))
    assert all(map(same_bits, found[1:], plain[1:]))


def test_a_mask_that_hides_all() -> None:
    arrays = heads(66, 66, 4, 2)
    mask = np.zeros((66, 66), bool)
    mask[40:] = True

    def program(q: Any, k: Any, v: Any) -> Any:
        return hf.nn.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    graph = graph_of(gradient(program), arrays)
    assert any(n.op.name == "panels" for n in passes.tile_and_fuse(graph, NEAR).nodes)
    found, plain = (outcome(program_of(graph, host_target.target(), plainly), arrays) for plainly in (False, True))
    assert all(map(same_bits, found[1:], plain[1:]))


@pytest.mark.parametrize("spec", [(None, 3, 40, 8), (2, None, 40, 8)])
def test_open_batch_axes(spec: tuple[int | None, ...]) -> None:
    function = hf.function(gradient(by_hand), input_signature=[hf.TensorSpec(spec, hf.float32)] * 3)
    arrays = [some(2, 3, 40, 8)] * 3
    graph = optimize(function.get_concrete_function().graph)
    assert any(n.op.name == "panels" for n in passes.tile_and_fuse(graph, NEAR).nodes)
    found, plain = (outcome(program_of(graph, host_target.target(), plainly), arrays) for plainly in (False, True))
    assert all(map(same_bits, found[1:], plain[1:]))


def test_open_keys() -> None:
    specs = [hf.TensorSpec((2, 40, 8), hf.float32), *[hf.TensorSpec((2, None, 8), hf.float32)] * 2]
    function = hf.function(gradient(by_hand), input_signature=specs)
    graph = optimize(function.get_concrete_function().graph)
    assert any(n.op.name == "panels" for n in passes.tile_and_fuse(graph, NEAR).nodes)
    for keys in (2, 57):
        arrays = [some(2, 40, 8), some(2, keys, 8), some(2, keys, 8)]
        found, plain = (outcome(program_of(graph, host_target.target(), plainly), arrays) for plainly in (False, True))
        assert all(map(same_bits, found[1:], plain[1:]))


def transformer(layers: int) -> Graph:
    """A step of training: products of which most are part of no region."""
    weights = [some(12, 36) * 0.3, some(12, 12) * 0.3, some(12, 24) * 0.3, some(24) * 0.3, some(24, 12) * 0.3]

    def normed(x: Any) -> Any:
        x = x - hf.mean(x, axis=-1, keepdims=True)
        return x / hf.sqrt(hf.mean(x * x, axis=-1, keepdims=True) + 1e-3)

    def program(x: Any, *weights: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(weights)
            y = x
            for _ in range(layers):
                q, k, v = hf.permute_dims(hf.reshape(y @ weights[0], (2, 37, 3, 2, 6)), (2, 0, 3, 1, 4))
                attended = hf.permute_dims(by_hand(q, k, v), (0, 2, 1, 3))
                y = normed(y + hf.reshape(attended, y.shape) @ weights[1])
                y = normed(y + hf.nn.gelu(y @ weights[2] + weights[3]) @ weights[4])
            loss = hf.mean(y**2)
        return loss, tape.gradient(loss, weights)

    return graph_of(program, [some(74, 12), *weights])


@pytest.mark.parametrize("way", [*WAYS, "transformer"])
def test_giving_up_early_changes_nothing(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = transformer(2) if way == "transformer" else graph_of(*WAYS[way])
    found = passes.tile_and_fuse(graph, TileHeights(1 << 14))
    monkeypatch.setattr(tile_regions.Region, "_leaks", lambda *_: False)
    assert to_text(found) == to_text(passes.tile_and_fuse(graph, TileHeights(1 << 14)))


def test_regions_of_a_long_program_are_looked_for_in_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = []
    grow = tile_regions.Region._grow
    monkeypatch.setattr(tile_regions.Region, "_grow", lambda self, node: (grown.append(node), grow(self, node))[1])
    steps = []
    for layers in (2, 6):
        graph = transformer(layers)
        grown.clear()
        assert passes.tile_and_fuse(graph, NEAR) is not graph
        steps.append(len(grown))
    assert steps[1] < 3.5 * steps[0]


def test_scores_that_are_wanted_are_made_as_ever() -> None:
    def program(q: Any, k: Any, v: Any) -> Any:
        shares = hf.nn.softmax(q @ turned(k))
        return shares @ v, shares

    graph = graph_of(program, heads(64, 64, 8, 4))
    assert passes.tile_and_fuse(graph, NEAR) is graph


def test_what_has_no_statistics_of_rows_is_left_alone() -> None:
    graph = graph_of(lambda x, a, b: hf.nn.gelu(x @ a) @ b, [some(64, 16), some(16, 64), some(64, 16)])
    assert passes.tile_and_fuse(graph, NEAR) is graph


def test_few_units_are_left_to_what_is_cut_finer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_heights, "FEW_UNITS", 8)
    graph = graph_of(by_hand, heads(64, 64, 8, 4))
    assert passes.tile_and_fuse(graph, TileHeights(1 << 20)) is graph
    assert passes.tile_and_fuse(graph, TileHeights(1 << 14)) is not graph  # two panels of each head
