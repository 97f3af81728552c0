# ruff: noqa: SIM201, SIM208, E731, F841, C416, C417
"""Programs of ordinary Python whose conditions are tensors: functions, and the arguments to try them with.

Floats, ints, bools and lists among the arguments become tensors; what is to stay a Python value is in ``Py``.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import hybridflow as hf


class Py(NamedTuple):
    """An argument that stays what it is."""

    value: Any


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {}
SIGNS = [(2.0,), (-2.0,), (0.0,)]
COUNTS = [(0,), (1,), (2,), (5,), (11,)]
VECTORS = [([1.0, 2.0, 3.0],), ([-1.0, -2.0, 0.5],), ([0.0, 0.0, 0.0],)]


def program(inputs: list[tuple[Any, ...]]) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        assert function.__name__ not in PROGRAMS
        PROGRAMS[function.__name__] = function, inputs
        return function

    return add


# ---- if


@program(SIGNS)
def if_else(x):
    if x > 0:
        y = x * 2
    else:
        y = x - 1
    return y


@program(SIGNS)
def if_alone(x):
    y = x
    if x > 0:
        y = x * 2
    return y


@program([(v,) for v in (-7.0, -3.0, 0.0, 3.0, 6.0, 11.0)])
def elif_chain(x):
    if x > 10:
        y = x / 2
    elif x > 5:
        y = x / 3
    elif x < -5:
        y = -x
    else:
        y = x * x
    return y


@program([(v,) for v in (-7.0, -3.0, 0.0, 3.0, 6.0, 11.0)])
def returns_anywhere(x):
    if x > 10:
        return x
    if x > 5:
        z = 1
    elif x < 0 and x > -5:
        return -x
    else:
        z = 2
    return x + z


@program([(v,) for v in (-7.0, -3.0, 0.0, 3.0, 6.0, 11.0)])
def return_in_every_branch(x):
    if x > 5:
        if x > 10:
            return x
        else:
            return x + 1
    else:
        if x > 0:
            return x + 2
        return x + 3


@program([(v,) for v in (-7.0, -3.0, 0.0, 3.0, 6.0, 11.0)])
def return_inside_one_branch(x):
    if x > 0:
        if x > 5:
            return x * 100
        y = x + 1
    else:
        y = x - 1
    if y > 3:
        y = y * 2
    return y


@program(SIGNS)
def nothing_is_returned(x):
    if x > 0:
        y = x + 1
    else:
        y = x


@program(SIGNS)
def several_names(x):
    a, b, c = x, x + 1, 3
    if x > 0:
        a, b = b, a
        c = c + 1
    else:
        (a, *rest), b = [b, a, a], rest_of(x)
        c = c - 1
        del rest
    return a, b, c


def rest_of(x):
    return x if x > -1 else x + 10


@program(SIGNS)
def numbers_of_both_branches(x):
    if x > 0:
        k, f, b = 1, 0.1, True
    else:
        k, f, b = 2, 0.3, False
    return x * k, x * f, k + 1, hf.where(b, x, -x)


@program(SIGNS)
def number_in_one_branch(x):
    y = 0
    if x > 0:
        y = x * 2
    return y + 1


@program(SIGNS)
def name_of_one_branch_that_is_not_read(x):
    if x > 0:
        temporary = x * 2
        y = temporary + 1
    else:
        other = [x]
        y = other[0]
    return y


@program(SIGNS)
def names_of_several_types_that_are_not_read(x):
    if x > 0:
        t = x * 2
        y = t + 1
    else:
        t = "text"
        y = x if t else x + 1
    return y


@program(SIGNS)
def deleted_name(x):
    y = x
    if x > 0:
        t = y
        del t
        y = y + 1
    return y


@program(SIGNS)
def tuples_and_dicts(x):
    if x > 0:
        state = {"a": x, "b": (x + 1, [x + 2])}
    else:
        state = {"a": -x, "b": (x * 3, [x * 4])}
    return state["a"] + state["b"][0] * state["b"][1][0]


Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


@program(SIGNS)
def named_tuples_and_dataclasses(x):
    if x > 0:
        p, q = Pair(x, 1), Point(x, 2)
    else:
        p, q = Pair(-x, 2), Point(x + 1, 3)
    return p.left * p.right + q.x * q.y


@program(SIGNS)
def list_changed_in_branches(x):
    items, table = [], {"a": x}
    if x > 0:
        items.append(x)
        table["a"] = x + 1
    else:
        items.append(-x)
        table["a"] += 5
    return items[0] + table["a"]


@program(SIGNS)
def attribute_set_in_branches(x):
    p = Point(x, x)
    if x > 0:
        p.x = p.x + 1
    else:
        p.y *= 3
    return p.x + p.y * 2


@program(SIGNS)
def alias_sees_the_change(x):
    a = [x]
    b = a
    if x > 0:
        b[0] = x + 5
    return a[0]


@program(VECTORS)
def items_of_tensors_in_branches(x):
    y = x + 0
    if hf.sum(y) > 0:
        y[0] = 5.0
        y[1:] += 2.0
    else:
        y[-1] = -5.0
    return y


@program(SIGNS)
def captured_python_flag(x, flag=True):
    if flag:
        x = x + 1
    if not flag or x is None:
        x = x + 1000
    return x


@program([(2.0, Py(True)), (2.0, Py(False)), (-2.0, Py(True)), (-2.0, Py(False))])
def flags_and_tensors(x, flag):
    if flag and x > 0:
        return x * 2
    if flag or x > 0:
        return x * 3
    return x * 4


@program([([1.0, 2.0],), ([-4.0, 1.0],)])
def one_element_counts_as_a_bool(x):
    y = hf.sum(x, keepdims=True)
    return x + 1 if y > 0 else x - 1


@program([(0.0,), (2.0,), (float("nan"),)])
def numbers_as_conditions(x):
    if x:
        return x + 1
    return x + 2


# ---- operators


@program([(v,) for v in (-4.0, -1.0, 0.0, 1.0, 2.5, 5.0)])
def ternaries(x):
    y = 1.0 if x > 0 else 2.0
    return x * y + (x if x > 3 else -x if x < -3 else x / 2)


@program([(v,) for v in (-4.0, -1.0, 0.0, 1.0, 2.5, 5.0)])
def chains(x):
    y = x
    if 0 < x < 2:
        y = y + 1
    if -3 <= x <= 0 <= x + 4 < 100:
        y = y + 10
    return y


@program([(v,) for v in (-4.0, -1.0, 0.0, 1.0, 2.5, 5.0)])
def and_or_not(x):
    y = x
    if (x > 3 or x < -3) and not x == 5:
        y = y + 1
    if not (x > 0) or x == 1:
        y = y + 10
    if not not x > 0:
        y = y + 100
    return y


@program([(v,) for v in (-4.0, -1.0, 0.0, 1.0, 2.5, 5.0)])
def operands_are_values(x):
    a = x > 0 and x < 2
    b = x > 0 or x < -2
    c = (x > 0) and (x > 1) and (x > 2)
    return a, b, c, not a


@program([(0,), (3,), (10,)])
def right_operands_run_when_they_are_needed(i):
    table = hf.asarray([1.0, 2.0, 3.0, 4.0])
    if i < 4 and hf.take(table, i) > 1.5:
        return hf.take(table, i)
    return table[0]


@program([(1,), (3,), (7,)])
def membership(i):
    if i in (1, 2, 3):
        return i * 2
    return i


@program(VECTORS)
def membership_in_a_tensor(x):
    if 2.0 in x:
        return x * 2
    return x


@program([(v,) for v in (-4.0, 1.0, 5.0)])
def walrus(x):
    if (y := x * 2) > 4:
        return y
    z = (w := y + 1) if y > 0 else (w := y - 1)
    return z + w


@program([(v,) for v in (-50.0, -3.0, -0.5, 3.0)])
def walrus_in_an_operand_that_may_not_run(x):
    z = x * 7
    positive = x > 0 or ((z := x + 1) > 0 and (z := z + 5) > 0)
    if (x > 0 and (z := z + 1) > 3) or (z := z * 2) < -100:
        z = z - 1
    return positive, z


@program([(v,) for v in (-3.0, 3.0)])
def walrus_in_one_side_of_a_choice(x):
    y = z = x * 7
    v = x
    a = (z := x + 1) if x > 0 else z * 2
    b = y - z if x < 1 else (y := y + z)
    c = (unread := x * 3) if x > 0 else x
    d = (same := x) if x > 0 else (same := v)
    return a, b, c, d, same, y, z


@program([(3.0,), (60.0,)])
def walrus_in_the_condition_of_a_while(x):
    n, z = 0, x
    while x < 50 and (z := z + 1) < 40:
        x = x + z
        n += 1
    return x, z, n


@program([(v,) for v in (-4.0, 1.0, 5.0)])
def lambdas(x):
    f = lambda v: v * 2 if v > 0 else v - 1
    g, h = lambda v: v + 1 if v > 2 else v, lambda v: v - 1 if v > 2 else v
    return f(x), g(x), h(x)


# ---- while


@program(COUNTS)
def count_down(n):
    s = 0
    while n > 0:
        s = s + n
        n = n - 1
    return s, n


@program(COUNTS)
def while_else(n):
    while n > 4:
        n = n - 3
    else:
        n = n * 2
    return n


@program(COUNTS)
def while_break_else(n):
    k = 0
    while k < n:
        k = k + 1
        if k * k > 20:
            break
    else:
        k = k + 100
    return k


@program(COUNTS)
def while_continue(n):
    i = 0
    s = hf.constant(0.0)
    while i < n:
        i = i + 1
        if i == 3:
            continue
        if s > 100.0:
            break
        s = s + hf.astype(n, hf.float32) * i
    return s, i


@program(COUNTS)
def while_return(n):
    while n > 0:
        n = n - 3
        if n == 2:
            return n * 1000
    return n


@program(COUNTS)
def while_true(n):
    k = 0
    while True:
        k += 1
        if k * k > n:
            break
    return k


@program(COUNTS)
def while_true_return(n):
    k = 0
    while True:
        k += 1
        if k * k > n:
            return k * 10
        if k > 100:
            return k


@program(COUNTS)
def while_true_of_python(n):
    k = 0
    while True:
        k += 1
        if k > 3:
            break
    return n + k


@program(COUNTS)
def while_with_python_counter(n):
    k = 0
    while k < 4:
        k += 1
        if n < k:
            break
        n = n + 1
    else:
        n = n * 100
    return n, k


@program(COUNTS)
def condition_that_becomes_a_tensor(n):
    done, k = False, 0
    while not done:
        k = k + 1
        done = k * 2 > n
    return k


@program(COUNTS)
def and_in_a_condition(n):
    i, s = 0, 0
    while i < n and s < 20:
        s = s + i * i
        i = i + 1
    return i, s


@program(COUNTS)
def nested_whiles(n):
    t, i = 0, 0
    while i < n:
        j = 0
        while j < i:
            if (i + j) % 3 == 0:
                t = t + 1
            j = j + 1
        i = i + 1
    return t


@program(COUNTS)
def nested_whiles_with_break(n):
    t, i = 0, 0
    while i < n:
        j = 0
        while True:
            j = j + 1
            if j > i:
                break
            if (i + j) % 3 == 0:
                continue
            t = t + j
        if t > 30:
            break
        i = i + 1
    return t, i


@program([(1.0,), (2.0,), (1000.0,)])
def newton(a):
    x = a
    while hf.abs(x * x - a) > 1e-3 * a:
        x = 0.5 * (x + a / x)
    return x


@program([(27,), (1,), (6,)])
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program([(48, 36), (7, 5), (0, 3)])
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@program([(0.0,), (3.0,)])
def carried_containers(x):
    state = {"i": 0, "xs": (x, [x * 2])}
    while state["i"] < x * 2:
        state = {"i": state["i"] + 1, "xs": (state["xs"][0] + 1, [state["xs"][1][0] * 2])}
    return state["xs"][0], state["xs"][1][0], state["i"]


@program([(0.0,), (3.0,)])
def changed_containers(x):
    p, items = Point(x, 0), [x, x]
    while p.y < x:
        p.y += 1
        items[0] = items[0] + p.y
    return p.x, p.y, items[0]


@program([(2.0,)])
def items_written_in_a_loop(x):
    y, i = hf.zeros(4), hf.constant(0)
    while i < 4:
        y[i] = x * hf.astype(i, hf.float32)
        i = i + 1
    return y


@program([(0,), (5,)])
def temporary_in_a_loop(n):
    i = 0
    while i < n:
        t = i * 2
        i = t - i + 1
    return i


@program([(0.0,), (5.0,)])
def number_that_becomes_a_tensor(x):
    s, i = 0, 0
    while i < x:
        s = s + x / 2
        i = i + 1
    return s


# ---- for


@program([(v,) for v in (0, 5, 8, 11)])
def for_over_range(x):
    s = x
    for k in range(5):
        if k == 1:
            continue
        if s > 10:
            break
        s = s + k
    else:
        s = s * 100
    return s


@program([(v,) for v in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 30.0)])
def nested_fors(x):
    for a in [1.0, 2.0, 3.0]:
        for b in [1.0, 10.0]:
            if x * a * b > 20:
                return x * a + b
            if x * a * b > 10:
                break
        else:
            x = x + 1
    return x


@program(VECTORS)
def for_over_a_tensor(xs):
    s = hf.constant(0.0)
    for x in xs:
        if x < 0:
            continue
        s = s + x
    return s


@program(VECTORS)
def for_over_a_tensor_that_stops(xs):
    for k, x in enumerate(xs):
        if x > 1.5:
            return x, k
    return -xs[0], 10


@program(VECTORS)
def zip_and_reversed(xs):
    s = xs[0]
    for a, b in zip(xs, reversed(xs)):
        s = s * 2 + (a if a > b else b)
    return s


@program(VECTORS)
def appends(xs):
    out = []
    for x in xs:
        out.append(x * 2 if x > 0 else x)
    return hf.stack(out)


@program(VECTORS)
def comprehensions(xs):
    return hf.stack([x * 2 if x > 0 else x - 1 for x in xs]), hf.stack(list({k: x for k, x in enumerate(xs)}.values()))


# ---- functions


@program([(v,) for v in (1.0, -1.0, -5.0, 3.0, 4.0, 2.0)])
def inner_functions(x):
    def helper(v):
        if v > 2:
            return v * 2
        if v < -2:
            return v / 2
        return v + 0.5

    y = helper(x)
    if y > 3:
        z = helper(y) + 1
    else:
        z = helper(y - 1)
    return z


@program(SIGNS)
def nonlocals(x):
    total = x

    def add(v):
        nonlocal total
        if v > 0:
            total = total + v
        return total

    add(x)
    if x < 1:
        add(x + 5)
    return total


@program(SIGNS)
def partials_and_maps(x):
    def choose(a, b, c):
        return a if c > 0 else b

    f = functools.partial(choose, x, b=x * 3)
    return f(c=x), sum(map(lambda v: choose(v, -v, v), [x, x + 1]))


class Counter:
    def __init__(self, start):
        self.count = start
        self.__hidden = 1

    def step(self, x):
        if x > 0:
            self.count = self.count + x
        else:
            self.__hidden += 1
        return self

    @property
    def sign(self):
        return 1.0 if self.count > 0 else -1.0

    @property
    def hidden(self):
        return self.__hidden


class Twice(Counter):
    def step(self, x):
        if x > 1:
            super().step(x)
        return super().step(x)


@program(SIGNS)
def methods(x):
    c = Twice(x * 0)
    c.step(x).step(x - 1)
    return c.count, c.sign, c.hidden


@program([(0.0,), (3.0,), (30.0,)])
def recursion_over_a_tree(x):
    def value(node):
        if isinstance(node, list):
            return sum(value(child) for child in node)
        return node * x if x > 1 else node + x

    return value([1.0, [2.0, [3.0]], 4.0])


@program(SIGNS)
def default_and_keyword_arguments(x):
    def f(a, *rest, b=x, **others):
        if a > b:
            return a + sum(rest)
        return b + others.get("c", 0)

    return f(x), f(x + 1, 2, 3), f(x - 1, b=x, c=5)


# ---- blocks


@program(SIGNS)
def try_finally(x):
    y = x
    try:
        if x > 0:
            return y * 10
        y = y + 1
    finally:
        y = y + 100
    return y


@program(COUNTS)
def break_in_a_try(n):
    s, i = 0, 0
    while i < n:
        try:
            if i == 3:
                break
            i = i + 1
        finally:
            s = s + 10
    return s, i


@program(SIGNS)
def with_and_return(x):
    with contextlib.nullcontext(x) as y:
        if y > 0:
            return y + 1
        z = y * 3
    return z


@program(SIGNS)
def python_exceptions(x):
    table = {}
    try:
        y = table["missing"]
    except KeyError:
        y = x * 2 if x > 0 else x
    return y


@program(SIGNS)
def tapes(x):
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = x * x if x > 0 else x * 3
    return tape.gradient(y, x)


@program(SIGNS)
def tapes_in_branches(x):
    if x > 0:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        g = tape.gradient(y, x)
    else:
        g = x
    return g


# ---- variables


@program([(3.0,), (-3.0,)])
def variables(x):
    if x > 0:
        STATE.assign_add(x)
    else:
        STATE.assign(STATE * 2)
    while STATE < 20:
        STATE.assign_add(7.0)
    return STATE + 0


STATE = hf.Variable(1.0)


# ---- for, as often as a tensor says


@program(COUNTS)
def range_of_a_tensor(n):
    s = 0
    for i in range(n):
        if i == 1:
            continue
        s = s + i * i
    return s


@program(COUNTS)
def range_of_a_tensor_with_break(n):
    s = hf.constant(0.0)
    for i in range(1, n, 2):
        if s > 8:
            break
        s = s + i * 1.5
    else:
        s = s * 100
    return s


@program(COUNTS)
def range_of_a_tensor_with_return(n):
    for i in range(n, 0, -1):
        if i * i < 10:
            return i
    return n + 1000


@program([(0,), (4,)])
def nested_ranges_of_tensors(n):
    s = 0
    for i in range(n):
        for j in range(i + n):
            s = s + i * j if j < 3 else s - 1
    return s


@program(SIGNS)
def functions_in_c_change_containers(x):
    p = Point([1, 2], x)

    def smaller():
        heapq.heappush(p.x, 0)
        setattr(p, "y", p.y + 1)  # noqa: B010

    if x > 0:
        smaller()
        heapq.heappop(p.x)
    return p.y + p.x[0]


class Slotted:
    __slots__ = ("a",)


class SlottedAndMore(Slotted):
    pass


@program(SIGNS)
def attributes_in_slots_and_beside(x):
    c = SlottedAndMore()
    c.a = c.b = x
    if x > 0:
        c.a = x * 3
    else:
        c.b += 1
    return c.a + 10 * c.b


@program(SIGNS)
def containers_in_containers_stay_the_same_objects(x):
    c, d = Point([x], 0), {"a": [1, x]}
    inner = d["a"]
    if x > 0:
        c.x[0] += 1
        c.y += 2
        d["a"][1] *= 3
        d["b"] = 2
    else:
        c.y -= 1
        d["b"] = 3
    inner[0] += 4
    return c.x[0], c.y, d["a"][0], d["a"][1], d["b"]


@program(COUNTS)
def containers_in_containers_in_a_loop(n):
    c, d = Point([n], 0), {"a": [1, n], "k": 0}
    inner = d["a"]
    while n > 0:
        c.x[0] += n
        c.y += 2
        d["k"] += 1
        d["a"][1] *= 3
        n = n - 1
    inner[0] += 4
    return c.x[0], c.y, d["a"][0], d["a"][1], d["k"]


@program(COUNTS)
def containers_in_containers_that_turns_replace(n):
    d = {"a": [1, n], "k": 0}
    while n > 0:
        d["a"] = [d["a"][0] + 1, d["a"][1] - 2]
        d["k"] += n
        n = n - 1
    return d["a"][0], d["a"][1], d["k"]


@program(SIGNS)
def iterators_and_arrays_of_one_branch(x):
    if x > 0:
        it, a = iter([1.0, 2.0, 3.0]), np.zeros(2, np.float32)
        first, *_ = it
        a.fill(first)
        np.add(a, 1, out=a)
        y = x + a[0] + sum(iter([1.0, 2.0]))
    else:
        y = x
    return y


@program(SIGNS)
def a_list_made_and_changed_in_a_branch(x):
    a = [x, x + 1]
    if x > 0:
        a = [a[1], a[0]]
        a[0] = a[0] * 5
    else:
        a = [x * 3, a[1]]
    return a[0], a[1]


@program(SIGNS)
def a_list_changed_where_the_other_side_binds_another(x):
    a = b = [x, x + 1]
    if x > 0:
        a[0] = x * 7
    else:
        a = [x * 3, a[1]]
    return a[0], a[1], b[0], b[1]


@program(SIGNS)
def lists_inside_that_one_side_changes(x):
    a = [[x, x + 1], x]
    if x > 0:
        a = [[x * 2, x], x]
        a[0][0] = a[0][1] + 1
    else:
        a[0] = [x, x * 4]
        a[0][1] = a[0][1] - 3
    return a[0][0], a[0][1]


@program(SIGNS)
def lists_stay_themselves_where_turns_may_return(x):
    held = [x * 0.5, x + 2]
    first = held
    for _ in range(2):
        if x < -1:
            return x * 1.5, x, x, x
        held[1] += x
    else:
        held = [x * 7, x]
    return held[0], held[1], first[0], first[1]


@program(SIGNS)
def names_of_one_list_where_turns_may_return(x):
    held = [x * 0.5, x + 2]
    first = [held]
    for _ in range(2):
        if x < -1:
            return x, x, x
        held[0] = held[0] + x
        first = [held]
    held[1] = held[1] + 5
    return held[0], first[0][0], first[0][1]


@program(SIGNS)
def lists_made_and_changed_where_turns_may_return(x):
    held = other = [x * 0.5, x + 2]
    for _ in range(2):
        if x < -1:
            return x, x, x, x
        held = [held[1], held[0]]
        other = held
        held[0] = held[0] + x
    held[1] = held[1] + 5
    return held[0], held[1], other[0], other[1]


@program(COUNTS)
def lists_made_and_changed_by_turns(n):
    a, k = [n * 2, n + 3], n
    while n > 0:
        a = [a[1], a[0]]
        a[0] = a[0] + n
        n = n - 1
    return a[0], a[1], k


@program(COUNTS)
def a_name_of_what_a_turn_changed(n):
    a, b = [n * 2, n + 3], [n, n]
    while n > 0:
        b = a
        n = n - 1
        if n < 7:
            b = [a[0] + a[1], n]
    return a[0], a[1], b[0], b[1]


@program(COUNTS)
def a_tuple_of_what_a_turn_changed(n):
    a, k = [n * 2, n + 3], n
    t = (a, n)
    while n > 0:
        if n > 9:
            break
        a[0] = a[0] + n
        t = (a, n * 2)
        n = n - 1
    a[1] = a[1] + 1
    return a[0], a[1], t[0][0], t[0][1], t[1]


@program(COUNTS)
def loops_that_return_or_break_or_run_their_else(n):
    k = n * 1
    for i in range(n):
        if n < 2:
            return k * 7
        if i > 6:
            break
    else:
        k = n * 3
    return k


@program(COUNTS)
def loops_whose_else_returns(n):
    k = n
    while k > 0:
        if n == 2:
            return n * 10
        k = k - 1
        if n == 5 and k == 3:
            break
    else:
        return n + 100
    return k - n


def _filled(x, **options):
    options["kept"] = x
    return options["kept"] + len(options)


@program(COUNTS)
def loops_whose_turns_make_containers_and_change_them(n):
    i, k, base, out = n * 0, n, n + 1, [n]
    while i < n:
        made = {"base": base, "out": out}
        made["count"] = 1
        row = []
        row.append(3)
        parts = [base, k]
        parts.append(made["base"])
        parts[0] = parts[0] + parts[1]
        out[0] = out[0] + parts[0] + len(made) + row[0]
        k = _filled(k * 2 + parts[2], times=2)
        i = i + 1
    return k, out[0]
