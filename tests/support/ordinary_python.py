"""Functions and classes of ordinary Python, of which ``ordinary_python.txt`` has the calls."""

# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
from typing import NamedTuple

import numpy as np

import hybridflow as hf

SCALE = 2.0


def compose(*functions):
    def composed(x):
        for f in reversed(functions):
            x = f(x)
        return x

    return composed


def counter():
    count = 0

    def add(x):
        nonlocal count
        count += 1
        return x * count

    return lambda x: add(x) + add(x)


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def doubling(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs) * 2

    return inner


@doubling
@doubling
def decorated(x):
    return x + 1


@functools.lru_cache(maxsize=None)
def cached(n):
    return n * 2.0


def halves(x, n):
    for _ in range(n):
        yield x
        x = x / 2


def delegating(x):
    yield from halves(x, 2)
    yield x


def generator_sum(x):
    return sum(delegating(x)) + next(halves(x, 1))


def takes_many(x, /, y, *rest, scale=1.0, **options):
    return (x + y * rest[0]) * scale + len(options)


def closure(x):
    y = x * 2
    return lambda z: y + z


def nonlocal_state(x):
    total = x

    def add(y):
        nonlocal total
        total = total + y

    for k in range(3):
        add(x * k)
    return total


def early(x):
    if hf.sum(x) > 0:
        return x
    return -x


def recursive(tree):
    if isinstance(tree, dict):
        return sum(recursive(v) for v in tree.values())
    if isinstance(tree, (list, tuple)):
        return functools.reduce(operator.add, map(recursive, tree))
    return tree * 2


def _three(a, b, c=None):
    return a + b - c


def unpacked(args, kwargs):
    return _three(*args, **kwargs)


def default_of_another(x, f=decorated):
    return f(x)


def apply_twice(f, x):
    return f(f(x))


class Layer:
    def __init__(self, scale):
        self.scale, self.calls = scale, 0

    def __call__(self, x):
        return self.forward(x)

    def forward(self, x):
        return x * self.scale

    def scaled(self, x, by):
        return self(x) * by

    @classmethod
    def make(cls, scale):
        return cls(scale * 2)

    @staticmethod
    def static(x):
        return x - 1

    @property
    def double(self):
        return hf.constant(self.scale) * 2


class Child(Layer):
    def __init__(self, scale):
        super().__init__(scale + 1)
        self.__hidden = 3.0

    def forward(self, x):
        return super().forward(x) + self.__hidden


class Vector:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Vector(self.value + other.value)

    def __mul__(self, k):
        return Vector(self.value * k)

    def __getitem__(self, k):
        return self.value[k]

    def __len__(self):
        return self.value.shape[0]


@dataclasses.dataclass
class Point:
    x: object
    y: object

    def moved(self, by):
        return Point(self.x + by, self.y + by)


class Pair(NamedTuple):
    a: object
    b: object


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Registry:
    table = {"sin": hf.sin}


class _MetaType(type):
    def kind(cls, x):
        return x * len(cls.__name__)


class Meta(metaclass=_MetaType):
    pass


class Default:
    def __init__(self, x):
        self.x = x

    def __getattr__(self, name):
        if name == "scale":
            return self.x * 3
        raise AttributeError(name)


def built(x, y):
    items = []
    items.append(x)
    items.extend([y, x])
    items.insert(0, y)
    items.pop()
    items += [x]
    items[1:3] = [x + y]
    return items


def changed_in_place(x, y):
    table = {"a": [x], "b": {"c": y}}
    table["a"].append(y)
    table["b"]["c"] = table["b"]["c"] * 2
    table.update(d=x)
    del table["d"]
    return table["a"][1] + table["b"]["c"], list(table)


def sliced(items):
    return items[1:], items[:-1], items[::2], items[-1]


def augmented(x):
    y = x
    y += 1
    y *= 2
    y -= x
    y /= 3
    y **= 2
    box = [y]
    box[0] += x
    point = Point(x, y)
    point.x *= 2
    return y, box, point.x


def matched(what, x):
    match what:
        case ("scale", float() as by):
            return x * by
        case {"shift": by}:
            return x + by
        case [first, *rest] if first == 1:
            return x * len(rest)
        case None:
            return -x
        case _:
            return x


def loops(x):
    total = x * 0
    for i in range(3):
        for j in range(i, 3):
            if (i + j) % 2:
                continue
            total = total + x * j
            if j > 1:
                break
    return total


def whiles(x, n):
    while n:
        x, n = x * 2, n - 1
    else:
        x = x + 1
    return x


def for_else(x, wanted):
    for k in range(5):
        if k == wanted:
            x = x * k
            break
    else:
        x = -x
    return x


def tries(x, key):
    try:
        return x * {"a": 2.0}[key]
    except (KeyError, IndexError) as error:
        return x * len(error.args[0])


def tries_all(x):
    log = []
    try:
        try:
            log.append(x)
            raise ValueError("no")
        except ValueError:
            log.append(x * 2)
        else:
            log.append(x * 100)
        finally:
            log.append(x * 3)
        int("q")
    except Exception as error:
        log.append(x * len(type(error).__name__))
    return log


@contextlib.contextmanager
def scaled_by(box, k):
    box.append(k)
    try:
        yield box
    finally:
        box.pop()


def with_statement(x):
    box = [1.0]
    with scaled_by(box, 3.0) as inside:
        x = x * inside[-1]
    return x * len(box)


def nested_with(x):
    with scaled_by([], 2.0) as a, scaled_by([], 3.0) as b, contextlib.suppress(KeyError):
        x = x * a[0] * b[0]
        {}["k"]
    return x


def swapped(x, y):
    x, y = y, x
    (a, b), c = (x, y), x
    return a - b + c


def starred(x):
    first, *middle, last = [x, x * 2, x * 3, x * 4]
    return first + last, middle


def global_scale(x):
    return x * SCALE


def chained(x):
    a = b = x * 2
    return (a is b) * x + b


def deleted(x):
    y = x * 2
    z = y + 1
    del y
    return z


def asserted(x):
    assert x.ndim == 1, "one axis"
    return x


def walrus_loop(x):
    n = 0
    while (n := n + 1) < 4:
        x = x + n
    return x


def conditional_import(x):
    from math import tau

    return x * tau


def annotated(x):
    y: hf.Tensor = x * 2
    z: int
    return y


def lambda_in_loop(x):
    fs = [lambda t, k=k: t * k for k in range(3)]
    return [f(x) for f in fs]


def inner_class(x):
    class Scale:
        by = 3.0

        def __call__(self, t):
            return t * self.by

    return Scale()(x)


def tensor_if(x):
    if x[0] > 0:
        y = x * 2
    elif x[1] > 0:
        y = x * 3
    else:
        y = x * 4
    return y


def tensor_while(x):
    n = 0
    while hf.sum(x * x) < 100:
        x = x * 1.5
        n += 1
    return x, n


def tensor_for(x):
    total = 0.0
    for row in x:
        total = total + row * row
    return total


def tensor_ternary(x):
    return x * 2 if x[0] > x[1] else x * 3


def tensor_bools(x, y):
    return (x[0] > 0 and y[0] > 0), (x[0] > 0 or y[0] > 0), not x[0] > 0, -10 < x[0] < 10


def tensor_break(x):
    k = 0
    while True:
        x = x * 1.5
        k = k + 1
        if hf.max(hf.abs(x)) > 50:
            break
    return x, k


def tensor_return(x):
    for row in x:
        if row > 1:
            return row
    return x[0] * 100


def tensor_nested(x, y):
    s = hf.zeros(())
    for a in x:
        for b in y:
            if a * b > 0:
                s = s + a * b
    return s


def tensor_state(x):
    layer = Layer(2.0)
    for row in x:
        if row > 0:
            layer.scale = layer.scale * 0.5
    return x * layer.scale


def tensor_counter(x):
    n = 0
    for row in x:
        if row > 0:
            n += 1
    return n, n / 2, n * x


class Mode(enum.Enum):
    IDLE = 0
    RUN = 1
    DONE = 2


def state_machine(x):
    mode, out = Mode.IDLE, []
    for step in range(6):
        match mode:
            case Mode.IDLE:
                mode = Mode.RUN
            case Mode.RUN if step > 3:
                mode = Mode.DONE
            case Mode.RUN:
                out.append(x * step)
            case Mode.DONE:
                break
    return out, mode.name


def beam_search(x, width=2):
    beams = [((), hf.constant(0.0))]
    for row in (x, x * 0.5, x - 1):
        grown = [(path + (k,), score + row[k]) for path, score in beams for k in range(3)]
        beams = sorted(grown, key=lambda b: (len(b[0]), sum(b[0])))[:width]
    return [score for _, score in beams], [path for path, _ in beams]


def edit_distance(x, y):
    table = {(i, 0): hf.constant(float(i)) for i in range(4)} | {(0, j): hf.constant(float(j)) for j in range(4)}
    for i, j in itertools.product(range(1, 4), repeat=2):
        same = hf.astype(x[i - 1] != y[j - 1], hf.float32)
        best = hf.minimum(table[i - 1, j] + 1, table[i, j - 1] + 1)
        table[i, j] = hf.minimum(best, table[i - 1, j - 1] + same)
    return table[3, 3]


def longest_run(x):
    best = run = 0
    for value in x:
        if value > 0:
            run += 1
        else:
            run = 0
        if run > best:
            best = run
    return best


@dataclasses.dataclass
class Node:
    value: object
    children: list = dataclasses.field(default_factory=list)

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def depth(self):
        return 1 + max((c.depth for c in self.children), default=0)


def tree_walk(x):
    tree = Node(x, [Node(x * 2, [Node(x - 1)]), Node(-x)])
    return sum(node.value * k for k, node in enumerate(tree.walk())), tree.depth


_BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def rpn(text, **names):
    stack = []
    for token in text.split():
        if (f := _BINARY.get(token)) is not None:
            b, a = stack.pop(), stack.pop()
            stack.append(f(a, b))
        else:
            stack.append(names.get(token) if token in names else float(token))
    (found,) = stack
    return found


class Tokens:
    def __init__(self, text):
        self._items, self._at = text.replace("(", " ( ").replace(")", " ) ").split(), 0

    @property
    def peek(self):
        return self._items[self._at] if self._at < len(self._items) else None

    def take(self):
        self._at += 1
        return self._items[self._at - 1]


def parse(tokens, names):
    def factor():
        if (token := tokens.take()) == "(":
            value = expression()
            tokens.take()
            return value
        return names[token] if token in names else float(token)

    def term():
        value = factor()
        while tokens.peek == "*":
            tokens.take()
            value = value * factor()
        return value

    def expression():
        value = term()
        while tokens.peek in ("+", "-"):
            value = value + term() if tokens.take() == "+" else value - term()
        return value

    return expression()


def bouncing(x):
    height, speed, bounces = x[0] + 10.0, x[1], 0
    for _ in range(12):
        speed = speed - 1.0
        height = height + speed
        if height < 0:
            height, speed = -height, -speed * 0.5
            bounces += 1
    return height, speed, bounces


def newton(x):
    guess, steps = hf.abs(x[0]) + 1, 0
    while hf.abs(guess * guess - 3) > 1e-3:
        guess = 0.5 * (guess + 3 / guess)
        steps += 1
        if steps >= 20:
            break
    else:
        guess = guess * 1
    return guess, steps


def collatz(x):
    n, steps = hf.astype(hf.abs(x[2]) * 10, hf.int32) + 3, 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def gradient_steps(x):
    w, history = x, []
    for step in range(4):
        with hf.GradientTape() as tape:
            tape.watch(w)
            loss = hf.sum((w - 1) ** 2)
        w = w - 0.1 * tape.gradient(loss, w)
        history.append(loss)
    return w, history


def stops_early(x):
    best, bad, w = 1e9, 0, x
    for epoch in range(10):
        loss = hf.sum((w - epoch * 0.3) ** 2)
        if loss < best - 1e-3:
            best, bad = loss, 0
        else:
            bad += 1
            if bad >= 2:
                break
        w = w * 0.8
    return best, w


class Schedule:
    def __init__(self, base):
        self._base, self.step = base, 0

    def __next__(self):
        self.step += 1
        return self._base / self.step

    def __iter__(self):
        return self


def scheduled(x):
    rates = Schedule(0.5)
    return [x * next(rates) for _ in range(3)] + [x * r for r in itertools.islice(rates, 2)]


class Meter:
    """A running mean with a property and operators."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def __iadd__(self, value):
        self.total, self.count = self.total + value, self.count + 1
        return self

    @property
    def mean(self):
        return self.total / max(self.count, 1)

    def __format__(self, spec):
        return f"meter of {self.count:{spec}}"

    def __contains__(self, count):
        return count <= self.count

    def __enter__(self):
        self.count = 0
        return self

    def __exit__(self, *_):
        self.total = self.total * 2


def metered(x):
    meter = Meter()
    with meter as inside:
        for k in range(3):
            inside += x * k
    return meter.mean, f"{meter:03d}", 2 in meter


def clipped(x, *bounds, keep=False, **names):
    low, high = map(hf.constant, bounds or (-1.0, 1.0))
    made = [min(max(v, low), high) if not keep else v for v in x]
    return made, sorted(names)


def partitions(x):
    groups = collections.defaultdict(list)
    for k, value in enumerate(x):
        groups["even" if k % 2 == 0 else "odd"].append(value)
    return {name: sum(values) for name, values in groups.items()}, collections.Counter("abca")["a"] * x


def pairwise_sums(x):
    return [a + b for a, b in itertools.pairwise([x, x * 2, x * 3])] + [
        a * b for a, b in itertools.combinations([x, x + 1, x + 2], 2)
    ]


def rolling(x):
    window = collections.deque(maxlen=2)
    out = []
    for k in range(4):
        window.append(x * k)
        out.append(sum(window) / len(window))
    return out


def coroutine_average(x):
    def averager():
        total, count = 0.0, 0
        while True:
            value = yield total / max(count, 1)
            total, count = total + value, count + 1

    running = averager()
    next(running)
    return [running.send(x * k) for k in range(1, 4)]


def hanoi(n, x):
    return x if n == 0 else hanoi(n - 1, x) * 2 + 1


def memoized(x):
    known = {}

    def f(n):
        if n not in known:
            known[n] = x if n < 2 else f(n - 1) + f(n - 2)
        return known[n]

    return f(8), len(known)


def pascal(x):
    row = [x]
    for _ in range(4):
        row = [x, *[a + b for a, b in zip(row, row[1:])], x]
    return row


def matrix_power(x, n):
    m, out = hf.outer(x, x), hf.eye(3)
    while n:
        n, odd = divmod(n, 2)
        if odd:
            out = out @ m
        m = m @ m
    return out


def chosen_by_value(x):
    kinds = {True: "positive", False: "negative"}
    table = {"positive": lambda t: t * 2, "negative": lambda t: -t}
    return [table[kinds[k > 1]](x) for k in range(3)]


def signs(x):
    out = []
    for v in x:
        if v > 1:
            out.append(v * 2)
        elif v < 0:
            out.append(-v)
        else:
            out.append(v + 10)
    return out


def tensor_and_or(x, y):
    low = x[0] if x[0] < y[0] else y[0]
    if x[0] > 0 and y[0] > 0 or x[1] > 5:
        low = low + 100
    return low, (x[0] or y[0]), (x[0] and y[0])


def guarded(x):
    def risky(v):
        if v < 0:
            raise ValueError(f"negative: {v}")
        return hf.sqrt(v)

    total = hf.constant(0.0)
    for v in x:
        try:
            total = total + risky(v)
        except ValueError:
            total = total - 1
        finally:
            total = total * 1.5
    return total


def retried(x):
    attempts, value = 0, x[0]
    while attempts < 3:
        attempts += 1
        try:
            if value < 1:
                raise RuntimeError
            value = value * 2
        except RuntimeError:
            value = value + 0.75
            continue
        else:
            value = value - 0.5
    return value, attempts


def nested_changes(x):
    config = {"rate": 0.1, "layers": [{"w": x}, {"w": x * 2}]}
    for layer in config["layers"]:
        if layer["w"][0] > 0:
            layer["w"] = layer["w"] * config["rate"]
    return config["layers"]


def points_in_branches(x, y):
    if x[0] > y[0]:
        p = Point(x, y)
    else:
        p = Point(y, x)
    return p.moved(1.0).x, p.y


def pairs_in_branches(x):
    pair = Pair(x, [x]) if x[0] > 0 else Pair(-x, [x * 2])
    names = {"a": pair.a} if x[1] > 0 else {"a": pair.b[0]}
    return pair, names["a"]


def objects_in_branches(x):
    total = x
    for k in range(2):
        if x[k] > 0:
            layer = Child(2.0)
            layer.bias = layer.scale * 2
            total = layer(total) + layer.bias
    return total


def sorted_by_key(x):
    items = [("b", 2, x), ("a", 2, x * 2), ("c", 1, x * 3)]
    return [t for *_, t in sorted(items, key=operator.itemgetter(1, 0), reverse=True)]


def accumulated(x):
    return list(itertools.accumulate([x, x * 2, x * 3], lambda a, b: a * 0.5 + b))


def formatted(x):
    return f"{x.shape!r:>8}|{x.ndim:03d}|{'pad':^7}|{1 / 3:.3f}", "%s-%d" % ("a", x.ndim), "{k}".format(k=x.shape)


def shortest_paths(x):
    edges = {0: [(1, x[0] + 3), (2, x[1] + 4)], 1: [(3, x[2] + 5)], 2: [(3, x[0] * 2 + 2)]}
    best = {0: hf.constant(0.0)}
    for node in range(3):
        for to, cost in edges[node]:
            found = best[node] + cost
            best[to] = hf.minimum(best[to], found) if to in best else found
    return best[3]


def knapsack(x):
    table = [hf.constant(0.0)] * 6
    for size, value in zip((1, 2, 3), hf.abs(x)):
        for room in range(5, size - 1, -1):
            table[room] = hf.maximum(table[room], table[room - size] + value)
    return table


def bisection(x):
    low, high = hf.constant(0.0), hf.abs(x[0]) + 4
    while high - low > 1e-2:
        middle = (low + high) / 2
        if middle * middle * middle > 5:
            high = middle
        else:
            low = middle
    return low


def first_match(x, predicate):
    for k, value in enumerate(x):
        if predicate(value):
            return k, value
    return -1, x[0]


def counted_words(x):
    words = "the cat and the dog and the bird".split()
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    top, *_ = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return top[0], x * top[1]


def checked_in_order(x):
    def steps():
        yield lambda v: v + 1
        yield lambda v: v * (2 if v.ndim else 3)
        return

    for step in steps():
        x = step(x)
    return x


def zigzag(x):
    out, sign = [], 1
    for v in reversed(x):
        out.append(v * sign)
        sign = -sign
    return out


def found_in_set(x):
    seen = set()
    for k in (3, 1, 3, 2, 1):
        if k in seen:
            continue
        seen |= {k}
        x = x + k
    return x, sorted(seen)


def binary_search(x, target):
    low, high = 0, len(x) - 1
    while low <= high:
        middle = (low + high) // 2
        if x[middle] == target:
            return middle
        if x[middle] < target:
            low = middle + 1
        else:
            high = middle - 1
    return -1


def searches(x, targets):
    rows, missed, found = hf.stack([-hf.abs(x[0]), x[1] * 0, hf.abs(x[0])]), 0, 0
    for target in targets:
        low, high = 0, 2
        while low <= high:
            middle = (low + high) // 2
            if rows[middle] == target:
                found += middle
                if found > 2:
                    return found, missed
                break
            if rows[middle] < target:
                low = middle + 1
            else:
                high = middle - 1
        else:
            missed += 1
            continue
        missed += 100
    return found, missed


def plain_turns_first(x):
    out = 0
    for k in range(3):
        n = 0
        while n < 5:
            i = 0
            while i < x[k]:
                i += 1
            n = n + i + 1
        if n == 6:
            continue
        out = out + n
        if out > 10:
            return out * 10
    return out


def either_in_place(x):
    y = x * 2
    if x[0] > 0:
        y[0] = x[1] * 3
        if x[2] > 0:
            return y
        return -y
    y[1] = y[0] * y[1]
    return y + 1


def iterated(x, most, first=0):
    value, turn = 0.0, 0
    for turn in range(most):
        x = x / hf.sqrt(hf.sum(x * x) + 1)
        new = hf.sum(hf.cos(x) * x)
        if turn > first and abs(new - value) < 1e-3 * abs(new):
            break
        value = new
    else:
        value = -value
    return value, turn


def counted_down(x):
    total, seen = 0, {"x": x, "turns": 0}
    for i in range(20, 0, -1):
        total += i
        if x[i % 3] > 40:
            return x, i, total, seen
        seen["x"] = x * 2
        seen["turns"] += 1
        x = x * 1.1 + i
        if i % 7 == 0:
            continue
        x = x + 1
    return -x, i, total, seen


def numbers_in_numbers(x):
    total, k = x * 0, 0
    for i in range(12):
        for j in range(10, 30):
            if j * i > total[0] + 30:
                break
            total = total + j * hf.abs(x)
            k += 1
        if hf.max(total) > 300:
            break
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = x * total
        total = total + tape.gradient(y, x)
        while hf.max(total) > 500:
            total = total / 2
    return total, k, i, j


def weights_of_a_list(x):
    weights = [1.0, 2.0, 3.0] * 4
    for i in range(12):
        x = x * weights[i] + i
        if hf.max(x) > 100:
            break
    return x, i


def nothing_before_the_first(x):
    last = None
    for turn in range(50):
        x = hf.cos(x)
        if last is not None and hf.max(hf.abs(x - last)) < 1e-3:
            break
        last = x
    return x, turn


def errors_in_turns(x):
    r = 0
    for i in range(15):
        try:
            x = x * 2
            if x[0] > 50:
                raise ValueError
            if x[2] > 20:
                continue
            r = r + 1
        except ValueError:
            r = r + 100
            break
        finally:
            r = r + i
    return x, r


class Sized:
    """Its truth is its length."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def __len__(self) -> int:
        return len(self.items)


class Positive:
    """A truth of its own, and what is in it."""

    def __init__(self, level: Any) -> None:
        self.level = level

    def __bool__(self) -> bool:
        return bool(self.level > 0)

    def __contains__(self, value: Any) -> Any:
        return self.level if value == 1.0 else value in (self.level, 2.0)


def truth_of_objects(x: Any) -> Any:
    kept, positives = Sized(), [Positive(v) for v in x]
    for v in x:
        if v > 0:
            kept.items.append(v)
    drained = hf.asarray(0.0)
    while kept:
        drained = drained * 2 + kept.items.pop()
    first, turns = Positive(hf.sum(x)), 0
    while first:
        first.level, turns = first.level - 0.3, turns + 1
    counts = [len(list(filter(Positive, list(x)))), sum(1 for one in positives if not one)]
    return drained, bool(kept), turns, all(positives), any(positives), bool(positives[1]), counts


def membership_of_objects(x: Any) -> Any:
    one = Positive(x[0])
    found = [1.0 in one, 2.0 in one, x[0] in one, x[1] in one, x[2] not in one]
    return found, 10 if x[1] in one or 1.0 not in one else 20
