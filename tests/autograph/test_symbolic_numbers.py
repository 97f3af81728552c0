"""Python numbers that a tensor decides about are Python's in compiled functions: the bits and dtypes of eager runs, or
one error that says what has no meaning there."""

from __future__ import annotations

import enum
import functools
import linecache
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.autograph.hooks.builtin_overrides import NAMESAKES
from hybridflow.errors import HybridflowError

pytestmark = pytest.mark.code

# In these n and m are ints, p and q floats, a and b bools, and mix is an int or a float.
RIGHT = {
    "bools": """
        ~a, -a, +a, abs(a), a + b, a - b, a * b, a / n, a // n, a % n, a & b, a | b, a ^ b, a & n, a << 2,
        True + a
    """,
    "ints": """
        ~n, n + m, n - m, n * m, n / m, n // m, n % m, n ** 2, n ** 0, n ** -1, n << 1, n >> 1, divmod(n,
        m), -n // 3, -n % 3, 7 / n, 7 // n, 7 % n, divmod(7, m), 2.0 ** 3 * n, n ^ m, n | 8, n & 6, pow(n,
        2), n ** 0.5
    """,
    "floats": """
        p + q, p - q, p * q, p / q, p // q, p % q, -p // q, -p % q, p ** 2, p + n, p * a, p // n, 1.5 - p,
        abs(-p), divmod(-p, q), p + 10 ** 30, p * 10 ** 300
    """,
    "comparisons": """
        n == 2, n != 2, n < m, p <= q, p > n, n >= 2.5, n == 'a', n != None, n == None, a == True, 1 < n <
        5, n in {1, 2}, n in {1: 2}, n in [1, 2, 5], n in (1.0, 3), p in [0.1, 0.25], n in range(3), n not
        in [2], not n, n and m, n or m, a and b, p if a else q, n is None, n is not None, a is x, n is
        Ellipsis
    """,
    "types": """
        type(n), type(p), type(a), type(n) is int, type(n) == float, type(n + p), type(a + a), type(n / m),
        isinstance(n, int), isinstance(a, int), isinstance(n, bool), isinstance(p, float), isinstance(n,
        hf.Tensor), isinstance(n, (str, float)), n.__class__, callable(n), hasattr(n, 'shape'), hasattr(n,
        'real'), getattr(n, 'dtype', 5)
    """,
    "parts": """
        n.real, n.imag, p.real, p.imag, a.real, n.numerator, n.denominator, n.conjugate(), p.is_integer()
    """,
    "conversions": """
        int(n), int(p), int(-p), int(a), float(n), float(p), float(a), bool(n), bool(p), bool(a), round(n),
        round(p), round(p * 10), round(n, 1), math.floor(-p), math.ceil(p), math.trunc(-p), math.sqrt(p),
        math.sqrt(n), math.fabs(-p), math.isnan(p), math.isfinite(n)
    """,
    "several": """
        max(n, m), min(n, m), max(n, 2), max([p, q, 0.3]), min(p, q), sum([n, m]), sum([p, q], 1.0), any([a,
        b]), all([a, b]), any([a, n > 2]), all([n, m, 0]), any(v > 2 for v in [n, m]), max([x[0], x[1]]),
        min(x[0], x[1], x[2]), any(v > 1 for v in x), all([x[0] > 0, a]), max([n, m], key=lambda v: -v),
        max((n, m), key=operator.neg), functools.reduce(operator.add, [n, m]), list(map(abs, [-n, m])),
        operator.truediv(n, m), operator.neg(a)
    """,
    "functions": """
        hf.exp(p), hf.exp(n), hf.sin(p), hf.maximum(x, p), hf.maximum(x, n), hf.minimum(p, q), hf.maximum(n,
        p), hf.add(p, q), hf.multiply(n, m), hf.sqrt(n), hf.isnan(p), hf.sign(p), hf.abs(n), hf.negative(n),
        hf.square(p), hf.sum([p, q]), hf.mean([n, m]), hf.pow(x, n), hf.pow(x, p), hf.pow(p, x),
        hf.divide(n, m), hf.floor_divide(n, m), hf.where(y, p, q), hf.where(y, x, p), hf.where(y, n, p),
        hf.clip(x, p, q + 5), hf.logical_and(y, a)
    """,
    "tensors": """
        hf.constant(p), hf.constant(n), hf.constant(a), hf.asarray([p, q]), hf.asarray([n, m]),
        hf.asarray([n, p]), hf.asarray([p, x[0]]), hf.stack([x[0], p]), hf.asarray(p, dtype=hf.float64),
        hf.asarray([p, 0.1], dtype=hf.float64), hf.full((2, ), p), hf.full((2, ), n), hf.full_like(x, p)
    """,
    "among tensors": """
        x + n, x * p, x / n, x // n, x % p, x ** n, x ** p, n ** x, p - x, k + n, k * p, k / n, k // n, k **
        n, n - k, y + n, y * p, y & a, y | a, k & n, k << n, x > p, k == n, x + a, k + a, x[m - 1], a
        * x, hf.astype(x, hf.float64) * p, hf.astype(x, hf.float16) * p
    """,
    "NumPy's": """
        np.float32(2) * p, p * np.float32(2), np.float64(2) * n, np.int32(2) + n, n + np.int8(3),
        np.sqrt(p), np.maximum(p, q), np.add(n, m), np.float32(1.5) < p, n == np.int64(2)
    """,
    "sizes": """
        x[:n], x[n - 1:], hf.zeros(n), hf.ones((n, 2)), hf.arange(n), hf.repeat(x, m), hf.broadcast_to(p, (n,))
    """,
    "of two kinds": """
        mix * 0.5, x * mix, mix / 2, isinstance(mix, (int, float)), float(mix), int(mix), hf.maximum(x,
        mix), mix > 1, x + mix + n
    """,
}

REFUSED = {
    "{n: 1}": "a key of a dict",
    "{n}": "a key of a dict",
    "n is 2": "Compare with ==",
    "a is True": "Compare with ==",
    "a is not False": "Compare with ==",
    "n is m": "Compare with ==",
    "operator.is_(a, True)": "Compare with ==",
    "(1, 2, 3)[:n]": "a size or position",
    "chr(n)": "a size or position",
    "f'{n}'": "not known while tracing",
    "f'{[n, 1]}'": "not known while tracing",
    "str([n])": "not known while tracing",
    "'%d' % n": "not known while tracing",
    "'%s %s' % (1, n)": "not known while tracing",
    "'{}'.format(n)": "not known while tracing",
    "'{v}'.format(v=n)": "not known while tracing",
    "'a' * n": "whose length would depend on it",
    "round(p, 1)": "digits after the point",
    "math.exp(p)": "a function of floats",
    "math.gcd(n, 4)": "a size or position",
    "2 ** n": "depends on the sign of its exponent",
    "pow(n, 2, 3)": "of which pow is asked",
    "n.bit_length()": "the attribute bit_length",
    "math.exp(x[0])": "math.exp() needs the value of",
    "math.pow(2, x[0])": "Write hf.pow",
    "k * mix": "the result is int32 or float32",
    "y * mix": "the result is int64 or float32",
    "hf.exp(mix)": "Bind floats on all ways",
    "hf.constant(mix)": "Bind floats on all ways",
    "type(mix)": "Bind floats on all ways",
    "isinstance(mix, int)": "isinstance asks which",
    "np.float32(2) if n is m else 0": "Compare with ==",
    "n + 2 ** 70": "does not fit int64",
}

# What the numbers are on the one way, and what is asked of them there.
# The parts between semicolons are asked for by themselves, as one that raises ends a program.
EDGES = {
    "p, q = -4.0, 0.0": "math.sqrt(p); p / q; p // q; p % q; q**-1; (p**q, p - p)",
    "p, q = math.nan, -0.0": "int(p); round(p); math.floor(p); (math.sqrt(p), p**2, p.is_integer(), math.sqrt(q))",
    "p, q = math.inf, -1.5": "int(p); math.ceil(p); (p.is_integer(), p.imag, q.imag, p**q, q**p, 0.0**-p)",
    "p, q = 10.0, 400.0": "p**q; (p**-q, q.is_integer(), -(p**3))",
    "n, m = 0, -1": "n**-1; 5 >> m; 5 << m; n / n; 7 // n; 7 % n; (m / 3, m >> 1, n.imag)",
    "n, q = 2**53 + 1, 2.0**53": "(n == q, n != q, n < q, n <= q, n > q, n >= q, q < n, n == 2.0**53, q < 2**53 + 1)",
    "n, q = 2**63 - 1, 2.0**63": "(n == q, n != q, n < q, n <= q, n > q, n >= q, q == n, q > n, -n == -q, -n > -q)",
    "n, q = 7, math.nan": "(n == q, n != q, n < q, n >= q, q > n)",
}
BEYOND = {"p = 1e30": "int(p)", "p = -(2.0**63) * 1.5": "math.floor(p)", "p, q = -8.0, 1 / 3": "p**q"}
_NAMES = {"functools": functools, "math": math, "operator": operator, "np": np, "hf": hf}


def function(name: str, expression: str) -> Callable[..., Any]:
    """A function of the expression, whose source is found as a doctest's is."""
    text = f"""def f(t, x, k, y):
    if t > 0:
        n, m, p, q, a, b, mix = 2, 3, 0.1, 0.7, True, False, 1
    else:
        n, m, p, q, a, b, mix = 5, 1, 2.25, 0.5, False, True, 2.5
    return {expression}
"""
    file = f"<decided numbers: {name}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    found: dict[str, Any] = dict(_NAMES)
    exec(compile(text, file, "exec"), found)
    return found["f"]  # type: ignore[no-any-return]


def form(value: Any) -> Any:
    """What of a value is compared: numbers of Python's and NumPy's leave compiled functions as tensors."""
    if isinstance(value, (list, tuple)):
        return list(map(form, value))
    if isinstance(value, (bool, int, float, np.generic, hf.Tensor)):
        array = np.asarray(value)
        return str(array.dtype), array.shape, array.tobytes()
    return repr(value)


TENSORS = (
    hf.constant([1.5, -2.0, 0.75]),
    hf.constant([1, 7, -3], dtype=hf.int32),
    hf.constant([True, False, True]),
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RIGHT)
def test_they_go_on_to_be_pythons(name: str) -> None:
    f = function(name, f"[{RIGHT[name]}]")
    compiled = hf.function(f)
    for t in (hf.constant(1.0), hf.constant(-1.0)):
        for k, (want, got) in enumerate(zip(form(f(t, *TENSORS)), form(compiled(t, *TENSORS)), strict=True)):
            assert got == want, f"item {k} of {name}"


def edge(numbers: str, expression: str) -> Callable[..., Any]:
    """A function of the expression, on one way with these numbers."""
    text = f"""def f(t):
    n, m, p, q = 3, 2, 1.5, 2.0
    if t > 0:
        {numbers}
    return {expression}
"""
    file = f"<decided numbers: {numbers}; {expression}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    found: dict[str, Any] = dict(_NAMES)
    exec(compile(text, file, "exec"), found)
    return found["f"]  # type: ignore[no-any-return]


def outcome(f: Callable[..., Any], t: hf.Tensor) -> Any:
    """The result's form, or the error's class and text."""
    try:
        return form(f(t))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("numbers", EDGES)
def test_they_raise_what_pythons_raise(numbers: str) -> None:
    for expression in EDGES[numbers].split("; "):
        f = edge(numbers, expression)
        compiled = hf.function(f)
        for t in (hf.constant(1.0), hf.constant(-1.0), hf.constant(1.0)):
            assert outcome(compiled, t) == outcome(f, t), expression


@pytest.mark.parametrize("numbers", BEYOND)
def test_what_no_number_of_a_program_holds_is_an_error(numbers: str) -> None:
    f = edge(numbers, BEYOND[numbers])
    compiled = hf.function(f)
    with pytest.raises(hf.errors.ArgumentError, match="which no number of a compiled function holds"):
        compiled(hf.constant(1.0))
    assert form(compiled(hf.constant(-1.0))) == form(f(hf.constant(-1.0)))


def test_what_may_raise_is_caught_within() -> None:
    def f(t: Any) -> Any:
        n = 1 if t > 0 else 0
        try:
            return t / (3 / n)
        except ZeroDivisionError:
            return -t

    for t in (1.0, -1.0):
        assert hf.function(f)(hf.constant(t)).item() == f(hf.constant(t)).item()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", REFUSED)
def test_what_needs_their_value_is_refused(expression: str) -> None:
    with pytest.raises(HybridflowError) as caught:
        hf.function(function(expression, expression), strict=True)(hf.constant(1.0), *TENSORS)
    text = str(caught.value)
    assert REFUSED[expression] in text
    assert "<decided numbers" in text and len(text.splitlines()) <= 12


@pytest.mark.parametrize("name", ["shape", "dtype", "numpy", "foo"])
def test_they_have_no_attributes_of_tensors(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'int' object has no attribute '{name}'"):
        hf.function(function(name, f"n.{name}"))(hf.constant(1.0), *TENSORS)


def test_match_knows_their_class() -> None:
    def f(t: Any) -> Any:
        n = 1 if t > 0 else 2
        match (t, n):
            case (_, float()):
                return t * 2
            case (_, int(k)) if k > 1:
                return t
        return -t

    for t in (hf.constant(1.0), hf.constant(-1.0)):
        assert form(hf.function(f)(t)) == form(f(t))


def test_what_a_loop_counts_has_no_say_in_dtypes() -> None:
    def f(x: Any) -> Any:
        n, p, s = 0, 1.0, np.float32(1.0)
        while hf.sum(x) < 50:
            x = hf.maximum(x * p, n) + hf.exp(p) * s
            n, p, s = n + 1, p / 3, s * np.float32(0.3)
        return x, n, p, s, hf.exp(p), type(n), type(p), ~(n > 3)

    x = hf.constant([1.5, -2.0, 0.75])
    assert form(hf.function(f)(x)) == form(f(x))


def test_a_number_may_begin_as_an_int() -> None:
    def total(x: Any) -> Any:
        total = 0
        for k in range(4):
            if x[0] > k:
                total = total + 0.5
        return x * total

    def counted(x: Any) -> Any:
        n = 0
        while hf.sum(x) < 50:
            x, n = x + 10, n + 0.5
        return hf.arange(3) * n

    x = hf.constant([1.5, -2.0, 0.75])
    assert form(hf.function(total)(x)) == form(total(x))
    with pytest.raises(HybridflowError, match="int or float, and the result is int64 or float32"):
        hf.function(counted, strict=True)(x)


def test_numpy_scalars_and_pythons_numbers_are_two_things() -> None:
    def same(x: Any, s: Any) -> Any:
        u = s * 2 if x[0] > 0 else s
        return hf.exp(u), u * u, x * u

    def two(x: Any, s: Any) -> Any:
        u = s if x[0] > 0 else 1.0
        return x * u

    x, s = hf.constant([1.5, -2.0]), np.float16(0.3)
    assert form(hf.function(same)(x, s)) == form(same(x, s))
    with pytest.raises(HybridflowError, match="no one type"):
        hf.function(two, strict=True)(x, s)


OF_TENSORS: dict[str, Callable[..., Any]] = {
    "int": lambda x, n: (int(n) + 1, int(x[0]) // 2, int(-x[0] * 3)),
    "float": lambda x, n: (float(x[0]) / 3, float(n), hf.exp(x) * float(n)),
    "item": lambda x, n: (x[0].item() / 3, n.item() // 2, hf.exp(x) * x[:1].item(), isinstance(n.item(), int)),
    "bool": lambda x, n: (1 if bool(n) else 2, not bool(x[1] - x[1])),
    "math": lambda x, n: (math.sqrt(abs(x[0])), math.floor(x[0]), math.ceil(x[0]), math.isnan(x[0])),
    "min and max": lambda x, n: (min(x), max(x), max(x, key=lambda v: -v), max(n, 2), min([n, 9])),
    "sums": lambda x, n: (sum(x), sum([n, n], 10), any(x > 2), all(x > -9), any(v > 1 for v in x)),
    "operators": lambda x, n: (abs(x), round(x), divmod(n, 3), divmod(17, n), pow(x, 2), pow(2, n)),
    "containers": lambda x, n: (len(x), list(x), tuple(x), next(iter(x)), list(reversed(x)), [*x]),
    "walks": lambda x, n: (list(zip(x, x)), list(enumerate(x)), list(map(abs, x))),
    "sorted by what is known": lambda x, n: sorted([(2, x), (1, n)], key=lambda pair: pair[0]),
    "filtered by what is known": lambda x, n: list(filter(lambda pair: pair[0] > 1, [(2, x), (1, n)])),
    "types": lambda x, n: (isinstance(x, hf.Tensor), isinstance(x, float), callable(x)),
}


@pytest.mark.parametrize("name", OF_TENSORS)
def test_what_pythons_functions_make_of_tensors(name: str) -> None:
    f = OF_TENSORS[name]
    for x, n in (([2.5, -1.25, 0.75], 5), ([-3.5, 8.0, 1.0], 2)):
        given = hf.constant(x), hf.constant(n)
        assert form(hf.function(f)(*given)) == form(f(*given))


def test_a_nan_is_no_int() -> None:
    def f(x: Any) -> Any:
        return int(x) + 1

    for g in (f, hf.function(f)):
        with pytest.raises(ValueError, match="NaN"):
            g(hf.constant(float("nan")))


def test_functions_of_floats_that_messages_name_are_there() -> None:
    x = hf.constant(0.5)
    for name in NAMESAKES:
        count = 2 if name in ("atan2", "copysign", "hypot", "nextafter", "pow") else 1
        own = getattr(math, name)
        with pytest.raises(HybridflowError, match=rf"math.{name}\(\) needs the value of .*Write hf.{name},"):
            hf.function(lambda x, own=own, count=count: own(*[x] * count), strict=True)(x)
        y = x + (name == "acosh")
        assert np.isclose(getattr(hf, name)(*[y] * count), own(*[y.item()] * count), atol=1e-6)


def test_iterators_that_a_trace_makes_do_not_leave_it() -> None:
    def lazily(x: Any, how: Any) -> Any:
        return {"made": how([x, x + 1])}

    x, plain = hf.constant([1.5, -2.0]), (n for n in (1, 2))
    for how in (iter, reversed, enumerate, lambda v: map(hf.exp, v), lambda v: (u for u in v), lambda v: zip([1], [2])):
        with pytest.raises(HybridflowError, match=r"lazily returns a \w+, whose items .* Return them in a list"):
            hf.function(lazily)(x, how)
    assert form(hf.function(lazily)(x, list)["made"]) == form([x, x + 1])
    assert hf.function(lambda x: (x, plain))(x)[1] is plain  # that is the user's
    assert hf.function(lambda x, given: (x, given))(x, plain)[1] is plain


def test_messages_about_arguments_name_whose_they_are() -> None:
    def changed(x: Any, n: Any) -> Any:
        for _ in range(n):
            x[0] = 1.0
        return x

    with pytest.raises(HybridflowError, match="is an argument of changed, whose caller"):
        hf.function(changed)(hf.constant([1.0, 2.0]), hf.constant(3))


class Level(enum.IntEnum):
    LOW = 2
    HIGH = 3


class Ratio(float):
    """A number of the user's whose class answers for itself from the right."""

    def __rmul__(self, other: Any) -> Any:
        return other - 1.0

    def __gt__(self, other: Any) -> bool:
        return True


class Count(int):
    def __rmul__(self, other: Any) -> Any:
        return other + 100


@pytest.mark.parametrize("number", [Level.HIGH, Ratio(2.5), Count(4)])
def test_numbers_of_classes_that_extend_pythons(number: Any) -> None:
    """Python asks the right operand first where its class extends that of the left one."""
    programs: list[Callable[[Any, Any], Any]] = [
        lambda x, n: float(x) * number,
        lambda x, n: int(n) * number,
        lambda x, n: number * int(n),
        lambda x, n: number - float(x),
        lambda x, n: int(n) + number,
        lambda x, n: int(n) % number,
        lambda x, n: float(x) ** number,
        lambda x, n: hf.where(int(n) < number, 1.0, 2.0),
        lambda x, n: hf.where(int(n) == number, 1.0, 2.0),
    ]
    for k, program in enumerate(programs):
        for x, n in ((1.5, 3), (2.0, 7)):
            found = float(hf.function(program)(hf.asarray(x), hf.asarray(n)))
            assert found == pytest.approx(float(program(hf.asarray(x), hf.asarray(n)))), k
