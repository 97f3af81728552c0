"""``enable_check_numerics``: the op that makes a NaN or an infinity is named, the same eagerly and compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

X = [1.0, 0.0, 4.0]


@pytest.fixture
def checking() -> Iterator[None]:
    hf.debugging.enable_check_numerics()
    try:
        yield
    finally:
        hf.debugging.disable_check_numerics()


def _nobody_reads(x: Any) -> Any:
    hf.exp(x * 1000)
    return x


def _tape(x: Any) -> Any:
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(hf.sqrt(x))
    return tape.gradient(y, x)


def _loop(x: Any) -> Any:
    turn = hf.constant(0)
    while turn < 3:
        x = x * 1e30
        turn += 1
    return x


def _branch(x: Any) -> Any:
    if hf.sum(x) > 1:
        return 1.0 / x
    return hf.log(x)


def _tape_around_a_loop(x: Any) -> Any:
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(hf.constant(3)):
            y = hf.sqrt(y)
        total = hf.sum(y)
    return tape.gradient(total, x)


# (the function, the op that is at fault, NaNs, infinities, lines below the function's first one: None if not told)
CASES: dict[str, tuple[Callable[..., Any], str, int, int, int | None]] = {
    "fused": (lambda x: hf.sum(hf.log(x) * 2 + 1), "log", 0, 1, 0),
    "not read": (_nobody_reads, "exp", 0, 2, 1),
    "gradient": (_tape, "divide", 0, 1, 4),
    "loop": (_loop, "multiply", 0, 2, 3),
    "branch": (_branch, "divide", 0, 1, 2),
    "gradient of a loop": (_tape_around_a_loop, "divide", 0, 1, None),
    "vmap": (lambda x: hf.vmap(hf.log)(x), "log", 0, 1, 0),
    "jvp": (lambda x: hf.jvp(hf.sqrt, (x,), (hf.ones(3),)), "divide", 0, 1, 0),
    "product": (lambda x: (x * 1e20) @ (x * 1e20), "matmul", 0, 1, 0),
    "scan": (lambda x: hf.cumulative_sum(x * 8e37), "cumulative_sum", 0, 1, 0),
    "conversion": (lambda x: hf.astype(x * 1e6, hf.float16), "convert", 0, 2, 0),
    "nan": (lambda x: hf.sqrt(x - 2) + 1, "sqrt", 2, 0, 0),
    "lapack": (lambda x: hf.linalg.inv(hf.eye(3) * 1e-40), "inv", 0, 3, 0),
}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_op_the_line_and_the_numbers_are_told(checking: None, name: str) -> None:
    f, op, nans, infinite, below = CASES[name]
    compiled = hf.function(f)
    found = []
    for function in (f, compiled, compiled):
        with pytest.raises(errors.InvalidArgumentError) as info:
            function(hf.constant(X))
        found.append(str(info.value))
    first = f.__code__.co_firstlineno
    for text in found:
        match = re.fullmatch(
            r"\[(\w+)\] the result has (\d+) NaN and (\d+) infinite of (\d+) elements \((f\d+\[.*?\])\)\..*"
            r"\(test_nan_checks\.py:(\d+)\)",
            text,
        )
        assert match, text
        assert (match[1], int(match[2]), int(match[3])) == (op, nans, infinite)
        assert below is None or int(match[6]) == first + below
    assert below is None or len(set(found)) == 1


def test_gradients_of_compiled_functions_and_steps_are_checked(checking: None) -> None:
    w = hf.Variable([0.0, 1.0])

    def loss() -> Any:
        return hf.sum(hf.sqrt(w))

    def step(loss: Any) -> None:
        with hf.GradientTape() as tape:
            value = loss()
        w.assign_sub(tape.gradient(value, w))

    compiled = hf.function(loss)
    for run in (lambda: step(loss), lambda: step(compiled), hf.function(lambda: step(loss))):
        with pytest.raises(errors.InvalidArgumentError, match=r"\[divide\] the result has 0 NaN and 1 infinite of 2"):
            run()
        assert w.numpy().tolist() == [0.0, 1.0]


def test_masked_scores_are_no_fault(checking: None) -> None:
    def f(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            shares = hf.nn.softmax(hf.where(x > 0, x, -np.inf), -1)
            total = hf.sum(shares * shares)
        return total, tape.gradient(total, x)

    x = hf.constant(X)
    for eager, compiled in zip(f(x), hf.function(f)(x)):
        assert eager.numpy().tobytes() == compiled.numpy().tobytes()
    q = hf.ones((1, 4, 8))
    assert hf.nn.scaled_dot_product_attention(q, q, q, is_causal=True).numpy().min() == 1.0


def test_switched_on_and_off_between_calls() -> None:
    f = hf.function(lambda x: hf.sum(hf.log(x)))
    x = hf.constant(X)
    for _ in range(3):
        assert f(x).numpy() == -np.inf and hf.log(x).numpy()[1] == -np.inf
        hf.debugging.enable_check_numerics()
        try:
            for function in (f, hf.log, lambda x: 1 / x, f):
                with pytest.raises(errors.InvalidArgumentError, match="infinite"):
                    function(x)
            assert f(x + 1).shape == ()
        finally:
            hf.debugging.disable_check_numerics()
    assert len(f.retraces()) == 0
