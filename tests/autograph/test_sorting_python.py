"""Python's max, min, sorted and list.sort, where tensors decide about the order."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import operator
import random

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.autograph.runtime.sort_order import order_of, total_order_of
from hybridflow.errors import TraceError
from tests.support.agreement import Corpus, check, form, integer, scalar, vector

pytestmark = pytest.mark.code

program = Corpus()
NAN = float("nan")
VECTORS = [
    *(vector(*values) for values in itertools.permutations((3.0, -1.0, 2.0))),
    *(vector(*values) for values in itertools.permutations((NAN, 1.0, 2.0))),
    *(vector(*values) for values in ((-5.0, 4.0, 4.0), (0.5, 0.5, 0.5), (-1.0, 0.0, -0.0), (NAN, NAN, 1.0))),
]
INTEGERS = [vector(*values, dtype="int64") for values in ((3, 1, 2), (1, 1, 0), (2, 2, 2))]


@dataclasses.dataclass
class Item:
    w: object
    name: str


class Task:
    def __init__(self, cost):
        self.cost = cost

    def __lt__(self, other):
        return self.cost < other.cost

    def __gt__(self, other):
        return self.cost > other.cost


@program(*VECTORS, *INTEGERS, gradient=True)
def extremes(x):
    return max(x[0], x[1], x[2]) - min(x[0], x[1]), max(x), min([x[1], x[2]])


@program(*VECTORS, *INTEGERS, gradient=True)
def in_order(x):
    return sorted([x[0], x[1], x[2]]), sorted(x, reverse=True)


@program(*VECTORS, *INTEGERS)
def with_a_key(x):
    order = sorted(range(3), key=lambda k: x[k])
    back = sorted(range(3), key=x.__getitem__, reverse=True)
    print(max(range(3), key=lambda k: x[k]))
    return order, back, min(range(3), key=lambda k: x[k]), [x[k] for k in order]


@program(*VECTORS, *INTEGERS)
def tuples(x):
    pairs = [(x[0], x[1]), (x[1], x[2]), (x[2], x[0]), (x[0], x[2])]
    return sorted(pairs), max(pairs), min(pairs), max((x[k], k) for k in range(3))


@program(*VECTORS, *INTEGERS)
def tuples_with_texts(x):
    pairs = [(x[0], "a"), (x[1], "b"), (x[2], "c")]
    rows = sorted(zip(x, ["a", "b", "c"]), key=operator.itemgetter(0))
    print(rows[0][1], rows[-1][1], sorted(pairs)[1][1])
    return [p[0] * 2 for p in sorted(pairs, key=lambda p: p[0])], sorted([(1, x[0]), (0, x[1]), (1, x[2])])


@program(*VECTORS, gradient=True)
def objects_by_key(x):
    items = [Item(x[0], "a"), Item(x[1], "b"), Item(x[2], "c")]
    items.sort(key=lambda t: t.w)
    return [t.w for t in items], max(items, key=lambda t: t.w).w


@program(*VECTORS)
def objects_that_compare(x):
    tasks = [Task(x[0]), Task(x[1]), Task(x[2])]
    return [t.cost for t in sorted(tasks)], min(tasks).cost, max(tasks).cost


@program(*VECTORS)
def by_a_comparison(x):
    def closer(p, q):
        return -1 if p < q else 1 if p > q else 0

    return sorted([x[0], x[1], x[2]], key=functools.cmp_to_key(closer))


@program(*VECTORS)
def dicts(x):
    scores = {"cat": x[0], "dog": x[1], "cow": x[2]}
    name = max(scores, key=scores.get)
    print(name, [n for n, _ in sorted(scores.items(), key=lambda kv: -kv[1])])
    return scores[name], max(scores.values()), max(enumerate(x), key=lambda p: p[1])


@program(*VECTORS)
def ranks(x):
    total = 0.0
    for rank, k in enumerate(sorted(range(3), key=lambda k: x[k])):
        total = total + rank * x[k]
    return total


@program(*VECTORS, gradient=True)
def whole_tensors(x):
    points = [x[:2], x[1:], hf.stack([x[2], x[0]])]
    return min(points, key=lambda p: hf.sum(p * p)), sorted(points, key=lambda p: hf.sum(p))


@program(*VECTORS)
def in_place_in_a_branch(x):
    values = [x[0], x[1], x[2]]
    if x[0] > 0:
        values.sort()
    return values


@program(*VECTORS)
def defaults(x):
    return max([], default=x[0]) + min((x[1], x[2]), default=x[0]), sorted([]), sorted([x[0]])


@program(*[scalar(t) for t in (-2.0, 0.5, 1.5, 7.0, NAN)], gradient=True)
def among_numbers(t):
    return max(0, min(1, t)), max(t, 0.5), min(2, t), sorted([1.0, t, 2.5]), max(int(t) if t == t else 0, 1.5)


@program(*VECTORS)
def that_no_tensor_decides(x):
    names = sorted({"b": x[0], "a": x[1], "c": [x]}.items())
    print([name for name, _ in names])
    return (
        names[0][1],
        sorted([3, 1, 2], key=lambda n: n % 3),
        sorted("bca"),
        max([x, x], key=lambda t: t.shape[0]),
        max({1: x, 2: x}),
    )


@program(*[vector(*values) for values in ((1.0,) * 12, range(12), [5.0, NAN, 2.0, 2.0] * 3, range(12, 0, -1))])
def twelve(x):
    return sorted(x), sorted(range(12), key=lambda k: -x[k], reverse=True)


@program.parametrized()
def test_compiled_is_eager(case) -> None:
    check(case)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 20, 63])
def test_the_order_is_that_of_list_sort_to_the_last_comparison(count) -> None:
    numbers = random.Random(count)
    found, total = (hf.function(lambda less, f=f: f(less, count)) for f in (order_of, total_order_of))
    for _ in range(100):
        keys = [numbers.choice((NAN, 0.0, 1.0, 2.0, 3.0, 5.0, -1.0, -0.0)) for _ in range(count)]
        row = np.array(keys)
        less = hf.asarray(row[:, None] < row[None, :])
        assert found(less).numpy().tolist() == sorted(range(count), key=keys.__getitem__)
        whole = np.array([numbers.randrange(4) for _ in range(count)])
        less = hf.asarray(whole[:, None] < whole[None, :])
        assert total(less).numpy().tolist() == sorted(range(count), key=whole.tolist().__getitem__)


FACTOR = 1.0


def weight(k):
    return k * FACTOR


@pytest.mark.parametrize("find", [sorted, max, min], ids=["sorted", "max", "min"])
def test_what_a_key_reads_is_guarded(find) -> None:
    global FACTOR
    by_tensor = hf.function(lambda x: find([x, x * 2, x * -3], key=weight))
    by_number = hf.function(lambda x: find([1, 2, 3], key=weight))
    for factor in (1.0, -1.0, 1.0):
        FACTOR = factor
        for f in (by_tensor, by_number):
            x = scalar(2.0)
            assert form(f(x)) == form(f.unwrapped()[0](x) if hasattr(f, "unwrapped") else f(x))
    FACTOR = 1.0


def test_each_key_is_made_once() -> None:
    calls = collections.Counter()

    def key(value):
        calls["key"] += 1
        return -value

    def f(x):
        return sorted([x, x + 1, x - 1], key=key), max([x, x + 1], key=key), sorted([1, 2, 3], key=key)

    f(scalar(1.0))
    eagerly = calls["key"]
    calls.clear()
    hf.function(f)(scalar(1.0))
    assert calls["key"] == eagerly == 8


def test_without_text_orders_that_no_tensor_decides_are_found() -> None:
    names: dict[str, object] = {}
    exec(compile("def f(x): return x * sorted([3, 1, 2], key=lambda n: -n)[0], max([x], key=len)", "", "exec"), names)
    f = hf.function(names["f"])
    assert form(f(vector(1.0, 2.0))) == form([vector(3.0, 6.0), vector(1.0, 2.0)])


def test_more_than_python_sorts_by_insertion_is_refused() -> None:
    @hf.function(strict=True)
    def f(x):
        return sorted([x * k for k in range(64)])

    with pytest.raises(TraceError, match=r"hf\.sort"):
        f(scalar(1.0))
    assert [int(y.numpy()) for y in f(integer(-1))] == list(range(-63, 1))


def test_one_of_several_objects_is_not_changed_unseen() -> None:
    @hf.function(strict=True)
    def f(x):
        items = [Item(x[0], "a"), Item(x[1], "a")]
        first = min(items, key=lambda t: t.w)
        first.w = x[2]
        return items[0].w

    with pytest.raises(TraceError, match="which of several"):
        f(vector(1.0, 2.0, 3.0))
