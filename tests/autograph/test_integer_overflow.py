"""Python ints that a tensor decides about are Python's own in compiled functions, or an error: never what 64 bits have
left of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import HybridflowError, IntegerOverflowError

LEAST, MOST = -(2**63), 2**63 - 1
EDGES = [0, 1, -1, 3, -3, 2, 62, 63, 64, 2**31, -(2**32), 3037000499, 3037000500, 2**62, -(2**62), MOST - 1, MOST]
EDGES += [LEAST + 1, LEAST]

OPS: dict[str, Callable[[int, int], Any]] = {
    "n + m": lambda n, m: n + m,
    "n - m": lambda n, m: n - m,
    "n * m": lambda n, m: n * m,
    "n + 1": lambda n, m: n + 1,
    "n - 1": lambda n, m: n - 1,
    "5 - n": lambda n, m: 5 - n,
    "2**40 * n": lambda n, m: 2**40 * n,
    "n ** 2": lambda n, m: n**2,
    "n ** 3": lambda n, m: n**3,
    "n ** 0": lambda n, m: n**0,
    "n << m": lambda n, m: n << (m if 0 <= m <= 100 else 0),
    "3 << m": lambda n, m: 3 << (m if 0 <= m <= 100 else 0),
    "n // m": lambda n, m: n // (m or 7),
    "n // -1": lambda n, m: n // -1,
    "n // 3": lambda n, m: n // 3,
    "n % m": lambda n, m: n % (m or 7),
    "divmod": lambda n, m: divmod(n, m or 7)[0],
    "-n": lambda n, m: -n,
    "abs(n)": lambda n, m: abs(n),
    "sum": lambda n, m: sum([n, m, 1]),
    "~n": lambda n, m: ~n,
    "n >> m": lambda n, m: n >> (m if 0 <= m <= 100 else 0),
    "n ^ m": lambda n, m: n ^ m,
}


def _python(function: Callable[..., Any], *ints: int) -> int | None:
    """What Python says; None where a part of it needs more than 64 bits."""

    class Checked(int):
        pass

    def kept(name: str) -> Any:
        def method(self: int, *others: int) -> Any:
            found = getattr(int, name)(int(self), *map(int, others))
            if found is NotImplemented or isinstance(found, (bool, float)):
                return found
            if isinstance(found, tuple):
                return tuple(Checked(x) for x in found)
            if not LEAST <= found <= MOST:
                raise OverflowError
            return Checked(found)

        return method

    for name in ("add", "sub", "mul", "floordiv", "mod", "pow", "lshift", "rshift", "xor", "divmod"):
        for side in ("", "r"):
            setattr(Checked, f"__{side}{name}__", kept(f"__{side}{name}__"))
    for name in ("neg", "abs", "invert"):
        setattr(Checked, f"__{name}__", kept(f"__{name}__"))
    try:
        found = function(*map(Checked, ints))
    except OverflowError:
        return None
    return int(found) if LEAST <= found <= MOST else None


def _same(compiled: Callable[..., Any], function: Callable[..., Any], *ints: int) -> bool:
    """Whether a compiled function says what Python says; whether that is an error."""
    wanted = _python(function, *ints)
    try:
        found = int(compiled(*(hf.asarray(n) for n in ints)))
    except IntegerOverflowError as error:
        assert isinstance(error, OverflowError) and isinstance(error, HybridflowError)
        assert wanted is None, (ints, wanted)
        return True
    assert found == wanted, ints
    return False


@pytest.mark.parametrize("expression", OPS)
def test_operators_at_the_ends_of_the_range(expression: str) -> None:
    function = OPS[expression]
    compiled = hf.function(lambda x, y: function(int(x), int(y)))
    failed = [_same(compiled, function, n, m) for n, m in itertools.product(EDGES, EDGES)]
    assert any(failed) is (expression not in ("n ** 0", "n // 3", "n % m", "~n", "n >> m", "n ^ m"))
    assert not all(failed)


def _in_branch(n: int, m: int) -> int:
    return n * m if m > 2 else n + m


def _in_while(n: int, m: int) -> int:
    k = 0
    while k < m:
        n = n * 3
        k += 1
    return n


def _in_for(n: int, m: int) -> int:
    total = 0
    for _ in range(m):
        total = total - n
    return total


def _nested(n: int, m: int) -> int:
    total = 0
    for i in range(m):
        step = n
        for j in range(i):
            if j < 3:
                step = step + step
        total += step
    return total


def _to_a_float(n: int, m: int) -> float:
    k = 0
    while abs(n) < m:
        n = n << 2
        k += 1
    return k


def _collatz(n: int, m: int) -> int:
    most = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + m
        most = n if n > most else most
    return most


CASES: dict[Callable[..., Any], tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {
    _in_branch: ([(2**31, 2**31), (MOST, 0), (LEAST, 1), (-1, MOST)], [(2**32, 2**31), (MOST, 2), (LEAST, -1)]),
    _in_while: ([(1, 39), (-1, 39), (MOST, 0), (0, 1000), (1, -5)], [(1, 40), (-1, 41), (1, 64), (MOST, 1)]),
    _in_for: ([(-1, 1000), (LEAST // 2, 1), (LEAST, 0), (2**61, 4)], [(LEAST, 1), (2**61, 5), (-(2**61), 4)]),
    _nested: ([(1, 9), (2**58, 4), (-(2**60), 2)], [(2**60, 4), (-(2**60), 4), (2**62, 2)]),
    _to_a_float: ([(1, 2**60), (-1, 2**61), (5, 3), (1, 2**62)], [(1, 2**62 + 1), (-3, MOST)]),
    _collatz: ([(27, 1), (1, 1), (-5, 1), (2**62, 1)], [(2**62 + 1, 1), (27, MOST - 81)]),
}


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(request.param)
    yield request.param
    hf.config.set_num_threads(before)


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_branches_and_loops(function: Callable[..., Any], threads: int, tmp_path: Path) -> None:
    """Compiled, and loaded from a file, which holds no Python."""
    fit, outgrow = CASES[function]

    def of_tensors(x: Any, y: Any) -> Any:
        return function(int(x), int(y))

    compiled = hf.function(of_tensors)
    for run in (compiled, None):
        made = run or hf.saved.load(hf.saved.save(compiled, tmp_path / "saved"))
        for ints in fit:
            assert not _same(made, function, *ints)
        for ints in outgrow:
            assert _same(made, function, *ints)


def test_the_error_names_the_line_and_says_what_to_do() -> None:
    @hf.function
    def f(x: Any) -> Any:
        n = int(x)
        return n * n

    line = f.__wrapped__.__code__.co_firstlineno + 3
    with pytest.raises(OverflowError, match=r"outgrew the 64 bits.* Keep it below 2\*\*63, or use floats") as caught:
        f(hf.asarray(2**32))
    assert re.search(rf"\({Path(__file__).name}:{line}\)", str(caught.value))
    assert int(f(hf.asarray(5))) == 25


def test_what_is_not_run_or_not_read_raises_nothing() -> None:
    @hf.function
    def f(x: Any, y: Any) -> Any:
        n = int(x)
        unread = n * n
        if y > 0:
            n = n + 2**62
        for _ in range(int(y)):
            n = n - 1
        del unread
        return n

    assert int(f(hf.asarray(MOST), hf.asarray(0))) == MOST
    with pytest.raises(IntegerOverflowError):
        f(hf.asarray(MOST), hf.asarray(1))


def test_nothing_is_assigned_where_an_int_outgrows_64_bits() -> None:
    v = hf.Variable([1.0, 2.0])

    @hf.function
    def f(x: Any) -> Any:
        v.assign_add(hf.ones(2))
        return int(x) + 1

    f(hf.asarray(1))
    with pytest.raises(IntegerOverflowError):
        f(hf.asarray(MOST))
    assert np.array_equal(v.numpy(), [2.0, 3.0])


def test_an_error_of_ours_is_none_that_programs_catch() -> None:
    """Eager code raises nothing there, so what it does after an error is no answer."""

    @hf.function
    def f(x: Any) -> Any:
        n = int(x)
        try:
            n = n + 1
        except Exception:
            n = 0
        return n

    assert int(f(hf.asarray(4))) == 5
    with pytest.raises(IntegerOverflowError):
        f(hf.asarray(MOST))


def test_examples_of_vmap_raise_for_themselves_alone() -> None:
    def one(x: Any) -> Any:
        n = int(x)
        return hf.asarray(n * 2 if x < 5 else n)

    each = hf.function(lambda xs: hf.vmap(one)(xs))
    assert each(hf.asarray([1, 4, MOST])).numpy().tolist() == [2, 8, MOST]
    with pytest.raises(IntegerOverflowError):
        each(hf.asarray([1, LEAST, MOST]))


def _checks(function: Any, *args: Any) -> int:
    return str(function.ir(*args, stage="optimized")).count("checked_")


UNCHECKED: dict[str, Callable[..., Any]] = {}


def _unchecked(function: Callable[..., Any]) -> Callable[..., Any]:
    UNCHECKED[function.__name__] = function
    return function


@_unchecked
def below_a_tensor(x: Any, n: Any) -> Any:
    k = 0
    while k < n:
        x = x * 0.5
        k += 1
    return x, k


@_unchecked
def until_a_tensor_says(x: Any, n: Any) -> Any:
    steps = 0
    while hf.sum(x) > 1.0:
        x = x * 0.5
        steps += 1
    return x, steps


@_unchecked
def positions(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        for j in range(i + 1):
            total += x[j] * (i + j) + x[i - j]
    return total


@_unchecked
def steps_of_two(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(0, n, 2):
        total += x[i]
    for i in reversed(range(n)):
        total = total * 0.5 + x[i]
    return total


@_unchecked
def counted(x: Any, n: Any) -> Any:
    count = 0
    for row in x:
        if row > 0:
            count += 1
    return count, count * 3


@_unchecked
def extents(x: Any, n: Any) -> Any:
    total = 0
    for i in range(x.shape[0]):
        total = total + (2 * i if x[i] > 0 else -i)
    return total


@_unchecked
def digits(x: Any, n: Any) -> Any:
    rest, count = int(n), 0
    while rest > 0:
        rest = rest // 10
        count += 1
    return count


@pytest.mark.parametrize("name", UNCHECKED)
def test_counters_positions_and_lengths_have_no_checks(name: str) -> None:
    x, n = hf.asarray(np.linspace(1.0, 0.1, 20, dtype=np.float32)), hf.asarray(12)
    compiled = hf.function(UNCHECKED[name])
    assert _checks(compiled, x, n) == 0
    assert "checked_" in str(compiled.ir(x, n))  # there were some
    compiled(x, n)


def test_sums_of_counters_are_checked() -> None:
    @hf.function
    def f(n: Any) -> Any:
        total = 0
        for i in range(n):
            total += i * i
        return total

    assert _checks(f, hf.asarray(5)) == 2
    assert int(f(hf.asarray(5))) == 30
