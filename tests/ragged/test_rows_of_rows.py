"""Ragged tensors whose rows have rows: against lists of Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf

ROWS: list[list[list[int]]] = [[[1, 2, 3], [4]], [[5], [], [6]], [], [[8, 9], [10]]]


def nested() -> hf.ragged.Ragged:
    return hf.ragged.constant(ROWS)


def test_what_it_is() -> None:
    x = nested()
    assert (x.shape, x.ragged_rank, x.ndim, x.to_list()) == ((4, None, None), 2, 3, ROWS)
    assert [splits.tolist() for splits in x.nested_row_splits] == [[0, 2, 5, 5, 7], [0, 3, 4, 5, 5, 6, 8, 9]]
    assert x.row_lengths(2).to_list() == [[3, 1], [1, 0, 1], [], [2, 1]]
    assert x.bounding_shape().tolist() == [4, 3, 3]
    assert repr(x) == f"<Ragged i64[4,None,None] {ROWS}>"
    assert hf.ragged.Ragged.from_nested_row_splits(x.flat_values, x.nested_row_splits).to_list() == ROWS
    assert hf.ragged.Ragged.from_nested_row_lengths(x.flat_values, x.nested_row_lengths()).to_list() == ROWS
    dense = x.to_tensor(-1)
    assert dense.shape == (4, 3, 3)
    assert dense[0].tolist() == [[1, 2, 3], [4, -1, -1], [-1, -1, -1]]


def test_elements() -> None:
    x = nested()
    assert x[1].to_list() == ROWS[1]
    assert x[3, 0].tolist() == ROWS[3][0]
    assert x[-1, 1, 0].tolist() == 10
    for key in (slice(1, None), slice(None, None, -1), slice(0, 0)):
        assert x[key].to_list() == ROWS[key]
        assert x[:, key].to_list() == [rows[key] for rows in ROWS]
        assert x[:, :, key].to_list() == [[row[key] for row in rows] for rows in ROWS]
    assert x[[3, 0]].to_list() == [ROWS[3], ROWS[0]]


def test_computing() -> None:
    x = nested()
    assert (x * 2 + x).to_list() == [[[3 * v for v in row] for row in rows] for rows in ROWS]
    assert (-x).to_list() == [[[-v for v in row] for row in rows] for rows in ROWS]
    column = np.array([100, 200, 300, 400]).reshape(4, 1, 1)
    assert (x + column).to_list() == [[[v + 100 * (k + 1) for v in row] for row in r] for k, r in enumerate(ROWS)]
    assert x.sum(2).to_list() == [[sum(row) for row in rows] for rows in ROWS]
    assert x.sum(1).to_list() == [[5, 2, 3], [11], [], [18, 9]]
    assert x.max(1).to_list() == [[4, 2, 3], [6], [], [10, 9]]
    assert int(x.sum(None)) == 48
    assert hf.ragged.map_flat_values(hf.square, x).to_list()[3] == [[64, 81], [100]]
    doubled = hf.function(lambda rows: rows * 2)
    assert doubled(x).to_list() == (x + x).to_list()


def test_rows_of_vectors() -> None:
    x = hf.ragged.constant([[[[1], [2]], []], [[[3]]]], ragged_rank=2)
    assert x.shape == (2, None, None, 1)
    assert (x + np.array([10, 20])).to_list() == [[[[11, 21], [12, 22]], []], [[[13, 23]]]]
    y = hf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]])
    assert (y.ragged_rank, (y + np.array([[10]])).to_list()) == (1, [[[11, 12], [13, 14]], [[15, 16]]])


def test_uniform_rows() -> None:
    x = hf.ragged.Ragged.from_uniform_row_length(hf.ragged.constant([[1], [2, 3], [4], []]), 2)
    assert x.to_list() == [[[1], [2, 3]], [[4], []]]
    assert hf.ragged.Ragged.from_uniform_row_length([], 0, nrows=3).to_list() == [[], [], []]


@pytest.mark.parametrize("rows", [[[[1], [2, 3]], [[4]]], [[["a"], ["b", "c"]], []]])
def test_constants_are_as_deep_as_it_takes(rows: Any) -> None:
    x = hf.ragged.constant(rows)
    assert x.ragged_rank == 2
    assert x.row_lengths().tolist() == [2, len(rows[1])]


def test_bad_input() -> None:
    x = nested()
    with pytest.raises(ValueError, match="Expected one from 1 on"):
        x.sum(0)
    with pytest.raises(ValueError, match="different lengths"):
        x + x[::-1]
    with pytest.raises(ValueError, match="ragged_rank is 0"):
        hf.ragged.constant(ROWS, ragged_rank=0)
    with pytest.raises(ValueError, match="Expected as many"):
        x.with_flat_values([1, 2])
    with pytest.raises(ValueError, match="one element"):
        x + np.ones((3, 1, 1))
    with pytest.raises(ValueError, match="row_splits go backwards"):
        hf.ragged.Ragged.from_nested_row_splits([1, 2], [[0, 1], [0, 1]])
