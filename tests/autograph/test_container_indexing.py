"""Python's lists, tuples, texts and dicts, of which a tensor decides what is taken, found or set."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,type-arg"

from __future__ import annotations

import collections
from collections import namedtuple

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentError, DTypeError, ShapeError, TraceError
from tests.support.agreement import Corpus, check, integer, scalar, vector

pytestmark = pytest.mark.code

program = Corpus()
NAN = float("nan")
BOTH = [
    (x, n)
    for x in (vector(3.0, -1.0, 2.0), vector(NAN, 0.0, -0.0))
    for n in (integer(-4), integer(-3), integer(-1), integer(0), integer(2), integer(3))
]
TABLE = [1, 2, 3]
NAMES = ("lo", "mid", "hi")
Triple = namedtuple("Triple", "a b c")


class Item:
    def __init__(self, w):
        self.w = w

    def bump(self, by):
        self.w = self.w + by


OUTSIDE = [Item(0.0), Item(0.0), Item(0.0)]


def reset():
    for item in OUTSIDE:
        item.w = 0.0


@program(*BOTH, gradient=True)
def numbers_by_index(x, n):
    return TABLE[n] * x[0], (0.5, 1.5, 2)[n] * x[1], range(10, 40, 10)[n]


@program(*BOTH, gradient=True)
def tensors_by_index(x, n):
    return [x * 2, x + 1, x - 1][n], Triple(x[0], x[1], x[2])[n]


@program(*BOTH, gradient=True)
def many_large_tensors(x, n):
    big = [hf.broadcast_to(x[k % 3] * k, (100,)) for k in range(20)]
    return big[n * 5]


@program(*BOTH)
def texts_by_index(x, n):
    name = NAMES[n]
    print(name, "abc"[n])
    return name == "hi", name[0] == "h", name + "!" in ("lo!", "q"), len(name), x[0]


@program(*BOTH)
def functions_by_index(x, n):
    table = [hf.sin, hf.cos, lambda q: q * 2]
    by_key = {0: lambda a: a + 1, 1: lambda a: a * a, 2: hf.sin}
    return table[n](x), by_key[int(n) % 3](x)


@program(*BOTH)
def objects_by_index(x, n):
    items = [Item(x[0]), Item(x[1]), Item(x[2])]
    return items[n].w


@program(*BOTH)
def values_of_several_kinds(x, n):
    kind = [None, x, "text"][n]
    return x if kind is None else 0 * x


@program(*BOTH, gradient=True)
def items_set(x, n):
    xs = [x[0], x[1], x[2]]
    xs[n] = xs[n] * 2
    xs[n] += 1
    return xs


@program(*BOTH, gradient=True)
def items_popped(x, n):
    xs = [x[0], x[1], x[2]]
    y = xs.pop(n)
    return y, xs


@program(*BOTH)
def items_deleted(x, n):
    xs = [x[0], x[1], x[2]]
    del xs[n]
    return len(xs), xs


@program(*BOTH)
def items_swapped(x, n):
    xs = [3, 1, 2]
    i, j = n % 3, (n + 1) % 3
    xs[i], xs[j] = xs[j], xs[i]
    return xs


@program(*BOTH)
def keys(x, n):
    d = {0: x[0], 1: x[1], 2: x[2]}
    k = int(n)
    if k in d:
        return d[k]
    return d.get(k, x[0] - 1)


@program(*BOTH)
def missing_keys(x, n):
    return {0: x[0], 1: x[1], 2.0: x[2], -3: x[0]}[int(n)]


@program(*BOTH)
def keys_counted(x, n):
    counts = {0: 0, 1: 0, 2: 0}
    counts[int(n) % 3] += 1
    return counts


@program(*BOTH)
def keys_in_tuples(x, n):
    grid = {(0, 0): 1.0, (0, 1): 2.0, (1, 0): 3.0}
    place = int(n) % 2, int(n) // 2 % 2
    return place in grid, grid.get(place, -1.0)


@program(*BOTH)
def keys_in_sets(x, n):
    return int(n) in {1, 2, 3}, int(n) not in frozenset((0, -1))


@program(*BOTH)
def errors_caught(x, n):
    try:
        return TABLE[n]
    except IndexError as error:
        print(error)
        return 0


@program(*BOTH)
def deques(x, n):
    return collections.deque([x[0], x[1], x[2]])[n]


@program(*BOTH)
def arrays(x, n):
    return np.array([1, 2, 3], "int32")[n] + x, np.array([1.0, 2.0, 3.0])[n] * x


@program(*BOTH)
def in_loops(x, n):
    table, found, state = list(range(100)), 0, [0, 0, 0]
    for k in range(n):
        found += table[k * 7]
        state[k % 3] += k
    return found, state


@program(*BOTH)
def found_by_value(x, n):
    return [1, 2, n].index(n), [n, n, 2].count(n), (1, 2, n).index(2), [x[0], x[1]].index(x[1])


@program(*BOTH)
def not_found(x, n):
    return [1, 2].index(n + 2)


@program(*BOTH)
def bools(x, n):
    return [x, x + 1][int(n > 0)], ["no", "yes"][bool(n > 0)] == "yes"


@program((vector(1.0, 2.0), hf.Variable(1)))
def variables(x, n):
    return [x, x * 2, x * 3][n]


@program(*BOTH)
def one_object_equals_itself(x, n):
    y = x[0]
    held = y in [y, x[1]], [y].index(y), [x[1], y].count(y), (y, 1) in [(y, 1)]
    return held, x[1] in [x[0], x[2]], 2.0 in (x[0], x[2]), x[0] in x, n in range(5), n not in [1, 2]


@program(*BOTH)
def whole_tensors_are_not_among_others(x, n):
    return x in [x], x in [x + 1]


@program(*BOTH)
def arrays_by_numbers(x, n):
    return np.array([10, 20, 30])[int(n)] * 1.5, len(["mon", "tues", "wed"][n])


@program(*BOTH, gradient=True)
def keys_that_a_tensor_chooses(x, n):
    found, teams = {"neg": 0.0, "pos": 0.0}, {"red": [0, 0], "blue": [0, 0]}
    key = "neg" if x[0] < 0 else "pos"
    found[key] = x[1]
    found[key] += 2
    teams["red" if x[0] > 0 else "blue"][n % 2] = 4
    return found, teams, found[key], {"neg": x[2]}["neg" if x[0] < 5 else "pos"]


@program(*BOTH)
def tuples_compared(x, n):
    orders = (x[0], 1) >= (x[2], 1), (x[0], x[1]) < (x[2], x[2]), [x[0]] <= [x[2]], (x[0], n) > (0.0, 1)
    if (x[0], n) == (3.0, 2):
        return 1, orders
    if (x[0], x[1]) != (x[0], x[1]) or (n % 2, 1) < (1, 1) < (2, x[0]):
        return 2, orders
    return 3, orders


@program(*BOTH, gradient=True)
def items_of_items_set(x, n):
    rows = [[1.0, x[0]], [2.0, x[1]], [3.0, x[2]]]
    rows[n][0] = x[0] * 5
    rows[n][1] += 1.0
    return rows


@program(*BOTH)
def grids(x, n):
    grid, cube = [[0] * 3 for _ in range(3)], [[[0, 0], [0, 0]] for _ in range(3)]
    for k in range(4):
        grid[(n + k) % 3][(n * k) % 3] += k + 1
    cube[n][n % 2][(n + 1) % 2] = 7
    return grid, cube


@program(*BOTH)
def attributes_set(x, n):
    items = [Item(x[0]), Item([x[1], x[0]]), Item(x[2])]
    items[1].w = x[1]
    items[n].w = items[n].w * 2
    items[n].bump(1.0)
    largest = max(items, key=lambda item: item.w)
    return [item.w for item in items], largest.w


@program(*BOTH)
def dicts_in_lists_set(x, n):
    rows = [{"a": 0, "b": x[0]}, {"a": 1, "b": x[1]}, {"a": 2, "b": x[2]}]
    rows[n]["a"] += 5
    return rows


@program(*BOTH)
def one_of_two_lists_set(x, n):
    a, b = [1, 2, 3], [4, 5, 6]
    either = [a, b][n % 2]
    either[0] = 9
    return a, b, either


@program(*BOTH)
def set_in_a_branch_and_in_turns(x, n):
    rows = [[1], [2], [3]]
    if x[0] > 0:
        rows[n][0] = 8
    for k in range(int(n) + 4):
        row = rows[(n + k) % 3]
        row[0] = row[0] * 2
    return rows


@program(*BOTH)
def set_in_order(x, n):
    items = [Item(x[0]), Item(x[1]), Item(x[2])]
    ordered = sorted(items, key=lambda item: item.w)
    ordered[0].w = x[0] * 10
    ordered[2].w = x[0] * 20
    return [item.w for item in items], [item.w for item in ordered]


@program(*BOTH, reset=reset, state=lambda: [item.w for item in OUTSIDE])
def objects_outside_set(x, n):
    OUTSIDE[n].w = x[0]
    OUTSIDE[n].w += 1
    return OUTSIDE[n].w


@program(*[(scalar(t), integer(n)) for t in (-1.0, 1.0) for n in (0, 5)])
def in_a_branch(t, n):
    if t > 0:
        return TABLE[n]
    return -1


@program.parametrized()
def test_compiled_is_eager(case) -> None:
    check(case)


@pytest.mark.parametrize("key", [scalar(1.0), vector(0, 1, dtype="int64"), scalar(True, "bool")])
def test_what_is_no_position_is_the_same_error(key) -> None:
    def f(key):
        return [1, 2][key]

    errors = []
    for g in (f, hf.function(f)):
        with pytest.raises((DTypeError, ShapeError)) as raised:
            g(key)
        errors.append(type(raised.value))
    assert errors[0] is errors[1]


def test_items_that_somebody_else_changes_are_seen() -> None:
    table = [1.0, 2.0]
    f = hf.function(lambda n: table[n])
    assert float(f(integer(1)).numpy()) == 2.0
    table[1] = 5.0
    assert float(f(integer(1)).numpy()) == 5.0
    table.append(7.0)
    assert float(f(integer(2)).numpy()) == 7.0


def test_a_new_key_is_an_error_that_says_so() -> None:
    @hf.function
    def f(n):
        d = {0: 1.0}
        d[int(n)] = 2.0
        return d

    assert float(f(integer(0))[0].numpy()) == 2.0
    with pytest.raises(ArgumentError, match="a new key"):
        f(integer(1))


def _first_row_changed(rows, n, x):
    row = rows[n]
    rows[0][0] = x
    return row


def _two_that_may_be_one(rows, n, x):
    one, other = rows[n], rows[n - 1]
    one[0] = x
    return other


def _appended(rows, n, x):
    rows[n].append(x)
    return rows


def _extended(rows, n, x):
    row = rows[n]
    row += [x]
    return rows


def _joined(rows, n, x):
    row = rows[n] if x > 0 else rows[0]
    row[0] = x
    return rows


def _is(rows, n, x):
    return x if rows[n] is rows[0] else -x


@pytest.mark.parametrize("change", [_first_row_changed, _two_that_may_be_one, _appended, _extended, _joined, _is])
def test_one_of_several_objects_is_not_changed_unseen(change) -> None:
    @hf.function(strict=True)
    def f(n, x):
        return change([[x], [x + 1], [x + 2]], n, x)

    with pytest.raises(TraceError, match=r"which of several|one object"):
        f(integer(0), scalar(1.0))


def test_a_nan_that_may_be_the_very_one_is_an_error() -> None:
    @hf.function
    def f(x):
        xs = [x[0], x[1]]
        return max(xs) in xs, xs.index(max(xs))

    assert [y.numpy().item() for y in f(vector(1.0, 2.0))] == [True, 1]
    with pytest.raises(ArgumentError, match="the very one"):
        f(vector(NAN, 2.0))


def test_a_tensor_that_was_chosen_is_not_changed_unseen() -> None:
    @hf.function(strict=True)
    def f(n, x):
        xs = [x + 1, x + 2]
        y = xs[n]
        y[0] = 5.0
        return xs

    with pytest.raises(TraceError, match="which of several"):
        f(integer(0), vector(1.0, 2.0))
