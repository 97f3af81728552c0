"""What ``x.shape`` is: a tuple in everything, with TensorFlow's questions; in compiled functions too."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core import pytree
from hybridflow.core.shape import Shape
from hybridflow.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.code


def test_it_is_a_tuple() -> None:
    shape = hf.ones((2, 3)).shape
    assert isinstance(shape, tuple) and shape == (2, 3) and hash(shape) == hash((2, 3))
    assert repr(shape) == "(2, 3)" and f"{shape}" == "(2, 3)" and list(shape) == [2, 3] and shape[1:] == (3,)
    for again in (pickle.loads(pickle.dumps(shape)), copy.deepcopy(shape), copy.copy(shape)):
        assert type(again) is Shape and again == shape
    assert np.zeros(shape).shape == shape and np.arange(6).reshape(shape).shape == shape
    assert np.broadcast_shapes(shape, (3,)) == (2, 3) and {shape: 1}[(2, 3)] == 1


def test_sums_with_tuples_and_lists_are_shapes() -> None:
    shape = hf.ones((2, 3)).shape
    for found in (shape + (4,), shape + [4], shape + hf.ones((4,)).shape, shape.concatenate([4])):
        assert type(found) is Shape and found == (2, 3, 4)
    for found in ((4,) + shape, [4] + shape):
        assert type(found) is Shape and found == (4, 2, 3)
    with pytest.raises(TypeError):
        shape + 4


def test_questions() -> None:
    shape = hf.Variable(np.ones((2, 3))).shape
    assert (shape.as_list(), shape.dims, shape.rank, shape.ndims) == ([2, 3], [2, 3], 2, 2)
    assert shape.num_elements() == 6 and shape.is_fully_defined() and hf.asarray(1.0).shape.num_elements() == 1
    assert shape.is_compatible_with([2, None]) and not shape.is_compatible_with((2,))
    assert not shape.is_compatible_with((3, 3))
    assert shape.with_rank(2) is shape and shape.with_rank_at_least(1) is shape and shape.with_rank_at_most(2) is shape
    shape.assert_is_fully_defined()
    for refused in (
        lambda: shape.with_rank(3),
        lambda: shape.with_rank_at_least(3),
        lambda: shape.with_rank_at_most(1),
        lambda: shape.assert_is_compatible_with((2, 4)),
        lambda: Shape((None, 2)).assert_is_fully_defined(),
    ):
        with pytest.raises(ArgumentError):
            refused()
    assert Shape((None, 2)).num_elements() is None


def test_set_shape_checks() -> None:
    x = hf.ones((2, 3))
    for shape in ((2, 3), [None, 3], [-1, 3], x.shape):
        x.set_shape(shape)
    for wrong in ((3, 3), (2,), [None, 4]):
        with pytest.raises(ShapeError, match="set_shape"):
            x.set_shape(wrong)


def test_symbols_of_layers_have_shapes() -> None:
    x = hf.Input((4, 3))
    assert x.shape.as_list() == [None, 4, 3]
    several = hf.Model([x, hf.Input((2,))], hf.layers.Flatten()(x))
    assert several.input_shape == [(None, 4, 3), (None, 2)] and several.output_shape == (None, 12)
    with pytest.raises(ArgumentError):
        hf.Sequential([hf.layers.Dense(2)]).input_shape  # noqa: B018


def test_it_is_a_structure_of_its_extents() -> None:
    shape = hf.ones((2, 3)).shape
    leaves, structure = pytree.flatten({"s": shape})
    assert leaves == [2, 3]
    again = pytree.unflatten(structure, leaves)["s"]
    assert type(again) is Shape and again == shape


@pytest.mark.code
def test_as_an_argument_and_a_result_of_compiled_functions() -> None:
    @hf.function
    def reshaped(x: Any, shape: Any) -> Any:
        return hf.reshape(x, shape), shape, [n + 1 for n in shape.as_list()]

    for sizes in ((2, 3), (3, 2), (1, 6), (2, 3)):
        for _ in range(2):  # natively the second time
            y, shape, more = reshaped(hf.arange(6.0), hf.zeros(sizes).shape)
            assert y.shape == sizes and type(shape) is Shape and shape == sizes
            assert more == [n + 1 for n in sizes]
            np.testing.assert_array_equal(y.numpy(), np.arange(6.0).reshape(sizes))


@pytest.mark.code
def test_open_extents_answer_too() -> None:
    @hf.function(input_signature=[hf.TensorSpec([None, 3], hf.float32)])
    def rows(x: Any) -> Any:
        assert x.shape.rank == 2 and not x.shape.is_fully_defined() and x.shape.num_elements() is None
        first, second = x.shape.as_list()
        return hf.reshape(x, [first * second]), hf.zeros([2] + x.shape), x.shape

    for n in (2, 5, 7):
        flat, three, shape = rows(hf.ones((n, 3)))
        assert flat.shape == (3 * n,) and three.shape == (2, n, 3) and shape == (n, 3)


@pytest.mark.code
def test_shapes_from_outside_are_watched() -> None:
    held = {"x": hf.ones((2, 3))}

    @hf.function
    def zeros() -> Any:
        return hf.zeros(held["x"].shape.as_list())

    assert zeros().shape == (2, 3) and zeros().shape == (2, 3)
    held["x"] = hf.ones((4,))
    assert zeros().shape == (4,)


OUTSIDE = hf.ones((2, 3)).shape
BY_SHAPE = {(2, 3): 5.0, (3, 2): 7.0}


def test_shapes_outside_are_read_and_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    @hf.function
    def f(x: Any) -> Any:
        return x * BY_SHAPE[OUTSIDE] + len(OUTSIDE) + OUTSIDE[0] + sum(OUTSIDE) + (3 in OUTSIDE)

    x = hf.asarray(1.0)
    assert [f(x).item(), f(x).item()] == [5 + 2 + 2 + 5 + 1] * 2
    monkeypatch.setitem(globals(), "OUTSIDE", hf.ones((3, 2)).shape)
    assert f(x).item() == 7 + 2 + 3 + 5 + 1
    assert "2 traces, 1 hit" in repr(f)
