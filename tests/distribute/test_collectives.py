"""Collectives on one process against their references in NumPy, over many numbers of replicas and all dtypes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.ops.evaluation_order import replica_fold
from hybridflow.compiler.ops.replica_tree import canonical_nodes, finished, folded
from tests.support.bits import same_bits

D = hf.distribute
SIZES = (1, 2, 3, 4, 5, 7, 8, 9)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)


def values(size: int, shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Of many magnitudes, so that each order of a sum has other bits; NaN, infinities and zeros of both signs among
    them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, *shape)) * 10.0 ** rng.integers(-3, 4, (size, *shape))
    if np.dtype(dtype).kind in "iu":
        return x.astype(np.int64).astype(dtype)
    flat = x.reshape(size, -1)
    if flat.shape[1] > 6:
        flat[size // 2, 0], flat[0, 1], flat[:, 2], flat[:, 3] = np.nan, np.inf, -0.0, 0.0
        flat[0, 4], flat[-1, 4] = np.inf, -np.inf
    return flat.reshape(x.shape).astype(dtype)


def run(size: int, function: Callable[..., Any], *stacked: Any, compiled: bool = False) -> Any:
    """What each replica returns, stacked."""
    strategy = D.MirroredStrategy(replicas=size)

    def call(*given: Any) -> Any:
        result = strategy.run(function, args=[D.PerReplica(x) for x in given])
        return hf.tree.map(lambda leaf: leaf, result)

    return (hf.function(call) if compiled else call)(*stacked)


def test_the_tree_is_left_complete() -> None:
    text = folded(lambda a, b: f"({a}{b})", list("abcdefg"))
    assert text == "(((ab)(cd))((ef)g))"
    assert folded(lambda a, b: f"({a}{b})", list("abcde")) == "(((ab)(cd))e)"
    assert folded(lambda a, b: a + b, ["x"]) == "x"


@pytest.mark.parametrize("size", range(1, 18))
def test_runs_of_any_length_make_the_same_tree(size: int) -> None:
    """Whoever has a run hands on its nodes; these cover all, each once, and make the root that one would make alone."""
    leaves = [str(k) for k in range(size)]
    whole = folded(lambda a, b: f"({a} {b})", leaves)
    rng = np.random.default_rng(size)
    for count in range(1, size + 1):
        cuts = [0, *sorted(rng.choice(np.arange(1, size), count - 1, replace=False).tolist()), size]
        nodes = {}
        for begin, end in itertools.pairwise(cuts):
            for low, high in canonical_nodes(begin, end, size):
                assert begin <= low < high <= end
                nodes[low, high] = folded(lambda a, b: f"({a} {b})", leaves[low:high])
            assert len(canonical_nodes(begin, end, size)) <= 2 * size.bit_length()
        assert sum(high - low for low, high in nodes) == size
        assert finished(lambda a, b: f"({a} {b})", nodes, size) == whole


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.uint8], ids=lambda d: np.dtype(d).name)
def test_all_reduce_has_the_bits_of_the_tree(size: int, dtype: Any) -> None:
    for shape in ((), (0,), (1,), (13,), (3, 5)):
        x = values(size, shape, dtype)
        found = np.asarray(run(size, lambda v: D.all_reduce(v), x).stacked)
        wide = np.float32 if np.dtype(dtype).itemsize == 2 else dtype
        expected = replica_fold(np.add, x.astype(wide)).astype(dtype)
        for k in range(size):
            assert same_bits(found[k], expected)


def test_the_tree_is_not_a_sequence() -> None:
    x = values(7, (64,), np.float32)
    found = np.asarray(run(7, lambda v: D.all_reduce(v), x).stacked)[0]
    in_sequence = x[0]
    for value in x[1:]:
        with np.errstate(invalid="ignore"):
            in_sequence = in_sequence + value
    assert (found != in_sequence).any()


@pytest.mark.parametrize("size", (1, 3, 4))
@pytest.mark.parametrize("reduce", ("mean", "max", "min"))
def test_other_reductions(size: int, reduce: str) -> None:
    x = values(size, (3, 5), np.float32)
    found = np.asarray(run(size, lambda v: D.all_reduce(v, reduce), x).stacked)
    combine = {"mean": np.add, "max": np.maximum, "min": np.minimum}[reduce]
    expected = replica_fold(combine, x) / np.float32(size if reduce == "mean" else 1)
    assert all(same_bits(one, expected) for one in found)


@pytest.mark.parametrize("compiled", (False, True))
@pytest.mark.parametrize("size", (1, 2, 3))
def test_what_moves_values(size: int, compiled: bool) -> None:
    x = np.random.default_rng(0).normal(size=(size, 2 * size, 3 * size)).astype(np.float32)
    x[0, 0, 0], x[-1, -1, -1] = np.nan, -0.0

    def moved(v: Any) -> Any:
        return {
            "gather": [D.all_gather(v, along=axis) for axis in (0, 1, -1)],
            "scatter": [D.reduce_scatter(v, along=axis) for axis in (0, 1)],
            "to_all": [D.all_to_all(v, split=s, concat=c) for s in (0, 1) for c in (0, 1)],
            "broadcast": D.broadcast(v, size - 1),
            "permute": D.permute(v, [(0, size - 1)]),
            "index": D.axis_index(),
        }

    found = hf.tree.map(lambda leaf: np.asarray(leaf), run(size, moved, x, compiled=compiled))
    total = replica_fold(np.add, x)
    shifted = np.zeros_like(x)
    shifted[size - 1] = x[0]
    expected = {
        "gather": [np.stack([np.concatenate(list(x), axis)] * size) for axis in (0, 1, -1)],
        "scatter": [np.stack(np.split(total, size, axis)) for axis in (0, 1)],
        "to_all": [
            np.stack([np.concatenate([np.split(one, size, s)[k] for one in x], c) for k in range(size)])
            for s in (0, 1)
            for c in (0, 1)
        ],
        "broadcast": np.stack([x[size - 1]] * size),
        "permute": shifted,
        "index": np.arange(size),
    }
    for name, wanted in expected.items():
        got = found[name]
        for one, other in zip(
            got if isinstance(got, list) else [got], wanted if isinstance(wanted, list) else [wanted]
        ):
            assert same_bits(np.asarray(one.stacked), other), name


def test_what_is_the_same_for_all_is_reduced_like_what_differs() -> None:
    """Seven equal numbers do not add up to seven times one of them."""
    x = np.asarray([0.1, 1e30, 3.0], np.float32)
    alike = np.asarray(run(7, lambda: D.all_reduce(hf.asarray(x))).stacked)[0]
    stacked = np.asarray(run(7, lambda v: D.all_reduce(v), np.stack([x] * 7)).stacked)[0]
    assert same_bits(alike, stacked) and same_bits(alike, replica_fold(np.add, np.stack([x] * 7)))


# ---- derivatives


def gradients(size: int, function: Callable[[Any], Any], x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of the sum over replicas of each one's weighted results, by a tape in each replica."""

    def replica(v: Any, w: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(v)
            loss = hf.sum(function(v) * w)
        return tape.gradient(loss, v)

    return np.asarray(run(size, replica, x, weights).stacked)


@pytest.mark.parametrize("compiled", (False, True))
def test_a_gradient_within_replicas_is_that_of_the_sum_of_all(compiled: bool) -> None:
    """Against differences of the sum, taken outside."""
    size, rng = 3, np.random.default_rng(0)
    x = rng.normal(size=(size, 6, 3))
    functions: dict[str, Callable[[Any], Any]] = {
        "sum": lambda v: D.all_reduce(v) ** 2,
        "mean": lambda v: D.all_reduce(v, "mean") * v,
        "max": lambda v: D.all_reduce(v, "max") ** 2,
        "gather": lambda v: D.all_gather(v, along=1) ** 2,
        "scatter": lambda v: D.reduce_scatter(v, "mean") ** 2,
        "to_all": lambda v: D.all_to_all(v, split=0, concat=1) ** 2,
        "broadcast": lambda v: D.broadcast(v, 1) * v,
        "permute": lambda v: D.permute(v, [(0, 1), (1, 0)]) * v,
    }
    for name, function in functions.items():
        results = np.asarray(run(size, function, x).stacked)
        w = rng.normal(size=results.shape)
        found = gradients(size, function, x, w)
        step = 1e-6
        for place in [(0, 0, 0), (1, 2, 1), (2, 5, 2)]:
            ends = []
            for sign in (1, -1):
                moved = x.copy()
                moved[place] += sign * step
                ends.append((np.asarray(run(size, function, moved, compiled=compiled).stacked) * w).sum())
            assert np.isclose(found[place], (ends[0] - ends[1]) / (2 * step), rtol=1e-4, atol=1e-6), (name, place)


def test_ties_share_the_derivative_of_a_largest_value() -> None:
    x = np.asarray([[1.0], [1.0], [0.0]], np.float32)
    found = gradients(3, lambda v: D.all_reduce(v, "max"), x, np.ones((3, 1), np.float32))
    assert found.ravel().tolist() == [1.5, 1.5, 0.0]


def test_a_tape_outside_sees_what_replicas_do() -> None:
    strategy = D.MirroredStrategy(replicas=3)
    x = hf.Variable([[1.0], [2.0], [3.0]])
    with hf.GradientTape() as tape:
        y = strategy.run(lambda v: D.all_reduce(v) ** 2, args=(D.PerReplica(x.value()),))
        loss = strategy.reduce("sum", y)
    gradient = tape.gradient(loss, x)
    assert np.asarray(gradient).tolist() == [[[36.0], [36.0], [36.0]]][0]


def test_forward_mode() -> None:
    def replica(v: Any) -> Any:
        return hf.jvp(lambda u: D.all_reduce(u) * u, (v,), (hf.ones_like(v),))[1]

    x = np.asarray([1.0, 2.0, 4.0], np.float32)
    found = np.asarray(run(3, replica, x).stacked)
    assert found.tolist() == [7 + 3 * 1, 7 + 3 * 2, 7 + 3 * 4]


# ---- within other transformations, and control flow


def test_an_inner_vmap_keeps_the_replicas_apart_from_its_examples() -> None:
    x = values(3, (4, 2), np.float32, 5)[:, :, :]
    found = np.asarray(run(3, lambda v: hf.vmap(lambda row: D.all_gather(row))(v), x).stacked)
    for k in range(3):
        assert same_bits(found[k], np.concatenate(list(x), 1))


@pytest.mark.parametrize("compiled", (False, True))
def test_loops_and_branches_that_all_replicas_take(compiled: bool) -> None:
    def replica(v: Any) -> Any:
        for _ in range(3):
            total = D.all_reduce(v)
            v = hf.cond(total > 0, lambda v=v: D.all_reduce(v, "mean") + v, lambda v=v: v - 1)
        n = hf.asarray(0)
        while D.all_reduce(v) < 1000:
            v, n = v * 2, n + 1
        return v, n

    x = np.asarray([1.0, 2.0, 4.0], np.float32)
    found, n = run(3, replica, x, compiled=compiled)
    v = x.copy()
    for _ in range(3):
        v = v + v.sum() / np.float32(3) if v.sum() > 0 else v - 1
    turns = 0
    while v.sum() < 1000:
        v, turns = v * 2, turns + 1
    assert np.allclose(np.asarray(found.stacked), v, rtol=1e-6) and np.asarray(n.stacked).tolist() == [turns] * 3


def test_axis_index_in_a_loop_of_what_is_the_same_for_all() -> None:
    found = run(3, lambda: hf.fori_loop(0, 4, lambda k, total: total + D.axis_index(), hf.asarray(0)))
    assert np.asarray(found.stacked).tolist() == [0, 4, 8]


def test_replicas_that_would_wait_for_each_other_are_an_error() -> None:
    def branches(v: Any) -> Any:
        return hf.cond(v > 0, lambda: D.all_reduce(v), lambda: v)

    def loops(v: Any) -> Any:
        return hf.while_loop(lambda u: u < 8, lambda u: u + D.all_reduce(u) * 0 + 1, (v,))[0]

    for function in (branches, loops):
        with pytest.raises(errors.ArgumentError, match=r"all_reduce.*test_collectives\.py.*each replica's own"):
            run(2, function, np.asarray([1.0, -1.0], np.float32))


def test_branches_of_each_replicas_own_are_fine_without_collectives() -> None:
    found = run(2, lambda v: D.all_reduce(hf.cond(v > 0, lambda: v, lambda: -v)), np.asarray([1.0, -2.0], np.float32))
    assert np.asarray(found.stacked).tolist() == [3.0, 3.0]


# ---- bad input


def test_bad_arguments() -> None:
    x = np.ones((2, 3), np.float32)
    cases: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
        (errors.ArgumentError, "reduce is 'total'", lambda v: D.all_reduce(v, "total")),
        (errors.ArgumentError, "no replicas lie along 'model'", lambda v: D.all_reduce(v, axis="model")),
        (errors.ArgumentTypeError, "axis is 3", lambda v: D.all_reduce(v, axis=3)),
        (errors.DTypeError, "Expected numbers", lambda v: D.all_reduce(v > 0)),
        (errors.DTypeError, "mean is of floats", lambda v: D.all_reduce(hf.astype(v, hf.int32), "mean")),
        (errors.ShapeError, "2 equal parts", lambda v: D.reduce_scatter(v)),
        (errors.ShapeError, "2 equal parts", lambda v: D.all_to_all(v)),
        (errors.AxisError, "axis 2", lambda v: D.all_gather(v, along=2)),
        (errors.ArgumentError, "one of 2 replicas", lambda v: D.broadcast(v, 2)),
        (errors.ArgumentError, "the target of two", lambda v: D.permute(v, [(0, 1), (1, 1)])),
        (errors.ArgumentTypeError, "pairs", lambda v: D.permute(v, [(0, 1, 2)])),
    ]
    for kind, text, function in cases:
        with pytest.raises(kind, match=text):
            run(2, function, x)
    with pytest.raises(errors.ArgumentError, match="there are no replicas here"):
        D.all_reduce(1.0)
    with pytest.raises(errors.ArgumentError, match="there are no replicas here"):
        hf.vmap(lambda v: D.all_reduce(v))(x)
