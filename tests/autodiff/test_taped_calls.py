"""Public functions that a tape records as a whole: the derivatives of their ops, to the bit."""

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.autodiff import compiled_backward
from hybridflow.core import tier_up
from hybridflow.core.context import now
from hybridflow.eager import taped_calls
from tests.support.bits import same_bits
from tests.support.compare_programs import gradients_replayed
from tests.support.everyday_programs import EVERYDAY, with_gradient
from tests.support.fresh_functions import forget_calls

pytestmark = pytest.mark.code

SIZES = {"n": 6, "m": 4, "k": 2}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """A whole is made at the first call of a form, whatever ran before."""
    forget_calls()
    monkeypatch.setattr(tier_up.TAPED_CALLS, "threshold", 1)
    monkeypatch.setattr(tier_up.TAPED_CALLS, "backoff", 0)  # however many other tests have made
    compiled_backward.passes.clear()
    with gradients_replayed(False):
        yield


def tensor(*shape, seed=0, dtype=np.float32):
    return hf.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def op_by_op(f):
    """``f()`` with a second tape around, which has single ops recorded."""
    with hf.GradientTape():
        return f()


def gradient(f, x, **how):
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, **how)


def same(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a is None if b is None else a.dtype == b.dtype and same_bits(a.numpy(), b.numpy())


def whole_names(f):
    """How many wholes a tape holds after ``f``."""
    with hf.GradientTape() as tape:
        f(tape)
    return sum(type(record.vjp) is taped_calls.TapedCall for record in tape._records())


def test_a_function_is_one_record_from_the_second_call_on():
    x = tensor(3, 5)

    def run(tape):
        tape.watch(x)
        hf.nn.softmax(x)

    whole_names(run)
    with hf.GradientTape() as tape:
        run(tape)
    assert len(tape._records()) == 1 and type(tape._records()[0].vjp) is taped_calls.TapedCall


def test_a_whole_that_another_thread_kept_from_being_made_is_made_later(monkeypatch):
    class Taken:
        def acquire(self, blocking):
            assert not blocking
            return False

    x, count = tensor(3, 7, 2), len(hf.nn.log_softmax._taped)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(taped_calls, "_making", Taken())
        for _ in range(3):
            gradient(lambda x: hf.nn.log_softmax(x, axis=1), x)
    assert len(hf.nn.log_softmax._taped) == count
    gradient(lambda x: hf.nn.log_softmax(x, axis=1), x)
    assert len(hf.nn.log_softmax._taped) == count + 1


@pytest.mark.parametrize("name", [name for name, program in EVERYDAY.items() if program.differentiable])
def test_everyday_programs_have_the_bits_of_single_ops(name):
    gradients = with_gradient(name, SIZES, seed=5)
    expected = op_by_op(gradients)
    gradients()
    assert same(gradients(), expected)
    with gradients_replayed(True):
        assert same(gradients(), expected)
        assert same(gradients(), expected)


FUNCTIONS = [
    hf.nn.softmax,
    hf.nn.log_softmax,
    hf.nn.gelu,
    lambda x: x @ x.mT,
    lambda x: x + x[0],
    lambda x: x * 0.5 + x / 3,
    lambda x: 1 / (1 + hf.exp(-x)),
    lambda x: hf.mean(x, axis=-1, keepdims=True) - x,
    lambda x: hf.var(x, axis=0),
    lambda x: hf.concat([x, x * x], axis=1),
    lambda x: hf.stack([x, x]),
    lambda x: hf.where(x > 0, x, 0.25 * x),
    lambda x: hf.maximum(x, 0.0),
    lambda x: hf.clip(x, -0.5, 0.5),
    lambda x: hf.logsumexp(x, axis=0),
    lambda x: x**3 - x**0.5,
    lambda x: hf.take(x, hf.asarray([0, 0, -1]), axis=0),
    lambda x: hf.cumsum(x, axis=1) if hasattr(hf, "cumsum") else hf.cumulative_sum(x, axis=1),
    lambda x: hf.sort(x, axis=1),
    lambda x: hf.max(x, axis=1),
    lambda x: hf.linalg.vector_norm(x),
]


@pytest.mark.parametrize("k", range(len(FUNCTIONS)))
@pytest.mark.parametrize("shape", [(3, 3), (2, 2), (1, 1), (5, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_special_values(k, shape, dtype):
    values = np.random.default_rng(k).choice([0.0, -0.0, 1.0, -2.5, np.inf, np.nan, 1e-40, 3e38, 0.3], shape)
    with np.errstate(all="ignore"):
        x = hf.asarray(values.astype(dtype))
    expected = op_by_op(lambda: gradient(FUNCTIONS[k], x))
    for replayed in (False, False, True):
        with gradients_replayed(replayed):
            assert same(gradient(FUNCTIONS[k], x), expected)


def test_a_function_through_which_nothing_passes_explains_itself():
    x = tensor(4)
    for _ in range(3):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.stop_gradient(x * 2.0 + 1.0)
        assert tape.gradient(y, x) is None
        assert "stop_gradient" in tape.why_none(x)
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.astype(hf.argmax(x), hf.float32) * 2.0
        assert tape.gradient(y, x) is None
        assert "argmax" in tape.why_none(x)


def test_errors_are_those_of_the_body_and_nothing_is_recorded():
    x = tensor(4)
    for _ in range(3):
        with hf.GradientTape() as tape:
            tape.watch(x)
            hf.take(x, hf.asarray([1, 2]))
            with pytest.raises(hf.errors.IndexRangeError):
                hf.take(x, hf.asarray([1, 4]))
            with pytest.raises(hf.errors.ShapeError):
                hf.matmul(x, tensor(3))
            y = hf.take(x, hf.asarray([1, 2]))
        assert now().tapes == ()
        np.testing.assert_array_equal(tape.gradient(y, x), [0, 1, 1, 0])


def test_variables_are_read_once_per_use():
    v = hf.Variable(tensor(3, 3))
    x = tensor(3, 3, seed=1)

    def step():
        with hf.GradientTape() as tape:
            y = hf.sum((x @ v + v) * 0.5)
        assert tape.watched_variables() == (v,)
        return tape.gradient(y, [v])

    expected = op_by_op(step)
    for _ in range(3):
        assert same(step(), expected)


ORDERS = {
    "array before tensor": lambda x, c: hf.atan2(c, x),
    "array by name": lambda x, c: hf.losses.huber(x, predictions=c),
    "names in another order": lambda x, c: hf.losses.mean_squared_error(predictions=x, labels=c),
    "names in another order, array first": lambda x, c: hf.losses.mean_squared_error(predictions=c, labels=x),
    "labels last": lambda x, c: hf.losses.sigmoid_cross_entropy(logits=x, labels=c),
    "scalar": lambda x, c: hf.clip(x, max=c[3], min=c[0]),
    "in a list": lambda x, c: hf.concat([c, x, c]) ** 3.0,
}


@pytest.mark.parametrize("how", ORDERS)
def test_arrays_of_others_have_their_places_in_any_order(how):
    x, c = tensor(5), np.linspace(0.5, 4.0, 5, dtype=np.float32)
    expected = op_by_op(lambda: gradient(lambda x: ORDERS[how](x, c), x))
    for replayed in (False, False, False, True, True):
        with gradients_replayed(replayed):
            assert same(gradient(lambda x: ORDERS[how](x, c), x), expected)


def test_arrays_that_change_afterwards_do_not_change_the_gradient():
    x, a = tensor(3), np.ones(3, np.float32)
    for _ in range(4):
        a[:] = 2
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(x * a + hf.maximum(x, a))
        a[:] = 7
        np.testing.assert_array_equal(tape.gradient(y, x), 2 + (x.numpy() > 2))


def test_a_tape_that_is_opened_later_sees_nothing_of_what_is_computed_again():
    x = tensor(5)

    def second(outside):
        with hf.GradientTape() as inner:
            inner.watch(x)
            y = hf.sum(hf.nn.softmax(x * 2.0) ** 2)
        with hf.GradientTape() as outer:
            outer.watch(x)
            g = inner.gradient(y, x)
            z = hf.sum(g * x)
        return outer.gradient(z, x)

    expected = op_by_op(lambda: second(True))
    for _ in range(3):
        assert same(second(False), expected)


def test_jacobians_and_persistent_tapes():
    x = tensor(4)

    def jacobian():
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.nn.softmax(x * 3.0)
        return tape.jacobian(y, x)

    expected = op_by_op(jacobian)
    for _ in range(3):
        assert same(jacobian(), expected)
    for _ in range(3):
        with hf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = hf.sum(hf.nn.softmax(x) * x)
            first = tape.gradient(y, x)
        assert not any(type(r.vjp) is taped_calls.TapedCall for r in tape._records())
        assert same(tape.gradient(y, x), first)


def test_wholes_beside_a_custom_gradient():
    @hf.custom_gradient
    def clipped(x):
        return x * 1.0, lambda g: hf.clip(g, -0.1, 0.1)

    x = tensor(6)
    expected = op_by_op(lambda: gradient(lambda x: hf.sum(hf.nn.softmax(clipped(x * 2.0))[0]), x))
    for _ in range(4):
        with gradients_replayed(True):
            assert same(gradient(lambda x: hf.sum(hf.nn.softmax(clipped(x * 2.0))[0]), x), expected)


def test_a_tape_that_pauses_and_functions_run_eagerly():
    x = tensor(3)
    for _ in range(3):
        with hf.GradientTape() as tape:
            tape.watch(x)
            with tape.stop_recording():
                c = hf.nn.softmax(x)
            y = hf.sum(hf.nn.softmax(x) * c)
        assert not tape._is_tracked(c)
        expected = op_by_op(lambda c=c: gradient(lambda x: hf.sum(hf.nn.softmax(x) * c), x))
        assert same(tape.gradient(y, x), expected)
    hf.config.run_functions_eagerly(True)
    try:
        assert whole_names(lambda tape: (tape.watch(x), hf.nn.softmax(x))) == 0
    finally:
        hf.config.run_functions_eagerly(False)
