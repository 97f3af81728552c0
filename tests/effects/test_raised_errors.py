"""Errors that compiled functions raise: after what comes before them, and with all that they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hybridflow as hf
from hybridflow.core.context import now

X = hf.asarray([1.0, 2.0])


def raised(f: Callable[..., Any], *args: Any) -> BaseException:
    with pytest.raises(BaseException) as caught:  # compared by the caller
        f(*args)
    return caught.value


# ---- errors that no tensor decides on


def test_what_comes_before_an_error_happens(capsys: Any) -> None:
    seen: list[Any] = []
    strict, count = True, hf.Variable(0.0)

    @hf.function
    def f(x: Any) -> Any:
        count.assign_add(1.0)
        print("x is", x)
        hf.py_function(lambda a: seen.append(a.tolist()), [x * 2], [])
        if strict:
            raise ValueError(f"bad {x}", x)
        return x

    for _ in range(2):
        error = raised(f, X)
        assert type(error) is ValueError and error.args[0] == "bad [1. 2.]" and error.args[1] is X
    assert seen == [[2.0, 4.0]] * 2 and capsys.readouterr().out == "x is [1. 2.]\n" * 2
    assert count.numpy() == 0.0  # a call that raises leaves variables as they were
    strict = False
    assert f(X).tolist() == [1.0, 2.0] and count.numpy() == 1.0


def test_a_check_before_an_error_comes_first() -> None:
    @hf.function
    def f(x: Any, by: Any) -> Any:
        assert hf.sum(x) < 10, "large"
        by = by // by
        raise KeyError("always")

    one, none = hf.asarray([1, 1]), hf.asarray([0, 1])
    assert repr(raised(f, X, one)) == "KeyError('always')"
    error = raised(f, X * 10, one)
    assert isinstance(error, AssertionError) and str(error).startswith("large")
    assert isinstance(raised(f, X, none), ZeroDivisionError)


def test_an_error_is_the_very_one_with_the_lines_that_raised_it() -> None:
    wanted = LookupError("this")

    def inner() -> None:
        raise wanted

    @hf.function
    def f(x: Any) -> Any:
        print(x)
        inner()
        return x

    error = raised(f, X)
    assert error is wanted
    entry, names = error.__traceback__, []
    while entry is not None:
        names.append(entry.tb_frame.f_code.co_name)
        entry = entry.tb_next
    assert names[-2:] == ["f", "inner"]


def test_an_error_that_only_tracing_leads_to_is_raised() -> None:
    count = hf.Variable(0.0)

    @hf.function
    def f(x: Any) -> Any:
        count.assign_add(1.0)
        print(x)
        if now().trace is not None:
            raise OverflowError("traced")
        return x

    assert repr(raised(f, X)) == "OverflowError('traced')"
    assert count.numpy() == 0.0
    assert repr(raised(f.get_concrete_function, X)) == "OverflowError('traced')"


def test_open_extents_and_nested_functions() -> None:
    seen: list[Any] = []

    @hf.function
    def inner(x: Any, limit: int) -> Any:
        hf.py_function(lambda a: seen.append(a.shape), [x], [])
        if limit > 3:
            raise ValueError(f"{limit} for {x.shape}")
        return x + limit

    @hf.function
    def outer(x: Any, limit: int) -> Any:
        return inner(x, limit) * 2

    for n, limit in [(2, 2), (3, 3), (4, 9), (5, 8)]:
        if limit < 4:
            outer(hf.ones(n), limit)
        else:
            assert repr(raised(outer, hf.ones(n), limit)) == f"ValueError('{limit} for ({n},)')"
    assert seen == [(2,), (3,), (4,), (5,)]


# ---- errors with a state of their own


class Coded(OSError):
    def __init__(self, code: int) -> None:
        super().__init__(code, "coded", "place")
        self.extra = code + 1


class Plain(ValueError):
    pass


MADE: list[Callable[[], BaseException]] = [
    lambda: SystemExit(3),
    lambda: StopIteration(3),
    lambda: OSError(2, "nope", "file"),
    lambda: OSError(18, "cross", "a", None, "b"),
    lambda: UnicodeDecodeError("utf-8", b"\xff\x00", 0, 1, "invalid"),
    lambda: ImportError("no module", name="m", path="p"),
    lambda: NameError("unknown", name="n"),
    lambda: SyntaxError("wrong", ("file", 3, 4, "text", 3, 9)),
    lambda: ExceptionGroup("many", [ValueError(1), ExceptionGroup("inner", [OSError(2, "nope", "file")])]),
    lambda: Coded(5),
    lambda: Plain("text", 2),
    lambda: KeyError("k"),
    lambda: hf.errors.ShapeError("stage", "wrong", "file:1"),
]


def state(error: BaseException) -> Any:
    names = "code value name path errno strerror filename filename2 lineno text end encoding object start reason extra"
    slots = {name: getattr(error, name) for name in [*names.split(), "stage", "where"] if hasattr(error, name)}
    inner = [state(e) for e in error.exceptions] if isinstance(error, BaseExceptionGroup) else []
    args = error.args[:1] if inner else error.args
    return type(error), str(error), args, slots, inner


@pytest.mark.parametrize("make", MADE, ids=lambda make: type(make()).__name__)
def test_an_error_that_a_tensor_decides_on_keeps_its_state(make: Callable[[], BaseException]) -> None:
    @hf.function
    def f(x: Any) -> Any:
        if hf.sum(x) > 0:
            raise make() from make()
        return x

    error = raised(f, X)
    assert state(error) == state(make())
    assert error.__cause__ is not None and state(error.__cause__) == state(make())
    assert f(-X).tolist() == [-1.0, -2.0]


def test_values_of_the_program_are_in_the_state() -> None:
    @hf.function
    def f(x: Any) -> Any:
        if hf.sum(x) > 0:
            raise SystemExit(hf.sum(x))
        return x

    error = raised(f, X)
    assert isinstance(error, SystemExit) and float(error.code) == 3.0  # type: ignore[arg-type]
