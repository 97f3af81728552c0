"""Nested values: flattening, structures as keys, and paths."""

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from hybridflow.core import pytree


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass(frozen=True)
class Options:
    rate: float
    parts: list


@dataclasses.dataclass
class Batch:
    x: object
    n: object


nested = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Point, inner, inner)
        | st.builds(Options, inner, st.lists(inner, max_size=2))
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(nested)
def test_unflatten_undoes_flatten(value):
    leaves, structure = pytree.flatten(value)
    again = pytree.unflatten(structure, leaves)
    assert again == value and type(again) is type(value)
    assert structure.leaves == len(leaves) == len(pytree.paths(structure, "x"))
    assert pytree.flatten(again)[1] == structure and hash(pytree.flatten(again)[1]) == hash(structure)


@pytest.mark.parametrize("kind", [dict, OrderedDict, functools.partial(defaultdict, list)])
def test_the_order_of_keys_is_kept_and_counts(kind):
    one, two = kind({"b": 1, "a": [2]}), kind({"a": [2], "b": 1})
    assert pytree.flatten(one)[0] == pytree.flatten(two)[0] == [2, 1]
    assert pytree.flatten(one)[1] != pytree.flatten(two)[1]
    assert pytree.flatten([one])[1] != pytree.flatten([two])[1]
    assert pytree.flatten([one])[1].same_entries(pytree.flatten([two])[1])
    assert not pytree.flatten([one])[1].same_entries(pytree.flatten([{"b": 1, "c": [2]}])[1])
    leaves, structure = pytree.flatten(one)
    again = pytree.unflatten(structure, leaves)
    assert list(again) == ["b", "a"] and again == one and type(again) is type(one)
    assert pytree.flatten(OrderedDict(one))[1] != pytree.flatten(dict(one))[1]
    other = pytree.ordered_like(structure, two)
    assert list(pytree.unflatten(other, leaves)) == ["a", "b"] and dict(pytree.unflatten(other, leaves)) == dict(one)


def test_a_defaultdict_keeps_its_factory():
    leaves, structure = pytree.flatten(defaultdict(list, a=1))
    again = pytree.unflatten(structure, leaves)
    assert again["new"] == []
    assert structure == pytree.flatten(defaultdict(list, a=1))[1] != pytree.flatten(defaultdict(dict, a=1))[1]


def test_the_order_in_which_an_instance_holds_its_fields():
    one, two = Batch(1, 2), Batch(1, 2)
    del one.x
    one.x = 1
    assert list(vars(one)) == ["n", "x"]
    assert pytree.flatten(one)[0] == pytree.flatten(two)[0] == [1, 2]
    assert pytree.flatten(one)[1] != pytree.flatten(two)[1]
    leaves, structure = pytree.flatten(one)
    assert list(vars(pytree.unflatten(structure, leaves))) == ["n", "x"]


def test_keys_that_are_equal_and_not_the_same():
    keys = [1, True, 1.0, 0.0, -0.0, (0, 1), (0, True), (0.0, 1), "1", b"1"]
    structures = [pytree.flatten({key: None})[1] for key in keys]
    assert all((a == b) == (i == j) for i, a in enumerate(structures) for j, b in enumerate(structures))


def test_what_differs():
    values = [1, [1], (1,), [1, 1], {"a": 1}, {"b": 1}, {1: 1}, {True: 1}, [[1]], Point(1, 1), (1, 1), Options(1, [])]
    structures = [pytree.flatten(value)[1] for value in values]
    assert len(set(structures)) == len(values)


def test_paths():
    structure = pytree.flatten({"x": [1, (2,)], 3: Point(4, Options(5, [6]))})[1]
    assert pytree.paths(structure, "b") == ["b[3].x", "b[3].y.rate", "b[3].y.parts[0]", 'b["x"][0]', 'b["x"][1][0]']


def test_dataclasses_that_hold_more_than_their_fields_are_leaves():
    options = Options(1.0, [2])
    object.__setattr__(options, "computed", 3)
    assert pytree.flatten(options) == ([options], pytree.LEAF)


def test_flatten_up_to():
    structure = pytree.flatten({"a": 0, "b": [0, 0]})[1]
    parts = pytree.flatten_up_to(structure, {"a": [1, 2], "b": [3, (4,)]}, "v")
    assert parts == [('v["a"]', [1, 2]), ('v["b"][0]', 3), ('v["b"][1]', (4,))]
    with pytest.raises(ValueError, match=r'v\["b"\] has 1 entries where 2 are expected'):
        pytree.flatten_up_to(structure, {"a": 0, "b": [0]}, "v")
    with pytest.raises(ValueError, match="v is a list"):
        pytree.flatten_up_to(structure, [0], "v")
