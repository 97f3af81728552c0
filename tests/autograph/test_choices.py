"""One of several values that have no one type: None or a tensor, texts, functions, objects of several classes, a name
that may have no value.  What is done with it is done with whatever it is when the program runs, errors included."""

# ruff: noqa: E731, F841
# mypy: ignore-errors

from __future__ import annotations

import contextlib
import enum
import functools
import io
from collections.abc import Callable
from typing import Any

import pytest

import hybridflow as hf

pytestmark = pytest.mark.code
P = {}


def prog(*values):
    def add(function):
        P[function.__name__] = function, values or (2.0, -0.5, 0.25, -3.0)
        return function

    return add


class M(enum.Enum):
    A = 1
    B = 2


class Sq:
    def __init__(s, a):
        s.a = a

    def area(s):
        return s.a * s.a

    def name(s):
        return "sq"


class Ci:
    def __init__(s, r):
        s.r = r

    def area(s):
        return s.r * 3.0

    def name(s):
        return "circle"

    @property
    def a(s):
        return s.r * 2


V = hf.Variable(1.0)
OUT = Sq(hf.constant(4.0))


@prog()
def polymorphic(x):
    s = Sq(x) if x > 0 else Ci(x)
    return s.area() + s.a * 2


@prog()
def polymorphic_with_outside(x):
    s = OUT if x > 0 else Sq(x)
    return s.area()


@prog()
def polymorphic_loop(x):
    s = Sq(x)
    while s.area() < 10:
        if s.a > 0:
            s = Ci(s.area() + 2)
        else:
            s = Sq(s.a * 2 - 1)
    return s.area()


@prog()
def none_error(x):
    y = None
    if x > 0:
        y = x
    return y + 1


@prog()
def none_error_caught(x):
    y = None
    if x > 0:
        y = x
    try:
        return y + 1
    except TypeError:
        return x * 100


@prog()
def unbound_caught(x):
    if x > 0:
        y = x * 2
    try:
        z = y
    except NameError:
        z = x - 7
    return z


@prog()
def attribute_of_none(x):
    y = None
    if x > 0:
        y = Sq(x)
    return y.area()


@prog()
def item_of_none(x):
    y = None
    if x > 0:
        y = [x, x * 2]
    return y[1]


@prog()
def guarded_none(x):
    y = None
    if x > 0:
        y = [x, x * 2]
    z = x
    if y:
        z = z + y[0]
    if y is not None and y[1] > 1:
        z = z * 10
    return z


@prog()
def or_default(x):
    y = None
    if x > 0:
        y = x
    z = y or 5.0
    return z * x


@prog()
def print_chosen(x):
    name = "pos" if x > 0 else "neg"
    print("sign", name, f"<{name:>6}>")
    return x


@prog()
def raise_chosen(x):
    name = "pos" if x > 0 else "neg"
    if x < 0:
        raise ValueError(f"bad {name}", name)
    return x


@prog()
def text_methods(x):
    name = "pos" if x > 0 else "negative"
    return x * len(name.upper()), name.startswith("p"), "e" in name, name + "!" == "pos!"


@prog()
def text_of_texts(x):
    msg = f"low {x}" if x < 0 else f"high {x * 2}"
    print(msg)
    return x


@prog()
def compared(x):
    a = "u" if x > 0 else "v"
    b = "v" if x < 1 else "u"
    return (a == b) * x, (a != b), a < "v"


@prog()
def in_collections(x):
    k = M.A if x > 0 else M.B
    t = {M.A: x * 2, M.B: x - 1}
    return t[k], k in t, k in (M.A,), k in [M.B, None], t.get(k, 0.0), {M.A: 1}.get(k, 7)


@prog()
def missing_key(x):
    k = "a" if x > 0 else "b"
    return {"a": x}[k]


@prog()
def missing_key_caught(x):
    k = "a" if x > 0 else "b"
    try:
        return {"a": x}[k]
    except KeyError as e:
        return x * 3


@prog()
def lambdas_in_loop(x):
    f = lambda t: t + 1
    for k in range(4):
        if x > k:
            f = lambda t: t * 2
        x = f(x)
    return x


@prog()
def closures(x):
    def make(n):
        def g(t):
            return t * n + x

        return g

    f = make(2.0) if x > 0 else make(3.0)
    return f(x)


@prog()
def partials(x):
    f = functools.partial(hf.multiply, 2.0) if x > 0 else functools.partial(hf.add, 1.0)
    return f(x)


@prog()
def raising_function(x):
    def bad(t):
        raise ValueError("bad")

    f = hf.sin if x > 0 else bad
    return f(x)


@prog()
def raising_function_caught(x):
    def bad(t):
        raise ValueError("bad")

    f = hf.sin if x > 0 else bad
    try:
        return f(x)
    except ValueError:
        return x * 9


@prog()
def effects_of_functions(x):
    def up(t):
        V.assign_add(t)
        print("up")
        return t

    def down(t):
        V.assign_sub(t)
        return t * 2

    V.assign(1.0)
    f = up if x > 0 else down
    y = f(x)
    return y + V


@prog()
def appends_in_functions(x):
    log = []

    def up(t):
        log.append(t)
        return t

    def down(t):
        log.append(t * 3)
        return t * 2

    f = up if x > 0 else down
    y = f(x)
    return y + log[0]


@prog()
def chosen_class(x):
    K = Sq if x > 0 else Ci
    return K(x).area()


@prog()
def chosen_tuple_or_none(x):
    p = (x, 2.0) if x > 0 else None
    if p is None:
        return x
    a, b = p
    return a * b


@prog()
def isinstance_of(x):
    s = Sq(x) if x > 0 else Ci(x)
    if isinstance(s, Sq):
        return s.a * 5
    return s.r


@prog()
def type_of(x):
    s = Sq(x) if x > 0 else Ci(x)
    return x * (1.0 if type(s) is Sq else 2.0)


@prog()
def nested_choice(x):
    a = None if x < 0 else x
    b = a if x < 1 else "big"
    if b == "big":
        return x * 1000
    return x if b is None else b * 2


@prog()
def unsure_in_inner(x):
    if x > 0:
        w = x * 2

    def g():
        return w + 1

    return g() if x > 0 else x


@prog()
def unsure_in_comprehension(x):
    if x > 0:
        w = x * 2
    return sum([w + k for k in range(3)]) if x > 0 else x


@prog()
def deleted(x):
    w = x
    if x > 0:
        del w
    return x if x > 0 else w


@prog()
def try_binds(x):
    try:
        y = hf.sqrt(x)
        if x < 0:
            raise ValueError
        z = y * 2
    except ValueError:
        pass
    return z


@prog()
def early_continue(x):
    total = x * 0
    for k in range(5):
        if x * k < 1:
            continue
        last = k
        total = total + k
    return total if x < 0.3 else total + last


@prog()
def aug_unsure(x):
    if x > 0:
        acc = x
    acc += 1
    return acc


@prog()
def while_none(x):
    prev = None
    while x < 4 and (prev is None or prev < x):
        prev = x
        x = x * 0.5 + 2.5
    return x if prev is None else prev


@prog(3.0, -1.0, 0.0)
def none_in_range(x):
    prev, n = None, 0
    for k in range(hf.astype(x, "int64") + 2):
        if prev is not None:
            n = n + prev
        prev = k * x
    return n, x if prev is None else prev


@prog()
def list_or_none(x):
    xs = None
    if x > 0:
        xs = [x, x + 1]
    t = x
    for v in xs if xs is not None else [x * 0, x * 0]:
        t = t + v
    return t


@prog()
def iterate_none(x):
    xs = None
    if x > 0:
        xs = [x, x + 1]
    t = x
    for v in xs:
        t = t + v
    return t


@prog()
def kw_none(x):
    ax = None if x > 0 else 0
    return hf.sum(hf.stack([x, x]), axis=ax)


@prog()
def returns_maybe(x):
    def find(v):
        for k in range(3):
            if v > k:
                return k
        return None

    r = find(x)
    s = find(x * 3)
    if r is None:
        return x
    return r + s * x


@prog()
def default_or(x):
    opts = {"lr": None, "m": 0.9}
    if x > 0:
        opts["lr"] = x
    lr = opts["lr"] if opts["lr"] is not None else 0.1
    return x * lr * opts["m"]


@prog()
def attr_none(x):
    class S:
        pass

    s = S()
    s.best = None
    for k in range(3):
        v = x * k - 1
        if s.best is None or v > s.best:
            s.best = v
    return s.best


def run(function: Callable[..., Any], x: float) -> Any:
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            found = function(hf.constant(x))
        return [float(v) for v in hf.tree.leaves(found)], out.getvalue()
    except Exception as error:
        return type(error).__name__, str(error).split("  (")[0], out.getvalue()


@pytest.mark.parametrize("name", P)
def test_compiled_is_eager(name: str) -> None:
    function, values = P[name]
    compiled = hf.function(function)
    for value in values:
        want = run(function, value)
        for _ in range(2):
            assert run(compiled, value) == want, value
    assert len(compiled.signatures()) == 1


WITH_GRADIENTS = [
    "polymorphic",
    "polymorphic_loop",
    "lambdas_in_loop",
    "closures",
    "guarded_none",
    "while_none",
    "unsure_in_inner",
]


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_gradients(name: str) -> None:
    function, values = P[name]
    compiled = hf.function(function)
    for value in values:
        x = hf.constant(value)
        want = float(hf.grad(function)(x))
        assert float(hf.function(hf.grad(function))(x)) == want
        assert float(hf.grad(compiled)(x)) == want


def test_what_holds_a_condition_needs_no_branch_and_no_check() -> None:
    """The block under the condition that decided is traced for the one value that is left."""

    def f(x):
        best = None
        if x > 0:
            best = x * 2
        y = x
        if best is not None:
            y = y + best
        if x > 0:
            y = y - best
        return y

    text = hf.function(f).ir(hf.constant(1.0))
    assert text.count(" = cond(") <= 3 and "require" not in text


def test_a_name_that_may_have_no_value_is_checked_once() -> None:
    def f(x):
        if x > 0:
            y = x * 2
        z = y + 1
        return z * y + y

    compiled = hf.function(f)
    assert compiled.ir(hf.constant(1.0)).count(" = require(") == 1
    assert float(compiled(hf.constant(1.0))) == 8
    with pytest.raises(UnboundLocalError, match="cannot access local variable 'y'"):
        compiled(hf.constant(-1.0))


def test_what_is_decided_outside_is_guarded() -> None:
    """Attributes of objects that were there before are read of each of them, and changes are seen."""

    class Config:
        def __init__(self, rate):
            self.rate = rate

    one, other = Config(1.0), Config(2.0)

    @hf.function
    def f(x):
        config = one if x > 0 else other
        return x * config.rate

    assert [float(f(hf.constant(v))) for v in (3.0, -3.0)] == [3, -6]
    other.rate = 5.0
    assert [float(f(hf.constant(v))) for v in (3.0, -3.0)] == [3, -15]
    one.rate = hf.constant(7.0)
    assert [float(f(hf.constant(v))) for v in (3.0, -3.0)] == [21, -15]


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_options_grow_with_turns(turns: int) -> None:
    def f(x, n):
        state, seen = "start", 0
        for k in range(n):
            if state == "start":
                state = "low" if x < 0 else "high"
            elif state == "low":
                state = None
            elif state is None:
                state = 7
            seen += k if state in ("low", "high") else 100
            x = x + 1
        return x, seen, state == "high", state is None, state == 7

    def g(x, n):
        return [float(v) for v in hf.tree.leaves(f(x, n))]

    compiled = hf.function(f)
    for value in (-1.0, 1.0):
        args = hf.constant(value), hf.constant(turns)
        assert [float(v) for v in hf.tree.leaves(compiled(*args))] == g(*args)


def test_too_many_options() -> None:
    def f(x):
        name = ""
        for k in range(40):
            if x > k:
                name = f"n{k}" * 1
        return len(name)

    with pytest.raises(hf.errors.TraceError, match="name has no one type after this if"):
        hf.function(f, strict=True)(hf.constant(1.0))
