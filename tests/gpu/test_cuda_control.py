"""Loops and branches on a GPU, whose graphs all threads of a launch run together, with the bits of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.core.pytree import flatten
from hybridflow.errors import IndexRangeError, IntegerOverflowError
from tests.support.bits import same_bits
from tests.support.cuda_emulator import emulated  # noqa: F401

RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(16, 40)).astype("f4"), (RNG.normal(size=(40, 40)) / 5).astype("f4")
ROWS = RNG.normal(size=(6, 5, 40)).astype("f4")


def repeated(x, w):
    """Products, folds of rows, and a condition that is a fold."""
    return hf.while_loop(
        lambda k, s: (k < 3) & (hf.sum(s) < 1e9),
        lambda k, s: (k + 1, hf.tanh(s @ w) + hf.mean(s, axis=-1, keepdims=True)),
        (0, x),
    )


def counted(x, w):
    """A branch that is written in place beside one that is not."""

    def body(k, n, s):
        return k + 1, n + hf.cond(n > 1, lambda: hf.astype(hf.sum(s) > 0, hf.int64) + 1, lambda: n * 2 + 1), s * 0.5

    return hf.while_loop(lambda k, n, s: k < 4, body, (0, hf.asarray(0), x))


def chosen(x, w):
    return hf.cond(hf.sum(x) > 0, lambda: hf.nn.softmax(x @ w), lambda: x * 2), hf.cond(
        hf.sum(x) > 1e9, lambda: hf.concat([x, w]), lambda: hf.concat([w, x]).T.reshape(x.shape[0] + 40, 40)
    )


def walked(rows, w):
    def cell(state, x):
        return hf.tanh(x @ w + state)

    return hf.scan(cell, rows, hf.zeros((rows.shape[1], w.shape[1])))


def learned(rows, w):
    with hf.GradientTape() as tape:
        tape.watch(w)
        loss = hf.sum(walked(rows, w)[-1] ** 2)
    return loss, tape.gradient(loss, w)


def learned_by_repetition(x, w):
    """The turns are counted as they come, and what they keep takes memory that is asked for on the device."""
    with hf.GradientTape() as tape:
        tape.watch(w)
        _, found = hf.while_loop(lambda k, s: hf.sum(s * s) > 1.0, lambda k, s: (k + 1, hf.tanh(s @ w) * 0.3), (0, x))
        loss = hf.sum(found)
    return loss, tape.gradient(loss, w)


def sorted_within(x, w):
    """Sorts, scans and look-ups, which have scratch memory of a thread, and a branch within a loop."""

    def body(k, s):
        s = hf.sort(s, axis=-1) + hf.cumulative_sum(s, axis=0) * 0.1
        return k + 1, hf.cond(s[0, 0] > 0, lambda: hf.take(s, hf.argsort(s[:, 0]), axis=0), lambda: s * 0.5)

    return hf.while_loop(lambda k, s: k < 3, body, (0, x))


def two_places(x, w):
    """Carries that change places, and results that are wanted twice."""
    _, a, b = hf.while_loop(lambda k, a, b: k < 3, lambda k, a, b: (k + 1, b, hf.exp(a / 8)), (0, x, x * 2))
    return a, b, a


PROGRAMS = [repeated, counted, chosen, learned_by_repetition, sorted_within, two_places]


def on_gpu(function, *given):
    return flatten(function(*[hf.asarray(x).to_device("gpu:0") for x in given]))[0]


@pytest.mark.parametrize("order", ["reversed", "shuffled"])
@pytest.mark.parametrize("program", [*PROGRAMS, walked, learned], ids=lambda f: f.__name__)
@pytest.mark.sample(4)
def test_bits(emulated, program, order):  # noqa: F811
    emulated.order = order
    function, given = hf.function(program), (ROWS if program in (walked, learned) else X, W)
    want, got = flatten(function(*given))[0], on_gpu(function, *given)
    assert ("cuLaunchCooperativeKernel" in emulated.driver.calls) == (program is not walked)
    assert all(y.device == "gpu:0" and same_bits(y.numpy(), x.numpy()) for x, y in zip(want, got, strict=True))


def test_symbolic_extents(emulated):  # noqa: F811
    function = hf.function(repeated, input_signature=[hf.TensorSpec([None, 40], "float32")] * 2)
    for rows in (2, 90):
        x = RNG.normal(size=(rows, 40)).astype("f4")
        for y, want in zip(on_gpu(function, x, W), flatten(function(x, W))[0], strict=True):
            assert same_bits(y.numpy(), want.numpy())


def test_checks_end_all_threads_at_one_place(emulated):  # noqa: F811
    """The emulator says so where some wait for others that have left."""

    def loop(x, rows):
        def body(k, s):
            found = hf.take(s, rows + k, axis=0)
            return hf.cond(k > 2, lambda: k // (3 - k), lambda: k + 1), found * 2 + hf.sum(s, axis=0)

        return hf.while_loop(lambda k, s: k < 9, body, (0, x))

    function, rows = hf.function(loop), np.arange(len(X))[::-1] - 6
    with pytest.raises((IndexRangeError, ZeroDivisionError)) as want:
        function(X, rows)
    with pytest.raises(want.type):
        [x.numpy() for x in on_gpu(function, X, rows)]
    with pytest.raises(IndexRangeError):
        [x.numpy() for x in on_gpu(function, X, rows + 7)]
    assert on_gpu(hf.function(repeated), X, W)[1].shape == X.shape


def test_programs_say_how_many_threads_run_together():
    graph = hf.function(repeated).get_concrete_function(X, W).graph
    assert any("threads together" in kernel.schedule for kernel in compile_graph(graph, CUDA_SM90).kernels)


@pytest.mark.usefixtures("emulated")
def test_ints_that_outgrow_64_bits() -> None:
    @hf.function
    def grown(x, turns):
        n, k = int(hf.sum(x)), 0
        while k < turns:
            x, n = x * 0.5, n * 3
            k += 1
        return x, n

    with hf.device("gpu:0"):
        x = hf.asarray(np.full(40, 1 / 40, np.float64))
        assert int(grown(x, hf.asarray(39))[1]) == 3**39
        with pytest.raises(IntegerOverflowError, match="outgrew the 64 bits"):
            int(grown(x, hf.asarray(40))[1])
