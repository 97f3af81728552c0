"""Ragged tensors against lists of NumPy arrays, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.ragged import Ragged

RNG = np.random.default_rng(3)


def rows_of(lengths: list[int], inner: tuple[int, ...] = ()) -> list[np.ndarray]:
    return [RNG.normal(size=(n, *inner)).astype(np.float32) for n in lengths]


def test_operators() -> None:
    """Of numbers, ragged and dense operands, from both sides, eagerly and compiled, before and after code is native."""
    rows = rows_of([3, 0, 1, 2])
    r, each = Ragged.from_row_lengths(np.concatenate(rows), [3, 0, 1, 2]), RNG.normal(size=(4, 1)).astype(np.float32)
    column = hf.asarray(each)
    cases: list[tuple[Any, Any]] = [
        (lambda r, c: c + r, lambda x, c: c + x),
        (lambda r, c: r * c, lambda x, c: x * c),
        (lambda r, c: c - r, lambda x, c: c - x),
        (lambda r, c: 1 - r / 2, lambda x, c: 1 - x / 2),
        (lambda r, c: c / (abs(r) + 1), lambda x, c: c / (abs(x) + 1)),
        (lambda r, c: (-r) ** 2 + 2.0**r, lambda x, c: x**2 + 2.0**x),
        (lambda r, c: ~((r > c) | (r > 0)) & (r <= 1), lambda x, c: ~((x > c) | (x > 0)) & (x <= 1)),
    ]
    for ours, reference in cases:
        expected = np.concatenate([reference(x, c) for x, c in zip(rows, each, strict=True)])
        eager, compiled = ours(r, column), hf.function(ours)(r, column)
        np.testing.assert_allclose(eager.values.numpy(), expected, rtol=1e-6)
        assert compiled.values.numpy().tobytes() == eager.values.numpy().tobytes()
        assert eager.row_lengths().tolist() == [3, 0, 1, 2]
    assert (each + r).values.numpy().tobytes() == (column + r).values.numpy().tobytes()
    slope = hf.grad(lambda c: (c * r).sum(None))(column)
    np.testing.assert_allclose(slope.numpy()[:, 0], r.sum().numpy(), rtol=1e-6)
    wide = r.with_values(hf.stack([r.values, r.values * 2], axis=1))
    assert (hf.asarray([1.0, 0.0]) * wide).sum(2).values.tolist() == r.values.tolist()
    with pytest.raises(TypeError):
        hf.asarray(1.0) << r


def test_bits_of_integers() -> None:
    """As NumPy has them, from both sides; of bools they are logical."""
    x, other = np.array([12, -7, 2, 5], np.int32), np.array([10, 6, 3, 1], np.int32)
    r = Ragged(x, [0, 3, 3, 4])
    cases: list[Any] = [
        lambda a, b: (a & b) ^ ~(a | b),
        lambda a, b: (a << b) - (a >> b),
        lambda a, b: (3 & a) + (6 | a) + (5 ^ a) + (1 << (a & 7)) + (64 >> (a & 3)),
    ]
    for case in cases:
        eager, compiled = case(r, r.with_values(other)), hf.function(case)(r, r.with_values(other))
        assert eager.values.tolist() == compiled.values.tolist() == case(x, other).tolist()
        assert eager.dtype == np.int32
    truth = r > 3
    assert (~truth ^ (r < 0)).values.tolist() == (~(x > 3) ^ (x < 0)).tolist()


@pytest.mark.parametrize("rows", [np.s_[:], np.s_[1:], np.s_[::-2], np.s_[9:], [2, 0], []])
@pytest.mark.parametrize("across", [np.s_[:], np.s_[1:]])
def test_a_third_axis(rows: Any, across: slice) -> None:
    whole = rows_of([3, 0, 1], (2, 3))
    r = hf.ragged.constant(whole)
    chosen = whole[rows] if isinstance(rows, slice) else [whole[k] for k in rows]
    for inner in ((0,), (np.s_[::-1],), (np.s_[:1], 2), (np.s_[:], np.s_[1:])):
        found = r[(rows, across, *inner)]
        assert found.to_list() == [row[(across, *inner)].tolist() for row in chosen]


def test_rows_by_narrow_integers() -> None:
    r = Ragged.from_row_lengths(np.arange(300), np.ones(300, np.int64))
    assert r[np.array([7, -1, -128], np.int8)].values.tolist() == [7, 299, 172]
    assert r[hf.asarray(np.array([255], np.uint8))].values.tolist() == [255]
    assert r[[]].to_list() == [] and r[[], ::2].nrows() == 0
    with pytest.raises(errors.IndexRangeError):
        r[np.array([2**64 - 1], np.uint64)]


@pytest.mark.parametrize("key", [np.s_[::2], np.s_[::-1], np.s_[:, :2], np.s_[1:, -2:], np.s_[:, ::-1], np.s_[4:]])
def test_slices_of_rows_and_columns(key: Any) -> None:
    rows = [row.tolist() for row in rows_of([3, 0, 1, 2])]
    r = hf.ragged.constant(rows, dtype="float32")
    of_rows, of_columns = key if isinstance(key, tuple) else (key, slice(None))
    expected = [np.float32(row)[of_columns].tolist() for row in rows[of_rows]]
    assert r[key].to_list() == expected


def test_rows_by_integers_and_bools_and_sums_of_columns() -> None:
    r = hf.ragged.constant([[1.0, 2.0, 3.0], [], [4.0], [5.0, 6.0]])
    assert r[[2, -4]].to_list() == [[4.0], [1.0, 2.0, 3.0]] and r[hf.asarray([False, True, True, False])].nrows() == 2
    assert r[0, 1].item() == 2.0 and r[3, ::-1].tolist() == [6.0, 5.0]
    assert r.sum(0).tolist() == [10.0, 8.0, 3.0] and r.sum(None).item() == 21.0 and r.prod().tolist() == [6, 1, 4, 30]


@pytest.mark.parametrize("lengths", [[2, 0, 3], [0], [1], [0, 0, 5, 0], [7, 1]])
@pytest.mark.parametrize("inner", [(), (2,)])
def test_rows_reductions_and_conversions(lengths: list[int], inner: tuple[int, ...]) -> None:
    rows = rows_of(lengths, inner)
    values = np.concatenate(rows)
    r = Ragged.from_row_lengths(values, lengths)
    assert r.row_lengths().tolist() == lengths
    assert r.value_rowids().tolist() == [k for k, n in enumerate(lengths) for _ in range(n)]
    assert [row.tolist() for row in r] == [row.tolist() for row in rows]
    assert r[1:].to_list() == [row.tolist() for row in rows[1:]]
    for other in (Ragged.from_value_rowids(values, r.value_rowids(), nrows=len(rows)), Ragged(values, r.row_splits)):
        assert other.to_list() == r.to_list()

    def computed(r: Ragged) -> tuple[Any, ...]:
        return r.sum(), r.mean(), r.max(), r.min(), (r * 2.0 + r).values, r.to_tensor(-1.0, shape=(None, 4))

    eager, compiled = computed(r), hf.function(computed)(r)
    for one, two in zip(eager, compiled, strict=True):
        assert one.numpy().tobytes() == two.numpy().tobytes()
    np.testing.assert_allclose(eager[0], [row.astype(np.float64).sum(0) for row in rows], atol=1e-5)
    some = [k for k, n in enumerate(lengths) if n]
    for found, fold in zip(eager[1:4], (np.mean, np.max, np.min), strict=True):
        np.testing.assert_allclose(found.numpy()[some], [fold(rows[k], axis=0) for k in some] or found[some], atol=1e-5)
    padded = np.full((len(rows), 4, *inner), -1, np.float32)
    for k, row in enumerate(rows):
        padded[k, : min(len(row), 4)] = row[:4]
    np.testing.assert_array_equal(eager[-1], padded)
    longest = r.to_tensor()
    assert longest.shape == (len(rows), max(lengths), *inner)
    assert Ragged.from_tensor(longest, lengths=lengths).to_list() == r.to_list()


def test_padding_and_lists() -> None:
    assert Ragged.from_tensor([[1, 2, 0], [3, 0, 0], [0, 0, 0]], padding=0).to_list() == [[1, 2], [3], []]
    assert Ragged.from_tensor([[1, 2], [3, 4]]).to_list() == [[1, 2], [3, 4]]
    assert hf.ragged.constant([[], [1.5]]).to_list() == [[], [1.5]]
    assert hf.ragged.constant([]).to_list() == []
    both = hf.ragged.concat([hf.ragged.constant([[1]]), hf.ragged.constant([[], [2, 3]])])
    assert both.to_list() == [[1], [], [2, 3]]
    assert both.shape == (3, None)
    assert both.numpy()[2].tolist() == [2, 3]


@pytest.mark.parametrize("combiner", ["sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_lookups(combiner: str, weighted: bool) -> None:
    lengths, table = [3, 0, 2], RNG.normal(size=(5, 4))
    ids = Ragged.from_row_lengths([4, 0, 4, 1, 2], lengths)
    weights = ids.with_values(RNG.random(5)) if weighted else None

    def found(table: Any) -> hf.Tensor:
        return hf.ragged.lookup(table, ids, weights, combiner)

    expected = np.zeros((3, 4))
    matrix = np.zeros((3, 5))
    for k, row in enumerate(ids):
        w = np.ones(len(row)) if weights is None else weights[k].numpy()
        np.add.at(matrix[k], row.numpy(), w / (w.sum() if combiner == "mean" and len(row) else 1))
    expected = matrix @ table
    np.testing.assert_allclose(found(table), expected, rtol=1e-12)
    np.testing.assert_allclose(
        hf.function(hf.grad(lambda t: hf.sum(found(t))))(table), matrix.sum(0)[:, None] * np.ones(4)
    )


def test_batches_of_datasets() -> None:
    data = hf.data.Dataset.range(1, 6).map(lambda n: {"x": hf.ones((int(n), 2)), "n": n})
    batches = list(data.ragged_batch(2))
    assert [batch["x"].row_lengths().tolist() for batch in batches] == [[1, 2], [3, 4], [5]]
    assert batches[1]["n"].tolist() == [3, 4]
    assert len(list(data.ragged_batch(2, drop_remainder=True))) == 2
    total = sum(hf.sum(batch["x"].sum()).item() for batch in batches)
    assert total == 30
    mapped = data.ragged_batch(2).map(lambda batch: batch["x"].sum())
    assert [x.shape for x in mapped] == [(2, 2), (2, 2), (1, 2)]


def test_gradients_and_vmap() -> None:
    r = hf.ragged.constant([[1.0, 2.0], [3.0]])
    found = hf.grad(lambda v: hf.sum(r.with_values(v).sum() ** 2))(r.values)
    assert found.tolist() == [6.0, 6.0, 6.0]
    several = hf.tree.map(lambda x: hf.stack([x, x]), r)
    assert hf.vmap(lambda r: r.sum())(several).tolist() == [[3.0, 3.0], [3.0, 3.0]]


ROWS = hf.ragged.constant([[1.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: Ragged([1, 2], [0, 3, 2]), errors.ArgumentError),
        (lambda: Ragged([1, 2], [1, 2]), errors.ArgumentError),
        (lambda: Ragged([1, 2], [0, 1]), errors.ArgumentError),
        (lambda: Ragged([1, 2], []), errors.ShapeError),
        (lambda: Ragged([1, 2], [0.0, 2.0]), errors.DTypeError),
        (lambda: Ragged(1, [0]), errors.ShapeError),
        (lambda: hf.function(lambda s: Ragged([1, 2], s))(hf.asarray([0, 3, 2])), errors.ArgumentError),
        (lambda: Ragged.from_row_lengths([1, 2], [3, -1]), errors.ArgumentError),
        (lambda: Ragged.from_value_rowids([1, 2], [1, 0], nrows=2), errors.ArgumentError),
        (lambda: Ragged.from_value_rowids([1, 2], [0, 5], nrows=2), errors.IndexRangeError),
        (lambda: ROWS[7], errors.IndexRangeError),
        (lambda: ROWS[:, 0], errors.ArgumentTypeError),
        (lambda: ROWS[[7]], errors.IndexRangeError),
        (lambda: ROWS[[True]], errors.ShapeError),
        (lambda: ROWS[[0.5]], errors.ArgumentTypeError),
        (lambda: hf.ones((7, 1)) + ROWS, errors.ShapeError),
        (lambda: ROWS + hf.ragged.constant([[1.0, 2.0], [3.0]]), errors.ShapeError),
        (lambda: ROWS + np.ones(3), errors.ShapeError),
        (lambda: ROWS.sum(axis=2), errors.AxisError),
        (lambda: hf.ragged.lookup(np.ones((3, 2)), hf.ragged.constant([[3]])), errors.IndexRangeError),
        (lambda: hf.ragged.lookup(np.ones((3, 2)), hf.ragged.constant([[0.5]])), errors.DTypeError),
        (lambda: hf.ragged.lookup(np.ones((3, 2)), [[1]]), errors.ArgumentTypeError),
        (lambda: hf.ragged.constant([1, 2]), errors.ArgumentTypeError),
    ],
)
def test_bad_parts(make: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        make()
