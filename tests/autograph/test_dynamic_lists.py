"""Lists whose length a tensor decides are Python's in compiled functions: the items that eager runs make, their bits
and derivatives, or one error that says what has no meaning there."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core import pytree
from hybridflow.errors import HybridflowError
from tests.support.bits import same_bits
from tests.support.teams import threads as team_of

pytestmark = pytest.mark.code

Calls = list[tuple[Any, ...]]
PROGRAMS: list[tuple[Callable[..., Any], Calls]] = []
ROWS = hf.constant(np.arange(20, dtype="float32") - 10)
MANY = hf.constant(np.random.default_rng(0).standard_normal(50).astype("float32"))
POINTS = hf.constant(np.random.default_rng(1).standard_normal((30, 2)).astype("float32"))


def x(*values: float) -> hf.Tensor:
    return hf.constant(np.array(values, "float32"))


def n(value: int) -> hf.Tensor:
    return hf.constant(np.int64(value))


def program(*calls: Any) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        PROGRAMS.append((function, [call if isinstance(call, tuple) else (call,) for call in calls]))
        return function

    return add


# ---- a known number of candidates


@program(x(1, -1, 2), x(-1, -1, -2), x(1, 3, 2), x(-1, -1, 5))
def kept_in_branches(x):
    kept = []
    for y in x:
        if y > 0:
            kept.append(y)
    return kept


@program(x(1, -1, 2), x(-1, -1, -2), x(1, 3, 2))
def stacked_unless_empty(x):
    kept = []
    for y in x:
        if y > 0:
            kept.append(y)
    return hf.stack(kept) if kept else hf.zeros(0)


@program(x(1, -2, 3), x(-1, -2, -3))
def two_lists_of_branches(x):
    high, low = [], []
    for v in x:
        if v > 0:
            high.append(v)
        else:
            low.append(v * v)
    return hf.asarray(high) if high else x, len(low), low


@program(x(1, -2, 3), x(-1, -2, -3))
def comprehension(x):
    return [y * 2 for y in x if y > 0]


@program(n(5), n(0))
def comprehension_over_a_range(n):
    return [i * i for i in range(n) if i != 3]


@program((hf.constant([1, 2, 3, 4, 5, 6]), n(3)))
def comprehension_of_pairs(x, t):
    return [(a, b) for a in x[:3] for b in x[3:] if a + b > t * 2]


@program(x(1, -2, 3), x(-1, -2, -3))
def generator(x):
    return sum(v * v for v in [x[0], x[1], x[2]] if v > 0), max([v for v in x if v < 10])


@program(x(4, -2, 3), x(-4, -2, -3))
def filtered(x):
    return list(filter(lambda y: y > 0, [x[0], x[1], x[2]])), [v + 1 for v in filter(lambda y: y > 3, x)]


@program(x(4, -2, 3))
def lists_in_a_dict(x):
    made = {"high": [], "low": []}
    for v in x:
        if v > 0:
            made["high"].append(v)
        else:
            made["low"].append((v, 1))
    return made


class Kept:
    def __init__(self) -> None:
        self.items: list[Any] = []

    def add(self, item: Any) -> None:
        self.items.append(item)


@program(x(1, -2, 3), ROWS)
def list_of_an_object(x):
    kept = Kept()
    for v in x:
        if v > 0:
            kept.add(v * 3)
    return hf.stack(kept.items), len(kept.items)


@program((x(3, 1, 2), 2.0), (x(3, 1, 2), 10.0))
def after_a_return(x, t):
    if hf.sum(x) < t + hf.zeros(()):
        return hf.zeros(1)
    kept = [y for y in x if y > 1.5]
    return hf.stack(kept)[:1]


@program((n(255), n(16)), (n(0), n(2)), (n(77), n(2)))
def digits_in_a_base(n, base):
    if n == 0:
        return [0]
    digits = []
    while n:
        digits.append(n % base)
        n //= base
    return digits[::-1]


@program(x(1, 2, 3), x(1, 20, 3))
def unpacked(x):
    first, *rest = [v for v in x if v > 1.5]
    return first, rest, [(i, v) for i, v in enumerate(rest)]


@program(x(1, 2, 3), x(-1, -2, -3))
def asked_how_many(x):
    big = [v for v in x if v > 1.5]
    return big[0] if len(big) > 0 else -x[0], 2.0 in big, big == []


@program(x(1, 2, 3), x(-1, -2, -3))
def changed_afterwards(x):
    big = [v * 2 for v in x if v > 0]
    if big:
        del big[0]
    big.append(x[0])
    big.reverse()
    return big, big * 2


# ---- loops


@program(ROWS, -ROWS, hf.constant(-np.ones(12, "float32")))
def kept_in_a_loop(x):
    kept = []
    for y in x:
        if y > 0:
            kept.append(y * 2)
    return kept, len(kept)


@program(n(5), n(1), n(0), n(40))
def numbers_of_a_range(n):
    out = []
    for i in range(n):
        out.append(i * i)
    return out


@program(n(37), n(5), n(100), n(10**12))
def digits(n):
    out = []
    while n > 0:
        out.append(n % 10)
        n = n // 10
    return hf.stack(out)


@program(n(37), n(5), n(27))
def read_back(n):
    out = [n]
    while out[-1] != 1:
        last = out[-1]
        if last % 2 == 0:
            out.append(last // 2)
        else:
            out.append(3 * last + 1)
    return hf.stack(out), len(out)


@program((x(1, 2, 3), n(4)), (x(1, 2, 3), n(70)))
def two_lists(x, n):
    a, b, i = [], [], 0
    while i < n:
        a.append(x * i)
        b.append(hf.sum(x) + i)
        i += 1
    return hf.stack(a), hf.stack(b)


@program(x(5)[0], x(50)[0])
def walk_until_it_leaves(limit):
    at, k = hf.zeros(()), 0
    path = [at]
    while hf.abs(at) < limit:
        at = at + hf.sin(hf.ones(()) * k) + 0.3
        path.append(at)
        k += 1
    total = hf.zeros(())
    for p in path:
        total = total + p
    return total, path[-1], path[0], len(path)


@program(hf.constant(MANY), x(1, 1, 1, 1, 1))
def records(x):
    best = [x[0]]
    for y in x[1:]:
        if y > best[-1]:
            best.append(y)
    return hf.stack(best)


@program(n(30), n(2), n(3))
def primes(n):
    found = []
    for k in range(2, n):
        is_prime = True
        for p in found:
            if k % p == 0:
                is_prime = False
                break
        if is_prime:
            found.append(k)
    return hf.asarray(found), len(found)


@program(n(5), n(1), n(25))
def a_list_in_each_turn(n):
    sums, i = [], 0
    while i < n:
        inner, j = [], 0
        while j < i:
            inner.append(j * i)
            j += 1
        total = 0
        for v in inner:
            total = total + v
        sums.append(total)
        i += 1
    return sums


@program(n(6), n(1))
def stack_of_work(n):
    stack, seen = [n], 0
    while stack:
        k = stack.pop()
        seen = seen + 1
        if k > 1:
            stack.append(k - 1)
            if k % 2 == 0:
                stack.append(k // 2)
    return seen


@program(n(6), n(40))
def queue_of_work(n):
    queue, order = [n], []
    while len(queue) > 0:
        k = queue.pop(0)
        order.append(k)
        if k > 1:
            queue.append(k // 2)
            if k % 2 == 1:
                queue.append(k - 2)
    return hf.stack(order)


@program((x(1, 2, 3), 0.5), (x(1, 2, 3), 50.0))
def other_ways_to_grow(x, t):
    a, b, c, d = [], [], [], []
    while hf.sum(x) > t:
        a += [x]
        b = [*b, hf.sum(x)]
        c.insert(0, x[0])
        d.extend([x[1], x[2]])
        x = x * 0.7
    return [hf.asarray(y) for y in (a, b, c, d)] if a else x


@program((x(1, 2, 3), n(3)), (x(1, 2, 3), n(0)))
def items_of_several_parts(x, n):
    out = []
    for i in range(n):
        out.append((i, {"x": x * i}))
    return out


@program(x(4, 2, 3))
def items_are_replaced(x):
    out, i = [x[0]], 0
    while out[-1] > 0.5:
        out.append(out[-1] / 2)
        if i == 2:
            out[-1] = out[-1] * 1.5
        out[0] = out[0] + 1
        i += 1
    return out


@program((x(2, 7, 1), n(3)), (x(2, 7, 1), n(9)))
def the_last_two(x, n):
    last = []
    for i in range(n):
        last.append(x * i)
        if len(last) > 2:
            last.pop(0)
    return hf.stack(last)


@program(
    (hf.constant(np.arange(12.0)), 7.5), (hf.constant(np.arange(12.0)), -1.0), (hf.constant(np.arange(12.0)), 99.0)
)
def left_early(x, t):
    taken = []
    for v in x:
        if v > t:
            break
        taken.append(v)
    return taken, len(taken)


@program((hf.constant(np.arange(12.0)), 7.5))
def turns_skipped(x, t):
    taken = []
    for k, v in enumerate(x):
        if v > t:
            continue
        taken.append((k, v * 2))
    total = 0.0
    for k, v in taken:
        total = total + k * v
    return total


@program((POINTS, 0.05), (POINTS, 10.0))
def k_means(x, tolerance):
    centers, losses = x[:3], []
    while True:
        d = hf.sum((x[:, None] - centers[None]) ** 2, axis=-1)
        labels = hf.argmin(d, axis=1)
        masks = [hf.astype(labels == k, hf.float32) for k in range(3)]
        new = hf.stack([hf.sum(m[:, None] * x, axis=0) / hf.maximum(hf.sum(m), 1.0) for m in masks])
        losses.append(hf.sum(hf.min(d, axis=1)))
        moved = hf.sum((new - centers) ** 2)
        centers = new
        if moved < tolerance:
            break
    return centers, hf.stack(losses)


@program((POINTS[:8] @ POINTS[8:16].T, n(1)), (POINTS[:8] @ POINTS[8:16].T, n(3)))
def greedy_decoding(w, start):
    tokens = [start]
    for _ in range(20):
        following = hf.argmax(w[tokens[-1]])
        tokens.append(following)
        if following == 0:
            break
    return hf.stack(tokens)


def _same(eager: Any, compiled: Any) -> None:
    """Compiled numbers that a tensor decides about are tensors."""
    (ones, structure), (others, other) = pytree.flatten(eager), pytree.flatten(compiled)
    assert structure == other
    for one, two in zip(ones, others):
        a, b = np.asarray(one), np.asarray(two)
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case[0].__name__)
def test_values(case: tuple[Callable[..., Any], Calls]) -> None:
    function, calls = case
    compiled = hf.function(function)
    for args in [*calls, *calls]:  # known lengths, and those of another call
        _same(function(*args), compiled(*args))


@pytest.fixture
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(request.param)
    yield
    hf.config.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 3], indirect=True)
def test_threads(threads: None) -> None:
    rows = hf.constant(np.random.default_rng(2).standard_normal((400, 300)).astype("float32"))

    def kept(x: Any) -> Any:
        found = []
        for row in x:
            if row[0] > 0:
                found.append(hf.exp(row) * 2)
        return hf.stack(found), hf.sum(found[-1])

    _same(kept(rows), hf.function(kept)(rows))


# ---- derivatives


def kept_squares(x: Any) -> Any:
    return hf.sum(hf.stack([v * v * v for v in x if v > 0]))


def sum_of_a_walk(x: Any) -> Any:
    path = [x]
    while hf.max(hf.abs(path[-1])) < 50:
        path.append(path[-1] * 1.3 + hf.sin(path[-2] if len(path) > 1 else x))
    return hf.sum(hf.stack(path) ** 2)


def turns_that_are_read(x: Any) -> Any:
    made, total = [], hf.zeros(())
    for v in x:
        if v > -5:
            made.append(hf.exp(v / 10))
    for k, v in enumerate(made):
        total = total + v * (k + 1)
    return total * made[0] * made[-1]


@pytest.mark.parametrize(
    ("function", "at"), [(kept_squares, x(1, -2, 3)), (sum_of_a_walk, x(1, 2)), (turns_that_are_read, ROWS)]
)
def test_derivatives(function: Callable[..., Any], at: hf.Tensor) -> None:
    compiled = hf.function(function)
    found = []
    for f in (function, compiled):
        with hf.GradientTape() as tape:
            tape.watch(at)
            y = f(at)
        found.append(tape.gradient(y, at))
    np.testing.assert_allclose(np.asarray(found[1]), np.asarray(found[0]), rtol=2e-6)

    @hf.function
    def gradient(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(np.asarray(gradient(at)), np.asarray(found[0]), rtol=2e-6)


def test_second_derivatives() -> None:
    at = x(1, -2, 3)
    with hf.GradientTape() as outer:
        outer.watch(at)
        with hf.GradientTape() as tape:
            tape.watch(at)
            y = hf.function(kept_squares)(at)
        g = tape.gradient(y, at)
    np.testing.assert_allclose(np.asarray(outer.gradient(g, at)), [6.0, 0.0, 18.0])


# ---- calls


def test_variables_change_once_where_a_length_was_guessed() -> None:
    count = hf.Variable(0)

    @hf.function
    def f(x: Any) -> Any:
        count.assign_add(1)
        kept = [v for v in x if v > 0]
        return hf.stack(kept)

    for k, values in enumerate([(1, -2, 3, 4), (1, 2, 3, -4), (-1, -2, 3, -4), (1, 2, 3, 4), (1, -2, 3, -4)]):
        f(x(*values))
        assert int(count) == k + 1


def test_any_length_is_one_trace() -> None:
    @hf.function
    def f(limit: Any) -> Any:
        path = [limit * 0]
        while path[-1] < limit:
            path.append(path[-1] + 1)
        return hf.stack(path) * 2

    for limit in (5, 9, 11, 100, 300, 1000, 2000):
        f(n(limit))
    known = len(f._route.run.concrete_functions())
    for limit in (3, 4, 6, 7, 8, 12, 50, 700):
        assert f(n(limit)).tolist() == list(range(0, 2 * limit + 1, 2))
    assert len(f._route.run.concrete_functions()) == known


def test_methods_have_lengths_of_their_own() -> None:
    class Model:
        def __init__(self, limit: float) -> None:
            self.limit = limit

        @hf.function
        def kept(self, x: Any) -> Any:
            return [v for v in x if v > self.limit]

    one, other = Model(0.0), Model(2.0)
    for _ in range(2):
        assert [float(v) for v in one.kept(x(1, -2, 3))] == [1.0, 3.0]
        assert [float(v) for v in other.kept(x(1, -2, 3))] == [3.0]


def test_a_function_that_another_calls() -> None:
    inner = hf.function(kept_in_branches)
    outer = hf.function(lambda x: hf.stack(inner(x)) * 2)
    assert outer(x(1, -2, 3)).tolist() == [2.0, 6.0]
    assert outer(x(1, 2, 3)).tolist() == [2.0, 4.0, 6.0]


def test_what_finally_does_hides_no_length() -> None:
    @hf.function
    def f(x: Any) -> Any:
        made = None
        try:
            made = hf.stack([v for v in x if v > 0])
        finally:
            y = x if made is None else made
        return y

    assert f(x(1, -2, 3)).tolist() == [1.0, 3.0]
    assert f(x(1, 2, 3)).tolist() == [1.0, 2.0, 3.0]


def test_errors_are_those_of_python() -> None:
    def last(x: Any) -> Any:
        return [v for v in x if v > 0][-1]

    def pops(n: Any) -> Any:
        work = [n]
        while n < 100:
            n = n + work.pop()
            if n < 10:
                work.append(n)
        return n

    for function, argument, text in ((last, x(-1, -2), "out of range"), (pops, n(3), "pop from empty list")):
        for f in (function, hf.function(function)):
            with pytest.raises(IndexError, match=text):
                f(argument)


# ---- what is refused


def grows_an_argument(x: Any, made: list[Any]) -> Any:
    while hf.sum(x) < 10:
        made.append(x)
        x = x + 1
    return x


class Items(list[Any]):
    """A list of another class."""


def grows_another_class(x: Any) -> Any:
    made = Items()
    for v in x:
        if v > 0:
            made.append(v)
    return len(made)


def grows_a_deque(x: Any) -> Any:
    made = collections.deque()
    while hf.sum(x) < 10:
        made.append(x)
        x = x + 1
    return len(made)


def items_of_several_shapes(x: Any) -> Any:
    made = []
    for v in x:
        if v > 0:
            made.append(v)
        else:
            made.append(x)
            made.append(v)
    return made


def stacks_in_a_loop(x: Any) -> Any:
    made, total = [], hf.zeros(())
    while total < 10:
        made.append(x)
        total = total + hf.sum(hf.stack(made))
    return total


def changes_an_item(x: Any) -> Any:
    made, row = [], x * 1
    while hf.sum(x) < 100:
        made.append(row)
        x = x * 2
        row[0] = x[0]
    return made


def prints_before(x: Any) -> Any:
    print("x", end="")
    return [v for v in x if v > 0]


REFUSED = [
    (grows_an_argument, ([],), "its caller would not see the change"),
    (grows_another_class, (), "is changed under a condition that is a tensor"),
    (grows_a_deque, (), "is changed in a loop over a tensor"),
    (items_of_several_shapes, (), "list is changed under a condition that is a tensor"),
    (stacks_in_a_loop, (), "the length of a list that depends on a tensor"),
    (changes_an_item, (), "is changed in place"),
    (prints_before, (), "prints or calls Python"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0].__name__)
def test_refused(case: tuple[Callable[..., Any], tuple[Any, ...], str]) -> None:
    function, more, text = case
    with pytest.raises(HybridflowError, match=text) as caught:
        hf.function(function, strict=True)(x(1, -2, 3), *more)
    assert "test_dynamic_lists.py:" in str(caught.value)


def test_what_has_no_sizes_says_so() -> None:
    f = hf.function(kept_squares)
    for use in (
        lambda: f.get_concrete_function(x(1, 2)),
        lambda: f.explain(x(1, 2)),
        lambda: hf.vmap(f)(hf.ones((2, 3))),
    ):
        with pytest.raises(HybridflowError, match="how long a list is"):
            use()


# ---- sums of several shares: what a list becomes comes first, then what the next iteration does


def turned(s: Any, w: Any) -> Any:
    return hf.tanh(s @ w) + hf.sin(s) * 0.3 * s


def states(w: Any, s: Any, count: Any) -> Any:
    made, i = [], hf.asarray(0)
    while i < count:
        s = turned(s, w)
        made.append(s)
        i = i + 1
    rows = hf.stack(made)
    return hf.sum(rows * rows) + hf.sum(hf.sin(s))


def states_of_a_start_that_is_read(w: Any, s: Any, count: Any) -> Any:
    made, i, t = [], hf.asarray(0), s
    while i < count:
        t = turned(t, w)
        made.append(t)
        i = i + 1
    return hf.sum(hf.sin(hf.stack(made))) + hf.sum(s * s * hf.cos(s))


def states_under_a_condition(w: Any, s: Any, count: Any) -> Any:
    made, i = [], hf.asarray(0)
    while i < count:
        i = i + 1
        s = turned(s, w)
        if hf.sum(s) > 0.0:
            continue
        made.append(s)
    return hf.sum(hf.sin(hf.stack(made))) if len(made) > 0 else hf.sum(s)


def values_under_a_condition(w: Any, s: Any, count: Any) -> Any:
    made = []
    for _ in range(count):
        y = hf.tanh(s @ w)
        if hf.sum(y) > -0.2:
            made.append(y)
        s = y * 0.7 + hf.sin(y) * s + y * y * 0.1
    return hf.sum(hf.sin(hf.stack(made))) + hf.sum(s) if len(made) > 0 else hf.sum(s)


def states_of_a_pair(w: Any, s: Any, count: Any) -> Any:
    made, others, v = [], [], hf.sum(s)
    for _ in range(count):
        v = v - 0.1 * hf.sin(v) * v + 0.2 * hf.cos(v)
        s = turned(s, w) + v * 0.05 * s
        made.append((s, v))
        others.append(s)
        others.append(s * 2)
    states = hf.stack([pair[0] for pair in made]) * hf.reshape(hf.stack([pair[1] for pair in made]), (-1, 1))
    return hf.sum(states) + hf.sum(hf.sin(hf.stack(others)))


def states_under_two_conditions(w: Any, s: Any, count: Any) -> Any:
    made, i = [], hf.asarray(0)
    while i < count:
        s = hf.tanh(s @ w)
        if s[0] > -2:
            made.append(s)
        if s[1] > 0:
            made.append(s)
        i = i + 1
    return hf.sum(hf.sin(hf.stack(made)))


def states_of_a_loop_in_a_loop(w: Any, s: Any, count: Any) -> Any:
    made, i = [], hf.asarray(0)
    while i < count:
        j = count * 0
        while j < count:
            s = hf.tanh(s @ w)
            made.append(s)
            j = j + 1
        i = i + 1
    return hf.sum(hf.sin(hf.stack(made)))


def views_of_states(w: Any, s: Any, count: Any) -> Any:
    made, i = [], hf.asarray(0)
    while i < count:
        s = hf.tanh(s @ w + s * 0.37 + s[::-1] * 0.2)
        made.append(s[::-1])
        i = i + 1
    return hf.sum(hf.sin(hf.stack(made)))


def rows_of_what_is_captured(w: Any, s: Any, count: Any) -> Any:
    made, i = [], hf.asarray(0)
    while i < count:
        if s[0] > -3:
            made.append(w[0])
        s = s + w[0]
        i = i + 1
    return hf.sum(hf.sin(hf.stack(made))) + hf.sum(s)


SHARED = [
    states_under_two_conditions,
    states_of_a_loop_in_a_loop,
    views_of_states,
    rows_of_what_is_captured,
    states,
    states_of_a_start_that_is_read,
    states_under_a_condition,
    values_under_a_condition,
    states_of_a_pair,
]


@pytest.mark.parametrize("loss", SHARED, ids=lambda loss: loss.__name__)
def test_gradients_of_states_that_a_list_holds_have_the_bits_of_eager_ones(loss: Any) -> None:
    rng = np.random.default_rng(3)

    def gradients(w: Any, s: Any, count: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch((w, s))
            value = loss(w, s, count)
        return value, *tape.gradient(value, (w, s))

    compiled = hf.function(gradients)
    for count in (1, 4):
        w, s = (hf.asarray(rng.normal(size=shape).astype("float32") * 0.5) for shape in ((5, 5), (5,)))
        expected = gradients(w, s, n(count))
        for team in (1, 2, 3):
            with team_of(team):
                got = compiled(w, s, n(count))
            assert all(map(same_bits, map(np.asarray, got), map(np.asarray, expected))), (count, team)


def test_a_list_of_a_loop_in_a_loop_holds_rows_of_open_extents() -> None:
    def gradient(w: Any, count: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(w)
            value = states_of_products_in_a_loop_in_a_loop(w, count)
        return tape.gradient(value, w)

    compiled, traces = hf.function(gradient), []
    for size in (3, 4, 5, 6):
        w = hf.asarray(np.linspace(-1, 1, size, dtype="float32"))
        assert same_bits(np.asarray(compiled(w, n(2))), np.asarray(gradient(w, n(2)))), size
        traces.append(len(compiled.signatures()))
    assert traces[1:] == traces[1:2] * 3  # of 3 rows, and of any number


def states_of_products_in_a_loop_in_a_loop(w: Any, count: Any) -> Any:
    made, i, s = [], hf.asarray(0), w
    while i < count:
        j = count * 0
        while j < count:
            s = hf.tanh(s * w)
            made.append(s)
            j = j + 1
        i = i + 1
    return hf.sum(hf.sin(hf.stack(made)))
