"""What functions do where they would trace again, and what strict ones say of inputs that they hide."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentError, TraceError
from hybridflow.jit import determinism_check, stance
from tests.support.bits import same_bits


@pytest.fixture(autouse=True)
def back_to_default() -> Iterator[None]:
    yield
    hf.stance("default")


def test_a_retrace_fails_and_says_why() -> None:
    f = hf.function(lambda x, a: x * a)
    x = hf.ones(3)
    with hf.stance("fail_on_retrace"):
        f(x, 0.5)  # the first time
        for _ in range(3):
            assert same_bits(f(x, 0.5), x * 0.5)
        with pytest.raises(TraceError, match=re.escape("a: float 0.5 → float 0.25")):
            f(x, 0.25)
        with pytest.raises(TraceError, match=re.escape("x: f32[3] → f32[3,1]. To avoid it: pass one rank")):
            f(hf.ones((3, 1)), 0.5)
        assert not f.retraces() and len(f.concrete_functions()) == 1
    f(x, 0.25), f(hf.ones(4), 0.5)
    with hf.stance("fail_on_retrace"):
        for n in range(2, 9):
            assert same_bits(f(hf.ones(n), n / 7), hf.ones(n) * (n / 7))
        with pytest.raises(TraceError):
            f(hf.ones(1), 0.5)
    assert stance.current() == "default"


def test_values_from_outside_fail_as_well() -> None:
    scale = 2.0
    f = hf.function(lambda x: x * scale)
    f(hf.ones(2))
    scale = 3.0
    with hf.stance("fail_on_retrace"), pytest.raises(TraceError, match=re.escape("scale: float 2.0 → float 3.0")):
        f(hf.ones(2))
    assert f(hf.ones(2)).tolist() == [3.0, 3.0]


def test_what_is_traced_at_each_call_fails() -> None:
    seen: list[int] = []

    @hf.function
    def f(x: Any) -> Any:
        seen.append(1)
        return x + 1

    f(hf.ones(2))
    with hf.stance("fail_on_retrace"), pytest.raises(TraceError, match="traced at each call"):
        f(hf.ones(2))
    assert len(seen) == 1


def test_a_retrace_runs_eagerly() -> None:
    v = hf.Variable(0.0)

    @hf.function
    def f(x: Any, n: int) -> Any:
        v.assign_add(1.0)
        return x * n

    f(hf.ones(3), 4)
    hf.stance("eager_on_retrace")
    for n in (4, 5, 0, 6):
        assert same_bits(f(hf.ones(3), n), hf.ones(3) * n)
    hf.stance("default")
    assert len(f.concrete_functions()) == 1 and v.numpy() == 5.0


def test_nested_stances_and_nonsense() -> None:
    hf.stance("eager_on_retrace")
    with hf.stance("fail_on_retrace"):
        with hf.stance("default"):
            assert stance.current() == "default"
        assert stance.current() == "fail_on_retrace"
        with pytest.raises(ArgumentError, match="'never' is no stance"):
            hf.stance("never")
    assert stance.current() == "eager_on_retrace"


def test_strict_functions_say_what_they_hide() -> None:
    counter = itertools.cycle([1, 2, 3])

    @hf.function(strict=True)
    def f(x: Any) -> Any:
        return x * operator.call(counter.__next__)

    with pytest.raises(TraceError, match=r"test_stance.py:\d+"):
        f(hf.ones(2))
    numbers = {"kept": 3.0}

    @hf.function(strict=True)
    def g(x: Any, a: float) -> Any:
        return x * numbers["kept"] + a

    for a in (0.5, 0.25, 0.75):
        assert same_bits(g(hf.ones(2), a), hf.ones(2) * 3.0 + a)
    assert len(g.concrete_functions()) == 2


def test_two_traces_that_differ() -> None:
    def traced(body: Any) -> Any:
        return hf.function(body).get_concrete_function(hf.ones(300))

    noise = [np.random.default_rng(k).normal(size=300).astype(np.float32) for k in range(2)]
    bodies: list[list[Any]] = [
        [lambda x: x * 2.0, lambda x: x * 3.0],
        [lambda x: x + 1.0, lambda x: x + 1.0 + 1.0],
        [lambda x: (x + 1, x + 2), lambda x: (x + 1,) * 2],
        [lambda x: (x + 1, 5), lambda x: (x + 1, 6)],
        [lambda x: x + hf.asarray(np.array(noise[0])), lambda x: x + hf.asarray(np.array(noise[1]))],
        [lambda x: x - 1, lambda x: x - 1],
    ]
    for one, other in bodies:
        determinism_check.check(traced(one), traced(one))
        if one is bodies[-1][0]:
            determinism_check.check(traced(one), traced(other))
        else:
            with pytest.raises(TraceError, match="two traces with the same arguments differ"):
                determinism_check.check(traced(one), traced(other))
