"""Errors that a tensor decides about and the compiled function catches: except, else and finally mean what they do
eagerly, in the program."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest

import hybridflow as hf

pytestmark = pytest.mark.code


class Mine(Exception):
    def __init__(self, what: Any, where: Any = None) -> None:
        super().__init__(f"mine {what}")
        self.what, self.where = what, where


class Worse(Mine):
    def __init__(self, what: Any) -> None:
        super().__init__(what, where=what * 2)
        self.flag = True
        self.extra = what if what > 3 else what - 1


V = hf.Variable(0.0)


def fails():
    raise ValueError("g")


def positive(x):
    if x < 0:
        raise Mine(x)
    return hf.sqrt(x)


def checked(x):
    assert x < 2, "large"
    assert x > -2, f"small {x}"
    return x * 2


def of_a_function_that_always_raises(x):
    if x > 0:
        fails()
    return x


def after_a_return(x):
    if x > 0:
        return x
    fails()
    return x


def of_a_method_that_raises_in_a_loop(x):
    while x < 3:
        x = x + 1
        if x > 2:
            fails()
    return x


def caught_of_a_function_that_always_raises(x):
    try:
        if x > 0:
            fails()
        x = x * 2
    except ValueError as error:
        x = x + len(str(error))
    return x


def with_else(x):
    try:
        if x > 0:
            raise ValueError("a")
        x = x * 2
    except ValueError:
        x = x + 1
    else:
        x = x - 5
        if x < -4:
            return x
    return x * 3


def else_that_raises(x):
    try:
        y = checked(x)
    except AssertionError:
        y = x * 0
    else:
        if y > 1:
            raise KeyError("else")
    return y


def several_clauses(x):
    y = x
    try:
        if x > 1:
            raise KeyError("k")
        y = x * 2
        if x < -1:
            raise Mine(x, where=y)
        elif x < 0:
            raise IndexError
        y = y + 5
    except (KeyError, IndexError) as error:
        y = y * len(type(error).__name__) + len(error.args)
    except Mine as error:
        y = y + error.where * error.what
    finally:
        V.assign_add(1.0)
        y = y + 100
        print("finally", y)
    return y


def clause_of_a_base_class(x):
    try:
        if x > 1:
            raise Worse(x)
        raise Mine(x)
    except Worse as error:
        return error.where + error.extra
    except Exception as error:
        print(f"caught {error!s:>12}", error.args[0])
        return error.what


def out_of_a_helper(x):
    try:
        return positive(x) + 1
    except Mine as error:
        return error.what * 10


def out_of_several_helpers(x):
    def inner(x):
        y = positive(x)
        return y * 2

    def outer(x):
        if x < 3:
            return inner(x)
        raise KeyError(3)

    try:
        z = outer(x)
    except Mine as error:
        z = error.what
    except LookupError:
        z = x * 0
    return z


def out_of_a_comprehension(x):
    total = x
    try:
        total = sum([positive(x + k) for k in range(3)]) + (lambda t: positive(t))(x)
    except Mine as error:
        total = error.what
    return total


def anything_in_a_loop(x):
    for _ in range(2):
        try:
            assert x > 0
        except:  # noqa: E722
            x = -x + 1
    return x


def cleaned_up(x):
    try:
        if x > 2:
            raise Mine(1)
        print("after")
    finally:
        V.assign(7.0)
        print("clean")
    return x


def cleaned_up_in_order(x):
    try:
        try:
            V.assign_add(x)
            y = positive(x)
            V.assign_add(10.0)
        finally:
            V.assign(V * 2)
    except Mine as error:
        y = error.what + V
    finally:
        V.assign_add(1.0)
    return y


def raised_again(x):
    try:
        try:
            if x > 0:
                raise Mine(x)
            x = x + 1
        except Mine:
            if x > 2:
                raise
            x = x * 2
    except Exception as error:
        x = error.what * 100
    return x


def raised_from(x):
    try:
        if x > 0:
            raise Mine(x)
    except Mine as error:
        raise ValueError(f"bad {x}") from error
    return x


def not_caught(x):
    try:
        if x > 2:
            raise KeyError("k")
        if x > 0:
            raise Mine(x)
    except LookupError:
        x = x + 1
    return x


def caught_by_the_outer_one(x):
    try:
        try:
            x = positive(x) * 2
        except (KeyError, TypeError):
            x = x * 50
        finally:
            x = x + 0.5
    except Mine as error:
        x = error.what - x
    return x


def jumps_in_clauses(x):
    n = 0.0
    for i in range(5):
        try:
            if x * i > 2:
                raise ValueError(i)
            n = n + x
        except ValueError:
            n = n - i
            if i > 3:
                break
            continue
        finally:
            n = n * 2
    else:
        n = n + 1000
    return n


def plain_jumps_in_clauses(x):
    n = x
    for i in range(6):
        try:
            if i == 4:
                break
            n = n + positive(x + i)
        except Mine:
            n = n * 2
            continue
        n = n + 1
    return n


def in_a_loop_over_a_tensor(x):
    n = hf.constant(0.0)
    while n < 10:
        try:
            n = n + 1
            if n > 5:
                raise Mine(n)
            x = x + positive(x)
        except Mine as error:
            x = x + error.what
            if n > 8:
                return x
    return x


def out_of_a_loop_over_a_tensor(x):
    try:
        while x < 10:
            x = x * 2 + 1
            if x > 6:
                raise StopIteration
            if x < -100:
                raise Mine(x)
            if x < -90:
                break
    except StopIteration:
        return x
    except Mine as error:
        x = error.what - 1
    return x


def over_rows(x):
    total, bad = hf.constant(0.0), 0
    for row in hf.stack([x, x - 1, x + 1, -x, x * 2, x, x, x - 3, x, x + 2]):
        try:
            total = total + positive(row)
        except Mine as error:
            total = total + error.what * 0.5
            bad += 1
    return total * bad


def early_stopping(x):
    best, patience = hf.constant(1e9), 0

    class Stop(Exception):
        pass

    def update(loss):
        nonlocal best, patience
        if loss < best:
            best, patience = loss, 0
        else:
            patience = patience + 1
            if patience > 2:
                raise Stop

    steps = 0
    try:
        for step in range(12):
            update(hf.abs(x - step * 0.5))
            steps = steps + 1
    except Stop:
        best = -best
    return best, steps


def in_a_clause(x):
    try:
        raise KeyError("always")
    except KeyError:
        try:
            y = positive(x)
        except Mine:
            y = x - 1
    return y


def with_a_tape(x):
    try:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = positive(x) * x
        g = tape.gradient(y, x)
    except Mine:
        g = x * 0
    return g


def returned_in_a_try_with_finally(x):
    try:
        if x > 1:
            return x * 2
        V.assign_add(positive(x))
    except Mine:
        return x * 3
    finally:
        V.assign_add(100.0)
        print("done")
    return x


def changed_before_it_was_raised(x):
    log, box = [], {"n": 0}
    try:
        log.append(x)
        box["n"] = box["n"] + 1
        y = positive(x)
        box["n"] = box["n"] + 10
    except Mine:
        y = log[0] * 3
    return y + box["n"]


PROGRAMS = [f for name, f in list(globals().items()) if callable(f) and getattr(f, "__module__", "") == __name__]
PROGRAMS = [f for f in PROGRAMS if not isinstance(f, type) and f not in (fails, positive, checked)]
VALUES = (-200.0, -3.0, -0.5, 0.75, 1.5, 2.5, 4.0)
OUT = io.StringIO()


def shown(error: BaseException | None) -> Any:
    if error is None:
        return None
    attributes = {name: repr(value) for name, value in vars(error).items() if name != "__notes__"}
    return type(error).__name__, str(error), repr(error.args), attributes, shown(error.__cause__)


def outcome(function: Callable[..., Any], x: Any) -> Any:
    OUT.seek(0)
    OUT.truncate()
    V.assign(0.0)
    try:
        with contextlib.redirect_stdout(OUT):
            found = function(x)
        made: Any = [x.numpy().tobytes() if isinstance(x, hf.Tensor) else float(x) for x in
                     (found if isinstance(found, tuple) else (found,))]  # fmt: skip
        return made, OUT.getvalue(), float(V.numpy())
    except Exception as error:
        return shown(error), OUT.getvalue()


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_compiled_functions_catch_what_eager_ones_do(function: Callable[..., Any]) -> None:
    compiled = hf.function(function)
    for value in VALUES:
        x = hf.constant(value)
        want = outcome(function, x)
        for _ in range(2):
            got = outcome(compiled, x)
            if isinstance(want[0], list):
                want_values = [np_float(w) for w in want[0]]
                assert ([np_float(g) for g in got[0]], *got[1:]) == (want_values, *want[1:]), value
            else:
                assert got == want, value
    assert len(compiled.signatures()) == 1


def np_float(value: Any) -> Any:
    """Numbers of Python's leave a compiled function as tensors."""
    if isinstance(value, bytes) and len(value) == 8:
        return float(memoryview(value).cast("q")[0])
    return value


@pytest.mark.parametrize("function", [out_of_a_helper, several_clauses, in_a_loop_over_a_tensor, raised_again])
def test_gradients(function: Callable[..., Any]) -> None:
    for value in (-3.0, -0.5, 0.75, 1.5, 4.0):
        x = hf.constant(value)
        want = outcome(hf.grad(function), x)
        assert outcome(hf.function(hf.grad(function)), x) == want
        assert outcome(hf.grad(hf.function(function)), x) == want
