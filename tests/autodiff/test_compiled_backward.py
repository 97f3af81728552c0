"""Eager gradients that are replayed by compiled programs: the bits of those that are walked, whatever the program."""

import gc
import threading
import weakref

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.autodiff import compiled_backward
from hybridflow.core import tier_up
from hybridflow.eager import taped_calls
from tests.support.bits import same_bits
from tests.support.compare_programs import gradients_replayed
from tests.support.everyday_programs import EVERYDAY, with_gradient
from tests.support.fresh_functions import forget_calls

pytestmark = pytest.mark.code

SIZES = {"n": 6, "m": 4, "k": 2}


@pytest.fixture(autouse=True)
def fresh():
    """No pass was walked, and none meets a function as a whole that others meet as ops."""
    forget_calls()
    compiled_backward.passes.clear()


def tensor(*shape, seed=0, dtype=np.float32):
    return hf.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def programs():
    """How many passes have a program."""
    return sum(known.times is None for known in compiled_backward.passes.values())


def gradient(f, x, **how):
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, **how)


def both(f):
    """What ``f()`` gives where gradients are walked, and where they are replayed at once."""
    with gradients_replayed(False):
        walked = f()
    with gradients_replayed(True):
        return walked, f()


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        return all(map(same, a, b))
    return a is None if b is None else a.dtype == b.dtype and same_bits(a.numpy(), b.numpy())


@pytest.mark.parametrize("name", [name for name, program in EVERYDAY.items() if program.differentiable])
def test_everyday_programs_have_the_bits_of_the_walk(name):
    walked, replayed = both(with_gradient(name, SIZES, seed=3))
    assert same(walked, replayed)


def test_the_third_time_there_is_a_program_and_other_numbers_use_it(monkeypatch):
    monkeypatch.setattr(taped_calls, "_maker", None)  # a pass of wholes is another one than that of their ops
    for k in range(5):
        x = tensor(7, seed=k)
        np.testing.assert_array_equal(gradient(lambda x: hf.sum(x * x), x), 2 * x.numpy())
        assert programs() == (k >= 2)


def test_nothing_else_is_taken_for_the_same_pass():
    x, y = tensor(4), tensor(4, seed=1)
    functions = [
        lambda x: hf.sum(x * x),
        lambda x: hf.sum(x * y),
        lambda x: hf.sum(y * x),
        lambda x: hf.sum(x * hf.asarray(x.numpy())),
        lambda x: hf.sum(x + x * x),
        lambda x: hf.sum(hf.pad(x, ((1, 1),), constant_values=0.0) ** 3.0),
        lambda x: hf.sum(1.0 / hf.pad(x, ((1, 1),), constant_values=1.0)),
        lambda x: hf.sum(1.0 / hf.pad(x, ((1, 1),), constant_values=-1.0)),
        lambda x: hf.sum(
            hf.atan2(hf.pad(x, ((0, 1),), constant_values=0.0), hf.pad(x, ((0, 1),), constant_values=-0.0))
        ),
        lambda x: hf.sum(
            hf.atan2(hf.pad(x, ((0, 1),), constant_values=-0.0), hf.pad(x, ((0, 1),), constant_values=0.0))
        ),
        lambda x: hf.sum(hf.reshape(x, (2, 2)), axis=0),
        lambda x: hf.sum(hf.reshape(x, (2, 2)), axis=1),
        lambda x: hf.astype(x, hf.float64) * 2.0,
        lambda x: hf.astype(hf.astype(x, hf.float16), hf.float32) * 2.0,
        lambda x: hf.max(x),
        lambda x: [hf.max(x), hf.min(x)],
        lambda x: [hf.min(x), hf.max(x), hf.max(x)],
    ]
    expected = []
    with gradients_replayed(False):
        expected = [gradient(f, x) for f in functions]
    for _ in range(4):
        assert [same(gradient(f, x), e) for f, e in zip(functions, expected)] == [True] * len(functions)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (1, 1, 5)])
def test_scalars_and_empty_tensors(shape):
    x = tensor(*shape)
    walked, replayed = both(lambda: gradient(lambda x: hf.sum(hf.tanh(x) * x), x))
    assert same(walked, replayed)


def test_special_values_and_strides():
    x = hf.asarray(np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, 3e38, 1.0], np.float32))
    for f in (
        hf.sqrt,
        hf.exp,
        hf.tanh,
        hf.abs,
        hf.nn.relu,
        hf.nn.softmax,
        lambda x: x / (x + 1),
        lambda x: x[::-2] * x[::2],
    ):
        walked, replayed = both(lambda f=f: gradient(lambda x: f(x[::-1] * 1.0) * x[::2].shape[0], x))
        assert same(walked, replayed)


def test_output_gradients_are_values_of_the_pass():
    x = tensor(5)
    for k in range(5):
        g = tensor(5, seed=k)
        found = gradient(lambda x: hf.sin(x), x, output_gradients=g)
        np.testing.assert_allclose(found, np.cos(x.numpy()) * g.numpy(), rtol=1e-6)
        np.testing.assert_array_equal(gradient(lambda x: x, x, output_gradients=g), g)
        same_twice = gradient(lambda x: [x * 2.0, x * 3.0], x, output_gradients=[x, x])
        np.testing.assert_allclose(same_twice, 5 * x.numpy(), rtol=1e-6)
    assert programs() == 2  # a target that is the source has no records


def test_variables_that_are_read_several_times_and_assigned_between():
    v, w = hf.Variable(2.0), hf.Variable([1.0, 2.0])

    def step():
        with hf.GradientTape() as tape:
            y = v * v * w
            v.assign_add(1.0)
            y = y + v * w
        found = tape.gradient(y, [v, w, v])
        v.assign(2.0)
        return found

    walked, replayed = both(step)
    assert same(walked, replayed)
    np.testing.assert_array_equal(replayed[0], 15.0)


def test_unconnected_sources():
    x, y = tensor(3), tensor(3, seed=1)
    for mode, nothing in (("none", None), ("zero", np.zeros(3))):
        for _ in range(4):
            with hf.GradientTape() as tape:
                tape.watch([x, y])
                z = x * x
            a, b = tape.gradient(z, [x, y], unconnected_gradients=mode)
            np.testing.assert_array_equal(a, 2 * x.numpy())
            assert b is None if nothing is None else np.array_equal(b, nothing)
            if nothing is None:
                assert "not" in tape.why_none(y)
    for _ in range(4):  # nothing at all to compute
        with hf.GradientTape() as tape:
            tape.watch([x, y])
            z = x * x
        assert tape.gradient(z, [y]) == [None]


def test_a_persistent_tape_replays_after_its_block_and_walks_within():
    x = tensor(3)
    for _ in range(5):
        with hf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            inside = tape.gradient(y, x)
            z = inside * x  # recorded: 2 x x, of which the derivative is 4 x
        np.testing.assert_allclose(tape.gradient(z, x), 4 * x.numpy(), rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(y, x), 2 * x.numpy(), rtol=1e-6)
        del tape


def test_higher_derivatives_are_recorded_op_by_op():
    x = tensor(3)
    with gradients_replayed(True):
        with hf.GradientTape() as outer:
            outer.watch(x)
            first = gradient(lambda x: hf.sum(x**3.0), x)
        second = outer.gradient(first, x)
    np.testing.assert_allclose(second, 6 * x.numpy(), rtol=1e-5)


def test_functions_that_run_eagerly_are_walked():
    hf.config.run_functions_eagerly(True)
    try:
        for _ in range(4):
            gradient(lambda x: x * x, tensor(3))
    finally:
        hf.config.run_functions_eagerly(False)
    assert not compiled_backward.passes


def test_a_custom_gradient_is_called_each_time():
    called = []

    @hf.custom_gradient
    def twice(x):
        def vjp(g):
            called.append(1)
            return g * 2.0

        return x * 2.0, vjp

    for _ in range(5):
        np.testing.assert_array_equal(gradient(lambda x: twice(x) * 1.0, tensor(3)), [2.0] * 3)
    assert len(called) == 5


def test_passes_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(tier_up.BACKWARD_PASSES, "capacity", 4)
    with gradients_replayed(True):
        for n in (2, 3, 4, 5, 6, 7, 2):
            np.testing.assert_array_equal(gradient(lambda x: hf.sum(x * 2.0), tensor(n)), [2.0] * n)
    assert len(compiled_backward.passes) == 4


def test_no_value_of_a_pass_is_kept():
    x = tensor(1000)
    with gradients_replayed(True):
        for _ in range(2):
            big = tensor(1000, seed=1)
            gone = weakref.ref(big)
            gradient(lambda x, big=big: hf.sum(x * big), x)
            del big
            gc.collect()
            assert gone() is None


def test_threads_that_meet_a_pass_at_once():
    x = tensor(50)
    expected = np.cos(x.numpy())
    wrong = []

    def work():
        for _ in range(20):
            found = gradient(lambda x: hf.sum(hf.sin(x)), x)
            if not np.allclose(found.numpy(), expected, rtol=1e-5):
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and programs() >= 1  # ops, or a whole: threads may meet either


def test_more_values_than_native_code_takes():
    xs = [tensor(3, seed=k) for k in range(200)]

    def loss():
        with hf.GradientTape() as tape:
            tape.watch(xs)
            y = sum(x * x for x in xs)
        return tape.gradient(y, xs)

    walked, replayed = both(loss)
    assert same(walked, replayed)
