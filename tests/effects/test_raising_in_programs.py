"""``assert`` and ``raise`` whose condition is a tensor: the user's own exceptions, raised when the program runs.

PYTEST_DONT_REWRITE: it would say more than Python does.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code


class Mine(Exception):
    def __init__(self, what: Any, where: Any = None) -> None:
        super().__init__(f"mine {what}")
        self.what, self.where = what, where


V = hf.Variable(0.0)


def asserted(x):
    assert hf.all(x > 0), f"must be positive: {x}"
    V.assign_add(1.0)
    print("after", x)
    assert x[0] < 3
    return x * 2


def in_a_loop(x):
    for i, row in enumerate(x):
        V.assign_add(row)
        if row > 5:
            print("bad", i)
            raise Mine(row, i)
        assert row > -2, "row " + str(i)
    return hf.sum(x)


def in_a_long_loop(x):
    s, n = hf.sum(x), 0
    while s < 100:
        if s < 0:
            raise ValueError("negative %s after %s" % (s, n)) from KeyError(n)  # noqa: UP031
        print("turn", n)
        s, n = s * 2, n + 1
    return s


def after_a_return(x):
    if x[0] > 0:
        return x
    raise RuntimeError(f"x[0] is {x[0]:.2f}")


def on_several_ways(x):
    if x[0] > 2:
        raise KeyError("a")
    elif x[1] > 2:
        raise LookupError
    else:
        y = x
        rest = [y]
    return rest[0] + y


def always(x):
    if x[0] > 0:
        raise KeyError("a")
    else:
        raise KeyError("b", x[0])


def positive(x):
    if hf.sum(x) < 0:
        raise Mine("of a helper", where=x)
    return hf.sqrt(hf.sum(x))


def of_a_helper(x):
    try:
        y = positive(x)
    except (KeyError, errors.ShapeError):
        return x[0]
    return y + 1


PROGRAMS = {
    f.__name__: f for f in (asserted, in_a_loop, in_a_long_loop, after_a_return, on_several_ways, always, of_a_helper)
}
VALUES = ([1.0, 2.0], [-1.0, 3.0], [3.0, 9.0], [-3.0, -1.0])
OUT = io.StringIO()


def shown(error: BaseException | None) -> Any:
    if error is None:
        return None
    attributes = {name: repr(value) for name, value in vars(error).items() if name != "__notes__"}
    return type(error), str(error), repr(error.args), attributes, shown(error.__cause__)


def outcome(function: Callable[..., Any], x: Any) -> Any:
    OUT.seek(0)
    OUT.truncate()
    try:
        with contextlib.redirect_stdout(OUT):
            found = function(x).numpy().tobytes()
    except Exception as error:
        found = shown(error)
    return found, OUT.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_functions_raise_what_eager_ones_do(name: str) -> None:
    function = PROGRAMS[name]
    compiled = hf.function(function)
    raised = 0
    for values in VALUES:
        x = hf.constant(values)
        V.assign(0.0)
        expected = outcome(function, x)
        after = V.numpy()
        failed = isinstance(expected[0], tuple)
        raised += failed
        for _ in range(3):
            V.assign(0.0)
            assert outcome(compiled, x) == expected
            assert V.numpy() == (0.0 if failed else after)  # a call that raises leaves variables as they were
    assert raised
    assert len(compiled.signatures()) == 1


@pytest.mark.parametrize("name", ["asserted", "in_a_loop", "in_a_long_loop", "of_a_helper"])
def test_gradients_raise_it_too(name: str) -> None:
    function = PROGRAMS[name]
    for values in VALUES:
        x = hf.constant(values)
        expected = outcome(hf.grad(lambda x: hf.sum(function(x))), x)
        assert outcome(hf.function(hf.grad(lambda x: hf.sum(function(x)))), x) == expected
        assert outcome(hf.grad(lambda x: hf.sum(hf.function(function)(x))), x) == expected


def test_the_first_error_of_the_program_is_the_one() -> None:
    @hf.function
    def f(x, i):
        assert x[0] > 0, "first"
        y = x[i]
        assert x[1] > 0, "second"
        return y // 1.0

    cases = {
        (-1.0, -1.0, 9): (AssertionError, "first"),
        (1.0, -1.0, 9): (errors.IndexRangeError, "index"),
        (1.0, -1.0, 1): (AssertionError, "second"),
    }
    for (a, b, i), (kind, text) in cases.items():
        with pytest.raises(kind, match=text):
            f(hf.constant([a, b]), hf.constant(i))


def test_the_line_is_a_note() -> None:
    with pytest.raises(AssertionError) as info:
        hf.function(asserted)(hf.constant([-1.0, 1.0]))
    assert info.value.__notes__ == [f"raised by compiled code  (test_raising_in_programs.py:{LINE})"]


LINE = asserted.__code__.co_firstlineno + 1


def caught_outside(x):
    try:
        return nested(x)
    except Exception:
        return x


@hf.function
def nested(x):
    return positive(x)


@pytest.mark.parametrize("function", [caught_outside])
def test_what_would_be_caught_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(errors.TraceError, match=r"depends on a tensor.*after the try at test_raising") as info:
        hf.function(function, strict=True)(hf.constant([1.0, 2.0]))
    assert "test_raising_in_programs.py:" in str(info.value.where)


def test_errors_that_do_not_depend_on_tensors_are_pythons() -> None:
    ran = []

    @hf.function
    def f(x, n):
        try:
            assert n < 3, "too many"
            if n == 2:
                raise KeyError(n)
        except KeyError:
            ran.append("caught")
            x = x + 1
        finally:
            ran.append("finally")
        return x

    assert f(hf.constant(1.0), 2).numpy() == 2.0
    assert ran == ["caught", "finally"]
    with pytest.raises(AssertionError, match="too many"):
        f(hf.constant(1.0), 3)
