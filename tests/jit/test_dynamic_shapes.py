"""Numbers and extents that vary become open by themselves: one program serves them, with the bits of eager mode."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.jit.test_function_threads import run_all
from tests.support.bits import same_bits
from tests.support.outcomes import outcome, same

X = np.linspace(-3.0, 3.0, 7, dtype=np.float32)


def check(body: Callable[..., Any], calls: Sequence[tuple[Any, ...]], most: int | None = None) -> Any:
    """Every call, twice each and in two orders, gives what ``body`` gives; with at most so many traces."""
    f = hf.function(body, cache_size=1000)
    for args in (*calls, *reversed(calls)):
        for _ in range(2):
            assert same(outcome(f, *args), outcome(body, *args)), args
    assert most is None or len(f.concrete_functions()) <= most, f
    return f


FLOATS = (0.1, 1.5, 0.0, -0.0, 1.0, -1.0, 1e-45, 5e-324, 1e39, 3.5e38, 1e308, -1e308, math.pi, 1 / 3, 2.0**60)
SPECIAL = (math.inf, -math.inf, math.nan)
INTS = (3, 2, 0, 1, -1, 5, 7, 2**20 + 1, 2**24 + 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**70)

OF_FLOATS: dict[str, Callable[..., Any]] = {
    "a product": lambda x, a: x * a,
    "rounded once": lambda x, a: x * (a * 0.1) + (a + 0.7) - (0.3 - a),
    "with ints": lambda x, a: x - (2 * a + 1) / 3,
    "signs": lambda x, a: x * -a + abs(a) + +a,
    "in float64": lambda x, a: hf.astype(x, hf.float64) * a / (x + 4),
    "in float16": lambda x, a: hf.astype(x, hf.float16) * a,
    "with an int tensor": lambda x, a: hf.astype(x, hf.int32) + a,
    "with a bool tensor": lambda x, a: (x > 0) * a,
    "comparisons of tensors": lambda x, a: hf.where(x > a, x, a),
    "filled": lambda x, a: hf.full((3,), a) + hf.full_like(x, a)[:3],
    "made a float64 tensor": lambda x, a: (hf.constant(a), hf.asarray(a, dtype=hf.float64), x),
    "returned": lambda x, a: (x, a, a * 3, [a + a]),
    "returned alone": lambda x, a: a,
    "clipped": lambda x, a: hf.clip(x, -1.0, a),
}
CHOOSING: dict[str, Callable[..., Any]] = {
    "an element": lambda x, a: hf.asarray([a, 1.0]),
    "beside a NumPy array": lambda x, a: x + X * a,
    "beside a NumPy scalar": lambda x, a: x + np.float64(3) * a + np.float32(0.5) * a,
    "a branch": lambda x, a: x * a if a > 0.5 else x - a,
    "its truth": lambda x, a: x if not a else x / a,
    "a power": lambda x, a: x**a,
    "a power of it": lambda x, a: x * a**2,
    "a divisor": lambda x, a: x * (1.0 / a),
    "a remainder": lambda x, a: x * (a % 0.3) + a // 0.2,
    "rounded": lambda x, a: x + round(a, 2),
    "an int": lambda x, a: x + int(a),
    "math": lambda x, a: x * math.sqrt(abs(a)),
    "text": lambda x, a: x * len(f"{a}") + len(str(a)) + len("%s" % a) + len(repr(a)),  # noqa: UP031
    "json": lambda x, a: x * len(json.dumps(a)),
    "a key": lambda x, a: x * {0.1: 3.0, 1.5: 2.0}.get(a, 5.0),
    "among others": lambda x, a: x * (2.0 if a in (0.1, 1.0) else 3.0),
    "its class": lambda x, a: x * (2.0 if type(a) is float else 3.0) + (1.0 if isinstance(a, float) else 0.0),
    "a minimum": lambda x, a: x * min(a, 0.7),
    "its methods": lambda x, a: x * (2.0 if a.is_integer() else 3.0),
    "of NumPy": lambda x, a: x * np.sqrt(np.abs(np.asarray(a))) + np.array([a, 2.0])[1],
    "an integer tensor": lambda x, a: hf.full((2,), a, dtype=hf.int32),
}


@pytest.mark.parametrize("name", OF_FLOATS)
def test_floats_are_inputs_of_one_program(name: str) -> None:
    check(OF_FLOATS[name], [(hf.asarray(X), a) for a in (*FLOATS, *SPECIAL)], None if "16" in name else 2)


@pytest.mark.parametrize("name", CHOOSING)
def test_floats_whose_value_is_needed_are_known(name: str) -> None:
    check(CHOOSING[name], [(hf.asarray(X), a) for a in (*FLOATS[:9], *SPECIAL)])


OF_INTS: dict[str, Callable[..., Any]] = {
    "a product": lambda x, n: x * n,
    "a sum of int32": lambda x, n: hf.astype(x, hf.int32) + n,
    "of bytes": lambda x, n: hf.astype(x, hf.uint8) + n,
    "a polynomial": lambda x, n: x + (n * n - 3 * n + 2),
    "quotients": lambda x, n: x + n // 3 + n % 5 + n / 7,
    "with floats": lambda x, n: x * (n * 0.1 + 1.0) - 0.5 / n,
    "a power": lambda x, n: x**n + n**2,
    "a branch": lambda x, n: x * 2 if n > 5 else x - n,
    "an index": lambda x, n: x[n],
    "a slice": lambda x, n: x[:n] + x[-n:],
    "an axis": lambda x, n: hf.sum(x, axis=n),
    "a shape": lambda x, n: hf.zeros((n % 1000, 2)) + hf.sum(x),
    "a range": lambda x, n: sum((x * k for k in range(min(n, 9))), x),
    "returned": lambda x, n: (x, n, n + 1, n * n),
    "text": lambda x, n: x + len(f"{n:03d}") + len("%d-%s" % (n, n)) + len(str(n)),  # noqa: UP031
    "its class": lambda x, n: x * (2 if type(n) is int else 3) + isinstance(n, int) + isinstance(n, (float, bool)),
    "its bits": lambda x, n: x + n.bit_length() + (n & 1) + (n >> 1),
    "matched": lambda x, n: x * {2: 5, 3: 7}.get(n, 1) * (2 if n in (5, 7) else 1),
    "NumPy": lambda x, n: x + np.arange(7)[:1] * min(n, 100) + np.float32(n),
}


@pytest.mark.parametrize("name", OF_INTS)
def test_ints(name: str) -> None:
    check(OF_INTS[name], [(hf.asarray(X), n) for n in INTS])


# More than 64 bits, by themselves or on the way; both signs.
LARGE: dict[str, Callable[..., Any]] = {
    "a divisor": lambda x, n: x / n**4,
    "a falling factorial": lambda x, n: x * (n * (n - 1) * (n - 2) * (n - 3)),
    "negated": lambda x, n: x - n**4 + -(n**4) * x,
    "filled": lambda x, n: hf.full((2,), n**4, dtype="float32"),
    "chosen": lambda x, n: hf.where(x > 0, x, n**4) + hf.minimum(x * 1e30, n**4),
    "converted": lambda x, n: hf.asarray(n**4, dtype="float64"),
    "a remainder": lambda x, n: (x * (n**4 % 7), x * (n**4 % 7 * 0.5)),
    "a remainder of integers": lambda x, n: hf.astype(x, hf.int64) * (n**4 % 7),
    "a negative integer": lambda x, n: hf.astype(x, hf.int64) * -(n**4),
    "of uint64": lambda x, n: hf.full((2,), n**4 // 100, dtype=hf.uint64),
    "of int8": lambda x, n: hf.full((2,), 2 - n, dtype=hf.int8),
    "of uint8": lambda x, n: hf.full((2,), 5 - n, dtype=hf.uint8),
    "a sum with a large number": lambda x, n: x * (n + 2**70) + (n - 2**70),
}


@pytest.mark.parametrize("name", LARGE)
def test_ints_do_not_wrap_around(name: str) -> None:
    x = hf.asarray(X)
    check(LARGE[name], [(x, n) for n in (3, 4, 100_000, 5, 55108, 55109, 2**21, 2**31 - 1)])


def test_extents_do_not_wrap_around() -> None:
    def body(x: Any) -> Any:
        return x[:2] / x.shape[0] ** 4 + x[:2] * (x.shape[0] ** 4 % 7)

    calls = [(hf.ones(n),) for n in (3, 4, 100_000, 5, 100_001)]
    check(body, calls)
    g = hf.function(body, input_signature=[hf.TensorSpec((None,), hf.float32)])
    for args in calls:
        assert same_bits(g(*args), body(*args))


def test_ints_are_symbols_of_one_program() -> None:
    calls = [(hf.asarray(X), n) for n in (3, *range(2, 40))]
    for name in ("a product", "a polynomial", "quotients", "returned", "a shape"):
        check(OF_INTS[name], calls, 3)


def test_a_schedule_is_one_program() -> None:
    @hf.function
    def step(x: Any, rate: float, k: int) -> Any:
        return x - rate * x * k

    x = hf.asarray(X)
    for k in range(2, 66):
        assert same_bits(step(x, 0.1 / k, k), step.python_function(x, 0.1 / k, k))
    assert len(step.concrete_functions()) == 2
    assert [(r.argument, r.new) for r in step.retraces()] == [("rate", "any float")]
    native = sum(call.calls for call in step._cache.native_calls())
    assert native >= 60 or hf.runtime.calls.entry.problem()


def test_bools_ints_and_floats_stay_apart() -> None:
    check(lambda a: hf.constant(a) + 0, [(a,) for a in (1.0, 2.0, 3, 4, True, False, 1, 0.0, 5.0, 6)])


def test_numbers_in_containers_keywords_defaults_and_methods() -> None:
    def nested(x: Any, options: dict[str, Any], rest: tuple[float, ...] = (0.5,), *, k: int = 3) -> Any:
        return x * options["rate"] + options["n"] - sum(rest) * k

    f, x = hf.function(nested), hf.asarray(X)
    for i in range(2, 9):
        options = {"rate": 0.1 * i, "n": i}
        for args, kwargs in (((), {}), (((0.1 * i, 2.0),), {}), ((), {"k": i})):
            for _ in range(2):
                assert same_bits(f(x, options, *args, **kwargs), nested(x, options, *args, **kwargs))
    assert len(f.concrete_functions()) <= 6

    class Model:
        @hf.function
        def step(self, x: Any, rate: float) -> Any:
            self.last = None
            return x * rate

        @hf.function
        def keep(self, x: Any, rate: float) -> Any:
            return x * rate

    model = Model()
    for i in range(5):
        assert same_bits(model.keep(x, i / 7), X * np.float32(i / 7))
    assert len(model.keep.concrete_functions()) == 2


def test_a_number_that_is_left_in_an_object_is_a_number() -> None:
    class Box:
        held: Any = None

    box = Box()

    @hf.function
    def f(x: Any, a: float, n: int) -> Any:
        if n > 3:
            box.held = (a, n)
        return x * a

    x = hf.asarray(X)
    for a, n in ((0.5, 2), (0.25, 3), (0.125, 4), (0.75, 5), (1.5, 6)):
        assert same_bits(f(x, a, n), X * np.float32(a))
        assert box.held == ((a, n) if n > 3 else None) and (n <= 3 or type(box.held[0]) is float)


def test_gradients_and_state() -> None:
    v = hf.Variable(hf.asarray(X))

    def step(x: Any, rate: float, n: int) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.sum((v * x - rate) ** 2) * n
        v.assign_sub(tape.gradient(loss, v) * (rate * 0.01))
        return loss

    f = hf.function(step)
    for k in range(2, 8):
        before = v.numpy().copy()
        compiled = (f(hf.asarray(X), 0.1 * k, k), v.numpy().copy())
        v.assign(before)
        eager = (step(hf.asarray(X), 0.1 * k, k), v.numpy())
        assert same_bits(compiled[0], eager[0]) and same_bits(compiled[1], eager[1])
    assert len(f.concrete_functions()) == 2


def test_calls_under_tapes_and_in_traces() -> None:
    inner = hf.function(lambda x, a, n: x * a * n)
    outer = hf.function(lambda x, a, n: inner(x, a * 2, n + 1))
    x = hf.asarray(X)
    for k in range(2, 7):
        a = 0.3 / k
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = inner(x, a, k)
        assert same_bits(tape.gradient(y, x), hf.ones_like(x) * k * a)
        assert same_bits(outer(x, a, k), x * (a * 2) * (k + 1))
    assert len(inner.concrete_functions()) == len(outer.concrete_functions()) == 2


# Extents


ROWS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x: hf.exp(x) * 2 + 1,
    "softmax": lambda x: hf.nn.softmax(x, axis=-1),
    "a sum": lambda x: hf.sum(x, axis=0),
    "a product of matrices": lambda x: x @ hf.ones((5, 3)) + 1,
    "both axes": lambda x: x @ hf.permute_dims(x, (1, 0)),
    "sizes as numbers": lambda x: (hf.mean(x), x.shape[0] * 2, x / x.shape[0]),
    "a branch": lambda x: x * 2 if x.shape[0] > 17 else x - 1,
    "halves": lambda x: hf.concat([x[: x.shape[0] // 2], x[x.shape[0] // 2 :]]),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_varying_extent_is_open(name: str) -> None:
    rng = np.random.default_rng(3)
    sizes = [int(n) for n in rng.integers(2, 300, 24)]
    arrays = [(hf.asarray(rng.normal(size=(n, 5)).astype(np.float32)),) for n in (*sizes, 0, 1)]
    check(ROWS[name], arrays, 6 if name == "a branch" else 4)


def test_200_lengths_are_two_traces_and_no_warning(caplog: Any) -> None:
    f = hf.function(lambda x, y: hf.sum(x * y))
    with caplog.at_level(logging.WARNING, logger="hybridflow"):
        for n in np.random.default_rng(0).permutation(np.arange(2, 202)):
            x = hf.ones((int(n),))
            assert f(x, x).item() == n
        assert len(f.concrete_functions()) == 2
        for n in (0, 1):
            assert f(hf.ones((n,)), hf.ones((n,))).item() == n
    assert len(f.concrete_functions()) == 4 and not caplog.records


def test_opting_out() -> None:
    f = hf.function(lambda x, a: x * a, reduce_retracing=False)
    for n in (3, 4, 5):
        f(hf.ones(n), 0.5), f(hf.ones(3), float(n))
    assert len(f.concrete_functions()) == 6


def test_ranks_dtypes_and_equal_extents_are_no_matter() -> None:
    def body(x: Any, y: Any) -> Any:
        return x + y if x.shape == y.shape else hf.sum(x) + hf.sum(y)

    pairs = [(2, 3), (4, 4), (5, 5), (6, 7), (8, 1), (1, 1), (9, 9), (3, 2)]
    check(body, [(hf.ones(m), hf.ones((n,), dtype=hf.float64)) for m, n in pairs])
    check(lambda x: x + 1, [(hf.ones(s),) for s in ((), (2,), (3, 4), (5,), (6, 7), (1, 2), (8,))], 8)


def test_what_needs_a_number_says_so_and_the_remedy_works(caplog: Any) -> None:
    @hf.function
    def loop(x: Any, n: Any) -> Any:
        for i in range(n):
            x = x + i
        return x

    with caplog.at_level(logging.WARNING, logger="hybridflow"):
        for n in range(2, 7):
            loop(hf.ones(3), n)
    (record,) = caplog.records
    text = record.getMessage()
    assert "the code needs its value (test_dynamic_shapes.py:" in text and "hf.constant(value)" in text
    loop.cache_clear()
    for n in range(2, 7):
        assert same_bits(loop(hf.ones(3), hf.constant(n)), loop.python_function(hf.ones(3), n))
    assert len(loop.concrete_functions()) == 1


def test_the_remedy_for_extents_works() -> None:
    def body(x: Any) -> Any:
        return x * 2

    f = hf.function(body, reduce_retracing=False)
    for n in (3, 4):
        f(hf.ones((n, 2)))
    spec = eval(f.retraces()[-1].suggestion.rpartition("input_signature: ")[2], {"hf": hf})
    g = hf.function(body, input_signature=[spec])
    for n in (3, 4, 5):
        assert same_bits(g(hf.ones((n, 2))), body(hf.ones((n, 2))))
    assert len(g.concrete_functions()) == 1


def test_what_cannot_be_traced_for_all_sizes_is_traced_for_each(caplog: Any) -> None:
    def body(x: Any) -> Any:
        return x * len(dict.fromkeys(range(x.shape[0]), 0))

    f = check(body, [(hf.ones(n),) for n in range(2, 8)])
    assert len(f.concrete_functions()) == 6
    assert "the code needs its value (test_dynamic_shapes.py:" in f.retraces()[-1].suggestion


@pytest.mark.parametrize("parts", [2, 3])
def test_a_number_is_needed_of_an_extent_that_is_a_multiple(parts: int) -> None:
    def body(x: Any) -> Any:
        first = hf.split(x, parts)[0]  # equal parts: the extent is a multiple from here on
        return hf.top_k(first, first.shape[0])[0]

    f = check(body, [(hf.asarray(X[:n]),) for n in (6, 4, 3, 2, 5, 6)] + [(hf.ones(n),) for n in (12, 18, 13)])
    assert "the code needs its value (test_dynamic_shapes.py:" in f.retraces()[-1].suggestion


def test_errors_of_the_users_are_raised_as_they_are() -> None:
    def body(x: Any, n: int) -> Any:
        if n > 4:
            raise KeyError(f"n is {n}")
        return x * n

    f = hf.function(body)
    for n in (2, 3, 5, 4, 6, 2):
        assert same(outcome(f, hf.ones(2), n), outcome(body, hf.ones(2), n))
    with pytest.raises(KeyError, match="n is 9") as caught:
        f(hf.ones(2), 9)
    assert caught.value.__context__ is None
    assert len(f.concrete_functions()) == 2  # those that raise are not kept


def test_threads_with_numbers_and_lengths_of_their_own() -> None:
    f = hf.function(lambda x, a, n: x * a + n)

    def job(seed: int) -> Callable[[], None]:
        def work() -> None:
            rng = np.random.default_rng(seed)
            for _ in range(40):
                x, a, n = rng.normal(size=int(rng.integers(2, 30))), float(rng.normal()), int(rng.integers(2, 99))
                assert same_bits(f(x, a, n), x * a + n)

        return work

    run_all([job(seed) for seed in range(8)])
    assert len(f.concrete_functions()) <= 9
