"""Optimizers: 20 steps of each against its formula in float64, what is done to gradients, and wrong use."""

from __future__ import annotations

import copy
import json
import math
import pickle
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, optimizers
from hybridflow.optimizers import schedules
from tests.support import optimizer_steps
from tests.support.garbage import collect_all

# A reference is a generator: it is sent gradients, and yields by how much the value changes.
Steps = Callable[..., Iterator[Any]]


def sgd(lr: float, momentum: float = 0.0, nesterov: bool = False) -> Iterator[Any]:
    change: Any = None
    v: Any = 0.0
    while True:
        g = yield change
        v = momentum * v - lr * g
        change = momentum * v - lr * g if nesterov else v


def lion(lr: float, b1: float = 0.9, b2: float = 0.99) -> Iterator[Any]:
    change: Any = None
    m: Any = 0.0
    while True:
        g = yield change
        change = -lr * np.sign(b1 * m + (1 - b1) * g)
        m = b2 * m + (1 - b2) * g


def adagrad(lr: float, start: float = 0.1, eps: float = 1e-7) -> Iterator[Any]:
    change: Any = None
    total: Any = start
    while True:
        g = yield change
        total = total + g * g
        change = -lr * g / np.sqrt(total + eps)


def adadelta(lr: float, rho: float = 0.95, eps: float = 1e-7) -> Iterator[Any]:
    change: Any = None
    gg: Any = 0.0
    dd: Any = 0.0
    while True:
        g = yield change
        gg = rho * gg + (1 - rho) * g * g
        d = -np.sqrt(dd + eps) / np.sqrt(gg + eps) * g
        dd = rho * dd + (1 - rho) * d * d
        change = lr * d


def rmsprop(lr: float, rho: float = 0.9, momentum: float = 0.0, centered: bool = False) -> Iterator[Any]:
    change: Any = None
    v: Any = 0.0
    mean: Any = 0.0
    m: Any = 0.0
    while True:
        g = yield change
        v = rho * v + (1 - rho) * g * g
        mean = rho * mean + (1 - rho) * g
        m = momentum * m + lr * g / np.sqrt((v - mean * mean if centered else v) + 1e-7)
        change = -m


def adam(lr: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-7, amsgrad: bool = False) -> Iterator[Any]:
    change: Any = None
    m: Any = 0.0
    v: Any = 0.0
    largest: Any = 0.0
    t = 0
    while True:
        g = yield change
        t += 1
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        largest = np.maximum(largest, v)
        rate = lr * math.sqrt(1 - b2**t) / (1 - b1**t)
        change = -rate * m / (np.sqrt(largest if amsgrad else v) + eps)


def adamax(lr: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-7) -> Iterator[Any]:
    change: Any = None
    m: Any = 0.0
    u: Any = 0.0
    t = 0
    while True:
        g = yield change
        t += 1
        m, u = b1 * m + (1 - b1) * g, np.maximum(b2 * u, np.abs(g))
        change = -lr / (1 - b1**t) * m / (u + eps)


def nadam(lr: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-7) -> Iterator[Any]:
    change: Any = None
    m: Any = 0.0
    v: Any = 0.0
    t, product = 0, 1.0
    while True:
        g = yield change
        t += 1
        now, then = (b1 * (1 - 0.5 * 0.96**k) for k in (t, t + 1))
        product *= now
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        ahead = then * m / (1 - product * then) + (1 - now) * g / (1 - product)
        change = -lr * ahead / (np.sqrt(v / (1 - b2**t)) + eps)


class _OfValue:
    """Marks references whose step depends on the value: they are sent pairs."""


def lamb(lr: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-7) -> Iterator[Any]:
    change: Any = None
    m: Any = 0.0
    v: Any = 0.0
    t = 0
    while True:
        g, value = yield change
        t += 1
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        step = m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + eps)
        own, norm = np.linalg.norm(value), np.linalg.norm(step)
        change = -lr * (own / norm if own > 0 and norm > 0 else 1.0) * step


def ftrl(
    lr: float, power: float = -0.5, l1: float = 0.0, l2: float = 0.0, shrink: float = 0.0, beta: float = 0.0
) -> Iterator[Any]:
    change: Any = None
    n: Any = 0.1
    z: Any = 0.0
    while True:
        g, value = yield change
        sigma = ((n + g * g) ** -power - n**-power) / lr
        z = z + g + 2 * shrink * value - sigma * value
        n = n + g * g
        new = np.where(np.abs(z) <= l1, 0.0, (np.sign(z) * l1 - z) / (n**-power / lr + 2 * l2 + beta / lr))
        change = new - value


RATE = 0.05
CASES: dict[str, tuple[Callable[[], optimizers.Optimizer], Iterator[Any] | Any]] = {
    "sgd": (lambda: optimizers.SGD(RATE), lambda: sgd(RATE)),
    "sgd momentum": (lambda: optimizers.SGD(RATE, momentum=0.9), lambda: sgd(RATE, 0.9)),
    "sgd nesterov": (lambda: optimizers.SGD(RATE, 0.9, nesterov=True), lambda: sgd(RATE, 0.9, True)),
    "lion": (lambda: optimizers.Lion(RATE), lambda: lion(RATE)),
    "adagrad": (lambda: optimizers.Adagrad(RATE), lambda: adagrad(RATE)),
    "adadelta": (lambda: optimizers.Adadelta(RATE), lambda: adadelta(RATE)),
    "rmsprop": (lambda: optimizers.RMSprop(RATE), lambda: rmsprop(RATE)),
    "rmsprop all": (
        lambda: optimizers.RMSprop(RATE, momentum=0.9, centered=True),
        lambda: rmsprop(RATE, 0.9, 0.9, True),
    ),
    "adam": (lambda: optimizers.Adam(RATE), lambda: adam(RATE)),
    "amsgrad": (lambda: optimizers.Adam(RATE, amsgrad=True), lambda: adam(RATE, amsgrad=True)),
    "adamax": (lambda: optimizers.Adamax(RATE), lambda: adamax(RATE)),
    "nadam": (lambda: optimizers.Nadam(RATE), lambda: nadam(RATE)),
    "lamb": (lambda: optimizers.Lamb(RATE), lambda: lamb(RATE)),
    "ftrl": (lambda: optimizers.Ftrl(RATE), lambda: ftrl(RATE)),
    "ftrl all": (
        lambda: optimizers.Ftrl(RATE, -0.6, 0.1, 0.3, 0.02, 0.05, 0.2),
        lambda: ftrl(RATE, -0.6, 0.3, 0.02, 0.05, 0.2),
    ),
}
_OF_VALUE = ("lamb", "ftrl")
SHAPES = [(3, 4), (4,), (), (1,), (0, 2)]


def started(dtype: Any) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [np.asarray(random.standard_normal(shape)).astype(dtype) for shape in SHAPES]


def gradients_of(step: int, dtype: Any) -> list[np.ndarray]:
    random = np.random.default_rng(100 + step)
    return [np.asarray(random.standard_normal(shape)).astype(dtype) for shape in SHAPES]


def expected(name: str, dtype: Any, steps: int = 20) -> list[np.ndarray]:
    values = [value.astype(np.float64) for value in started(dtype)]
    references = [CASES[name][1]() for _ in values]
    for reference in references:
        next(reference)
    for step in range(steps):
        for k, gradient in enumerate(gradients_of(step, dtype)):
            g = gradient.astype(np.float64)
            sent = (g, values[k]) if name.startswith(_OF_VALUE) else g
            values[k] = values[k] + references[k].send(sent)
    return values


def trained(optimizer: optimizers.Optimizer, dtype: Any, way: str, steps: int = 20) -> list[hf.Variable]:
    variables = [hf.Variable(value) for value in started(dtype)]

    def step(gradients: Any) -> None:
        optimizer.apply_gradients(zip(gradients, variables))

    run = hf.function(step) if way == "graph" else step
    for k in range(steps):
        run([hf.asarray(g) for g in gradients_of(k, dtype)])
    if way == "graph":
        assert len(run.retraces()) == 0
    return variables


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_20_steps_are_those_of_the_formula(name: str, dtype: str) -> None:
    found = trained(CASES[name][0](), dtype, "eager")
    for variable, value in zip(found, expected(name, dtype)):
        tolerance = 1e-12 if dtype == "float64" else 2e-5
        np.testing.assert_allclose(variable.numpy(), value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_a_step_in_a_compiled_function_has_the_same_bits(name: str) -> None:
    eager, graph = (trained(CASES[name][0](), np.float32, way, 4) for way in ("eager", "graph"))
    for a, b in zip(eager, graph):
        assert a.numpy().tobytes() == b.numpy().tobytes()


@pytest.mark.parametrize("dtype", [hf.float16, hf.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["sgd momentum", "adam", "lamb"])
def test_narrow_variables_are_updated_in_float32_and_rounded_once(name: str, dtype: Any) -> None:
    optimizer = CASES[name][0]()
    (variable, *_) = trained(optimizer, dtype, "eager", 1)
    assert variable.dtype == dtype
    assert all(slot.dtype == hf.float32 for slot in optimizer.variables[2:] if slot.shape == variable.shape)
    (value, *_) = expected(name, dtype, 1)
    near = np.abs(variable.numpy().astype(np.float64) - value)
    assert np.all(near <= np.abs(value) * float(hf.finfo(dtype).eps) * 0.51 + 1e-7)


def test_clipping() -> None:
    huge = [hf.asarray(np.full((2, 3), 1e30, "f4")), hf.asarray(np.float32([3.0, -4.0]))]

    def after(**clip: float) -> list[np.ndarray]:
        variables = [hf.Variable(hf.zeros(g.shape)) for g in huge]
        optimizers.SGD(1.0, **clip).apply(huge, variables)
        return [-v.numpy() for v in variables]

    first, second = after(clipvalue=3.5)
    assert np.all(first == 3.5) and second.tolist() == [3.0, -3.5]
    first, second = after(clipnorm=1e3)
    assert second.tolist() == [3.0, -4.0]
    small = [hf.asarray(np.float32([3.0])), hf.asarray(np.float32([[4.0]]))]
    variables = [hf.Variable(hf.zeros(g.shape)) for g in small]
    optimizers.SGD(1.0, global_clipnorm=1.0).apply(small, variables)
    np.testing.assert_allclose([v.numpy().item() for v in variables], [-0.6, -0.8], rtol=1e-6)


def test_norms_are_those_of_all_elements_and_leave_bits_within_the_bound() -> None:
    random = np.random.default_rng(0)
    parts = [random.standard_normal(shape).astype("f4") for shape in SHAPES]
    wanted = math.sqrt(sum(float(np.sum(part.astype("f8") ** 2)) for part in parts))
    assert optimizers.global_norm([*parts, None]).item() == pytest.approx(wanted, rel=1e-6)
    assert optimizers.global_norm([]).item() == 0.0
    kept, norm = optimizers.clip_by_global_norm([*parts, None], 1e6)
    assert norm.item() == pytest.approx(wanted, rel=1e-6) and kept[-1] is None
    assert all(a.numpy().tobytes() == b.tobytes() for a, b in zip(kept, parts))
    half = hf.asarray(np.full(8, 300.0, np.float16))  # its squares overflow
    assert optimizers.clip_by_norm(half, 1.0).numpy() == pytest.approx(np.full(8, 8**-0.5), rel=1e-3)
    rows = optimizers.clip_by_norm([[3.0, 4.0], [0.3, 0.4]], 1.0, axis=1).numpy()
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    infinite, _ = optimizers.clip_by_global_norm([hf.asarray([math.inf]), hf.asarray([1.0])], 1.0)
    assert all(np.isnan(part.numpy()).all() for part in infinite)


@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm", "clipvalue"])
def test_an_infinite_bound_is_none(name: str) -> None:
    gradients = [np.float32([1.0, -3e30]), np.float32([[0.0], [math.inf]])]
    for rows in (gradients[:1], gradients):
        variables = [hf.Variable(hf.ones(g.shape)) for g in rows]
        same = [hf.Variable(hf.ones(g.shape)) for g in rows]
        optimizers.SGD(0.5, **{name: math.inf}).apply([hf.asarray(g) for g in rows], variables)
        optimizers.SGD(0.5).apply([hf.asarray(g) for g in rows], same)
        for found, wanted in zip(variables, same):
            np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize("bound", [0.5, 5.0, 7.0, math.inf])
@pytest.mark.parametrize("kind", ["number", "tensor", "tensor from outside"])
def test_bounds_of_norms_are_numbers_or_tensors(bound: float, kind: str) -> None:
    x = np.array([3.0, -4.0, 0.0])
    limit: Any = bound if kind == "number" else hf.asarray(np.float64(bound))

    def by_itself(x: Any, limit: Any) -> Any:
        return optimizers.clip_by_norm(x, limit)

    def with_others(x: Any, limit: Any) -> Any:
        return hf.concat([g for g in optimizers.clip_by_global_norm([x[:1], None, x[1:]], limit)[0] if g is not None])

    for clip in (by_itself, with_others):
        gradient = hf.grad(lambda x, limit, clip=clip: hf.sum(clip(x, limit) * [1.0, 2.0, 3.0]))
        for f, wanted in (
            (clip, x if bound >= 5 else x * (bound / 5)),
            (gradient, np.array([1.0, 2.0, 3.0]) if bound > 5 else None),
        ):
            eager = f(hf.asarray(x), limit)
            if wanted is not None:
                np.testing.assert_allclose(eager.numpy(), wanted, rtol=1e-15)
            if kind == "tensor":
                found = hf.function(f)(hf.asarray(x), limit)
            else:
                found = hf.function(lambda x, f=f: f(x, limit))(hf.asarray(x))
            assert found.numpy().tobytes() == eager.numpy().tobytes()


def test_gradients_flow_to_the_bound_of_a_norm() -> None:
    for clip in (
        lambda b: optimizers.clip_by_norm([3.0, 4.0], b),
        lambda b: optimizers.clip_by_global_norm([[5.0]], b)[0],
    ):
        for f in (clip, hf.function(clip)):
            with hf.GradientTape() as tape:
                bound = hf.asarray(2.0)
                tape.watch(bound)
                total = hf.sum(hf.concat(f(bound), axis=0) if isinstance(f(bound), list) else f(bound))
            assert tape.gradient(total, bound).item() == pytest.approx(1.4 if total.item() > 2.5 else 1.0)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan])
def test_a_tensor_that_is_no_bound_is_refused_in_programs_too(bound: float) -> None:
    clips = (
        lambda b: optimizers.clip_by_norm([3.0, 4.0], b),
        lambda b: optimizers.clip_by_global_norm([[5.0]], b)[0][0],
    )
    for clip in clips:
        for f in (clip, hf.function(clip)):
            with pytest.raises(errors.ArgumentError, match=f"clip_norm is {bound}; it must be a positive number"):
                f(hf.asarray(bound))


def test_weight_decay_comes_before_the_step_and_spares_what_is_named() -> None:
    w, b = hf.Variable([1.0, 2.0], name="w"), hf.Variable([1.0], name="layer/bias")
    optimizer = optimizers.SGD(0.5, weight_decay=0.2)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    optimizer.apply([hf.zeros(2), hf.zeros(1)], [w, b])
    np.testing.assert_allclose(w.numpy(), [0.9, 1.8], rtol=1e-6)
    assert b.item() == 1.0
    with pytest.raises(errors.ArgumentError, match="before the first update"):
        optimizer.exclude_from_weight_decay([w])


def test_accumulated_gradients_give_the_steps_of_their_means() -> None:
    gradients = [np.random.default_rng(k).standard_normal(5).astype("f4") for k in range(7)]
    one, many = hf.Variable(hf.ones(5)), hf.Variable(hf.ones(5))
    single, several = optimizers.Adam(0.1), optimizers.Adam(0.1, gradient_accumulation_steps=3)
    for k, gradient in enumerate(gradients):
        before = many.numpy().copy()
        several.apply([hf.asarray(gradient)], [many])
        if (k + 1) % 3:
            assert np.array_equal(before, many.numpy())
        else:
            single.apply([hf.asarray(np.mean(gradients[k - 2 : k + 1], axis=0))], [one])
            np.testing.assert_allclose(many.numpy(), one.numpy(), rtol=1e-6)
    assert several.iterations.item() == 2 and single.iterations.item() == 2


def test_schedules_are_asked_at_calls_where_gradients_are_accumulated() -> None:
    v = hf.Variable([0.0])
    schedule = optimizers.schedules.ExponentialDecay(1.0, 4, 0.5, staircase=True)
    optimizer = optimizers.SGD(schedule, gradient_accumulation_steps=3)
    for _ in range(12):
        optimizer.apply([hf.asarray([1.0])], [v])
    assert v.item() == -(1.0 + 0.5 + 0.25 + 0.25)  # at calls 2, 5, 8 and 11, from 0 on
    assert optimizer.learning_rate.item() == 0.125


def test_moving_averages() -> None:
    v = hf.Variable([1.0])
    optimizer = optimizers.SGD(1.0, use_ema=True, ema_momentum=0.75, ema_overwrite_frequency=3)
    value, average = 1.0, 0.0
    for k in range(7):
        optimizer.apply([hf.asarray([1.0])], [v])
        value -= 1.0
        average = value if k == 0 else 0.75 * average + 0.25 * value
        if (k + 1) % 3 == 0:
            value = average
        assert v.item() == pytest.approx(value)
    optimizer.finalize_variable_values([v])
    assert v.item() == pytest.approx(average)


SCHEDULES: dict[str, tuple[schedules.LearningRateSchedule, Callable[[int], float]]] = {
    "exponential": (schedules.ExponentialDecay(0.1, 7, 0.5), lambda k: 0.1 * 0.5 ** (k / 7)),
    "staircase": (schedules.ExponentialDecay(0.1, 7, 0.5, True), lambda k: 0.1 * 0.5 ** (k // 7)),
    "inverse": (schedules.InverseTimeDecay(0.1, 7, 0.5), lambda k: 0.1 / (1 + 0.5 * k / 7)),
    "piecewise": (
        schedules.PiecewiseConstantDecay([5, 9], [0.1, 0.01, 0.001]),
        lambda k: 0.1 if k <= 5 else 0.01 if k <= 9 else 0.001,
    ),
    "polynomial": (
        schedules.PolynomialDecay(0.1, 7, 0.01, 2.0),
        lambda k: 0.09 * (1 - min(k, 7) / 7) ** 2 + 0.01,
    ),
    "polynomial cycle": (
        schedules.PolynomialDecay(0.1, 7, 0.01, 2.0, True),
        lambda k: 0.09 * (1 - k / (7 * max(1, -(-k // 7)))) ** 2 + 0.01,
    ),
    "cosine": (
        schedules.CosineDecay(0.1, 20, 0.1),
        lambda k: 0.1 * (0.9 * 0.5 * (1 + math.cos(math.pi * min(k, 20) / 20)) + 0.1),
    ),
    "warm-up": (
        schedules.CosineDecay(0.02, 20, 0.0, warmup_target=0.2, warmup_steps=5),
        lambda k: 0.02 + 0.18 * k / 5 if k < 5 else 0.1 * (1 + math.cos(math.pi * min((k - 5) / 20, 1))),
    ),
}


def restarts(t_mul: float, m_mul: float, alpha: float) -> Callable[[int], float]:
    def rate(k: int) -> float:
        begun, length, height = 0.0, 5.0, 1.0
        while k >= begun + length:
            begun, length, height = begun + length, length * t_mul, height * m_mul
        share = (k - begun) / length
        return 0.1 * ((1 - alpha) * 0.5 * height * (1 + math.cos(math.pi * share)) + alpha)

    return rate


for _t in (1.0, 2.0, 3.0):
    SCHEDULES[f"restarts {_t}"] = schedules.CosineDecayRestarts(0.1, 5, _t, 0.9, 0.05), restarts(_t, 0.9, 0.05)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    schedule, reference = SCHEDULES[name]
    compiled = hf.function(lambda step: schedule(step))
    for step in [*range(45), 100, 1000]:
        value = schedule(step)
        assert value.dtype == hf.float64 and value.item() == pytest.approx(reference(step), rel=1e-12)
        assert compiled(hf.asarray(step)).item() == value.item()
    assert len(compiled.retraces()) == 0
    again = type(schedule).from_config(schedule.get_config())
    assert again == schedule and again(17).item() == schedule(17).item()


def test_a_schedule_makes_one_program() -> None:
    v = hf.Variable([0.0])
    optimizer = optimizers.SGD(schedules.ExponentialDecay(1.0, 1, 0.5))

    @hf.function
    def step(g: hf.Tensor) -> None:
        optimizer.apply([g], [v])

    for _ in range(5):
        step(hf.ones(1))
    assert v.item() == -(1 + 0.5 + 0.25 + 0.125 + 0.0625)
    assert len(step.retraces()) == 0
    assert optimizer.learning_rate.item() == 0.5**5


def test_the_users_own_schedule_is_watched() -> None:
    class Mine(schedules.LearningRateSchedule):
        scale = 1.0

        def __call__(self, step: Any) -> Any:
            return self.scale / (step + 1)

    v, mine = hf.Variable([0.0]), Mine()
    optimizer = optimizers.SGD(mine)

    @hf.function
    def step(g: hf.Tensor) -> None:
        optimizer.apply([g], [v])

    step(hf.ones(1))
    assert v.item() == -1.0
    step(hf.ones(1))
    assert v.item() == -1.5
    mine.scale = 3.0
    step(hf.ones(1))
    assert v.item() == -2.5
    optimizer.apply([hf.ones(1)], [v])
    assert v.item() == -3.25
    mine.scale = 5.0
    optimizer.apply([hf.ones(1)], [v])
    assert v.item() == -4.25


def test_the_learning_rate_may_be_set() -> None:
    v = hf.Variable([0.0])
    optimizer = optimizers.SGD(1.0)

    @hf.function
    def step(g: hf.Tensor) -> None:
        optimizer.apply([g], [v])

    step(hf.ones(1))
    optimizer.learning_rate = 0.5
    step(hf.ones(1))
    optimizer.learning_rate.assign(0.25)
    step(hf.ones(1))
    assert v.item() == -1.75 and len(step.retraces()) == 0 and float(optimizer.learning_rate) == 0.25


def test_variables_may_come_later_and_in_other_traces() -> None:
    a, b = hf.Variable([1.0]), hf.Variable([1.0])
    optimizer = optimizers.SGD(0.5, momentum=0.5)

    @hf.function
    def step(which: int) -> None:
        optimizer.minimize(lambda: hf.sum((a if which == 0 else b) ** 2), [a if which == 0 else b])

    step(0)
    step(1)
    step(0)
    assert len(optimizer.variables) == 4 and optimizer.iterations.item() == 3
    assert optimizer.get_slot(b, "momentum").item() == -1.0


def test_minimize_takes_a_function_or_a_tensor_with_its_tape() -> None:
    v = hf.Variable([3.0])
    optimizer = optimizers.SGD(0.25)
    optimizer.minimize(lambda: hf.sum(v * v), [v])
    assert v.item() == 1.5
    with hf.GradientTape() as tape:
        loss = hf.sum(v * v)
    optimizer.minimize(loss, [v], tape=tape)
    assert v.item() == 0.75
    tape = hf.GradientTape()
    optimizer.minimize(lambda: hf.sum(v * v), [v], tape=tape)
    assert v.item() == 0.375 and tape.watched_variables() == (v,)


@pytest.mark.parametrize("name", CASES)
def test_configurations_make_others_alike(name: str) -> None:
    optimizer = CASES[name][0]()
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    for a, b in zip(trained(optimizer, np.float32, "eager", 2), trained(again, np.float32, "eager", 2)):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_configuration_of_a_schedule_is_plain() -> None:
    optimizer = optimizers.Adam(schedules.CosineDecay(0.1, 10), clipnorm=1.0, name="mine")
    config = optimizer.get_config()
    assert config["learning_rate"]["class_name"] == "CosineDecay" and config["name"] == "mine"
    assert optimizers.Adam.from_config(config).get_config() == config
    with pytest.raises(errors.ArgumentError, match="nothing is called 'from_config'"):
        schedules.from_config({"class_name": "from_config", "config": {}})


def test_missing_gradients() -> None:
    a, b = hf.Variable([1.0], name="a"), hf.Variable([1.0], name="b")
    optimizer = optimizers.SGD(0.5)
    with pytest.warns(UserWarning, match="no gradient for variable b"):
        optimizer.apply([hf.ones(1), None], [a, b])
    assert a.item() == 0.5 and b.item() == 1.0
    with pytest.raises(errors.GradientError, match=r"no variable has a gradient.*test_optimizers\.py"):
        optimizer.apply([None], [b])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.apply([], [])


def _wrong_uses() -> dict[str, tuple[type[Exception], str, Callable[[], Any]]]:
    v, g = hf.Variable([1.0, 2.0], name="v"), hf.ones(2)
    n = hf.Variable([1, 2])
    o = optimizers
    argument, kind = errors.ArgumentError, errors.ArgumentTypeError
    return {
        "rate text": (kind, "learning_rate is 'fast'", lambda: o.SGD("fast")),
        "rate nan": (argument, "finite", lambda: o.SGD(math.nan)),
        "two clips": (argument, "clipnorm and clipvalue", lambda: o.SGD(0.1, clipnorm=1, clipvalue=1)),
        "clip zero": (argument, "clipnorm is 0", lambda: o.SGD(0.1, clipnorm=0)),
        "beta": (argument, "beta_1 is 1.0", lambda: o.Adam(0.1, 1.0)),
        "momentum": (argument, "momentum is -1", lambda: o.SGD(0.1, -1)),
        "accumulation": (argument, "gradient_accumulation_steps", lambda: o.SGD(0.1, gradient_accumulation_steps=0)),
        "ema": (argument, "ema_momentum", lambda: o.SGD(0.1, ema_momentum=2)),
        "shape": (errors.ShapeError, "must have its shape", lambda: o.SGD(0.1).apply([hf.ones(3)], [v])),
        "dtype": (errors.DTypeError, "must both be floats", lambda: o.SGD(0.1).apply([hf.asarray([1, 2])], [v])),
        "int variable": (errors.DTypeError, "must both be floats", lambda: o.SGD(0.1).apply([g], [n])),
        "swapped": (kind, "pairs are", lambda: o.SGD(0.1).apply_gradients([(v, g)])),
        "twice": (argument, "comes twice", lambda: o.SGD(0.1).apply([g, g], [v, v])),
        "counts": (argument, "1 gradients for 2", lambda: o.SGD(0.1).apply([g], [v, n])),
        "no pairs": (argument, "takes pairs", lambda: o.SGD(0.1).apply_gradients([(g, v, 1)])),
        "loss": (kind, "minimize takes a function", lambda: o.SGD(0.1).minimize(g, [v])),
        "one variable": (kind, "give a list", lambda: o.SGD(0.1).minimize(lambda: hf.sum(v), v)),
        "decay nan": (argument, "weight_decay is nan", lambda: o.AdamW(weight_decay=math.nan)),
        "decay text": (argument, "weight_decay is '0.1'", lambda: o.SGD(0.1, weight_decay="0.1")),
        "decay negative": (argument, "adam_weight_decay is -1", lambda: o.Muon(adam_weight_decay=-1)),
        "no slot": (argument, "has no slot", lambda: o.Adam().get_slot(v, "momentum")),
        "schedule later": (kind, "from the beginning", lambda: setattr(o.SGD(0.1), "learning_rate", lambda: 0.1)),
        "values": (argument, "one more", lambda: schedules.PiecewiseConstantDecay([1, 2], [0.1])),
        "boundaries": (argument, "increase", lambda: schedules.PiecewiseConstantDecay([2, 1], [1, 2, 3])),
        "steps": (argument, "decay_steps is 0", lambda: schedules.CosineDecay(0.1, 0)),
        "norm": (argument, "clip_norm is -1", lambda: o.clip_by_norm([1.0], -1)),
        "abstract": (NotImplementedError, "update_step", lambda: o.Optimizer(0.1).apply([g], [v])),
    }


def test_errors_of_generated_code_name_the_line_that_called_it() -> None:
    with pytest.raises(errors.ArgumentError) as caught:
        schedules.CosineDecay(0.1, 0)
    filename, _, line = (caught.value.where or "").rpartition(":")
    assert filename == __file__ and int(line) == caught.traceback[0].lineno + 1


@pytest.mark.parametrize("name", _wrong_uses())
def test_wrong_use(name: str) -> None:
    kind, message, run = _wrong_uses()[name]
    with pytest.raises(kind, match=message):
        run()


def test_an_error_in_a_step_leaves_everything_as_it_was() -> None:
    class Broken(optimizers.SGD):
        broken = True

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            super().update_step(gradient, variable, learning_rate)
            if self.broken and variable.shape == (3,):
                raise RuntimeError("broken")

    a, b = hf.Variable(hf.ones(2)), hf.Variable(hf.ones(3))
    optimizer = Broken(0.5)
    with pytest.raises(RuntimeError, match="broken"):
        optimizer.apply([hf.ones(2), hf.ones(3)], [a, b])
    assert a.numpy().tolist() == [1.0, 1.0] and optimizer.iterations.item() == 0
    optimizer.broken = False
    optimizer.apply([hf.ones(2), hf.ones(3)], [a, b])
    assert a.numpy().tolist() == [0.5, 0.5] and b.numpy().tolist() == [0.5, 0.5, 0.5]


def test_a_copy_is_an_optimizer_of_its_own() -> None:
    v = hf.Variable([1.0])
    optimizer = optimizers.Adam(0.1)
    optimizer.apply([hf.ones(1)], [v])
    again = copy.deepcopy(optimizer)
    again.apply([hf.ones(1)], [v])
    assert (again.iterations.item(), optimizer.iterations.item()) == (2, 1)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_copy_together_with_its_variables_goes_on_with_their_state(duplicate: Any) -> None:
    v = hf.Variable([1.0])
    optimizer = optimizers.Adam(0.1)
    optimizer.apply([hf.ones(1)], [v])
    w, again = duplicate((v, optimizer))
    again.apply([-hf.ones(1)], [w])
    assert (
        len(again.variables) == 4 and again.get_slot(w, "momentum").item() != optimizer.get_slot(v, "momentum").item()
    )
    optimizer.apply([-hf.ones(1)], [v])
    assert w.numpy().tobytes() == v.numpy().tobytes()


@pytest.mark.parametrize("name", optimizer_steps.CASES)
def test_20_steps_are_those_of_keras(name: str) -> None:
    wanted = json.loads(optimizer_steps.RECORDED.read_text(encoding="utf-8"))[name]
    optimizer = optimizer_steps.made(name, optimizers)
    variables = [hf.Variable(value) for value in optimizer_steps.arrays(7)]
    for step in range(optimizer_steps.STEPS):
        optimizer.apply_gradients(zip(optimizer_steps.arrays(100 + step), variables))
    if name.endswith("finalized"):
        optimizer.finalize_variable_values(variables)
    for variable, numbers in zip(variables, wanted):
        np.testing.assert_allclose(variable.numpy().ravel(), numbers, rtol=1e-5, atol=1e-5)


def test_each_case_is_recorded() -> None:
    assert list(json.loads(optimizer_steps.RECORDED.read_text(encoding="utf-8"))) == list(optimizer_steps.CASES)


class _Heavy(optimizers.Optimizer):
    """SGD with momentum, as it is written for Keras."""

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.9, **options: Any) -> None:
        super().__init__(learning_rate=learning_rate, **options)
        self.momentum = momentum

    def build(self, variables: Any) -> None:
        if self.built:
            return
        super().build(variables)
        self.momentums = [self.add_variable_from_reference(v, name="momentum") for v in variables]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        momentum = self.momentums[self._get_variable_index(variable)]
        self.assign(momentum, momentum * self.momentum - learning_rate * gradient)
        self.assign_add(variable, momentum)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "momentum": self.momentum}


@pytest.mark.parametrize("compiled", [False, True])
def test_optimizers_may_be_written_as_for_keras(compiled: bool) -> None:
    mine, own = _Heavy(0.05, 0.9), optimizers.SGD(0.05, momentum=0.9)
    groups = [[hf.Variable(value) for value in optimizer_steps.arrays(7)] for _ in range(2)]
    for optimizer, variables in zip((mine, own), groups):
        step = lambda *gradients: optimizer.apply_gradients(zip(gradients, variables))  # noqa: B023, E731
        run = hf.function(step) if compiled else step
        for number in range(5):
            run(*map(hf.asarray, optimizer_steps.arrays(100 + number)))
    for one, other in zip(*groups):
        np.testing.assert_array_equal(one, other)
    assert mine.built and len(mine.variables) == 5
    assert [slot.name for slot in mine.momentums] == ["variable/momentum"] * 3
    with pytest.raises(errors.ArgumentError, match="none of the variables"):
        mine._get_variable_index(hf.Variable(1.0))


def test_optimizers_written_as_for_keras_fit_models() -> None:
    model = hf.Sequential([hf.layers.Dense(1)])
    model.compile(_Heavy(0.05), "mse")
    x = np.random.default_rng(0).normal(size=(32, 2)).astype("f4")
    losses = model.fit(x, x[:, :1], epochs=10, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


def test_losses_are_scaled_and_gradients_divided() -> None:
    w = hf.Variable([1.0, 2.0])
    optimizer = optimizers.SGD(0.5, loss_scale_factor=1024.0)
    with hf.GradientTape() as tape:
        loss = optimizer.scale_loss(hf.sum(w * w))
    assert loss.item() == 5.0 * 1024
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    np.testing.assert_array_equal(w, [0.0, 0.0])
    with pytest.raises(errors.ArgumentError, match="loss_scale_factor"):
        optimizers.SGD(loss_scale_factor=0.0)


def test_muon_updates_matrices_only() -> None:
    rows = hf.Variable(np.eye(2, dtype="f4"), name="kernel")
    table = hf.Variable(np.ones((2, 2), "f4"), name="embeddings")
    bias = hf.Variable([1.0, 1.0])
    optimizer = optimizers.Muon(0.1, exclude_layers=["bias"], ns_steps=30)
    optimizer.apply_gradients(
        [(np.array([[3.0, 1.0], [0.5, 2.0]], "f4"), v) for v in (rows, table)] + [([1.0, 1.0], bias)]
    )
    assert set(optimizer._state.slots[id(rows)]) == {"momentum"}
    assert set(optimizer._state.slots[id(table)]) == set(optimizer._state.slots[id(bias)]) == {"momentum", "velocity"}
    for wrong in ({"ns_steps": 0}, {"momentum": 1.0}):
        with pytest.raises(errors.ArgumentError):
            optimizers.Muon(**wrong)
    for wrong in ({"beta_2_decay": 1.0}, {"clip_threshold": 0.0}, {"epsilon_2": -1.0}):
        with pytest.raises(errors.ArgumentError):
            optimizers.Adafactor(**wrong)


def test_arguments_are_attributes_until_the_first_update() -> None:
    optimizer = optimizers.AdamW(0.1, beta_1=0.8, clipnorm=2.0)
    shown = optimizer.weight_decay, optimizer.beta_1, optimizer.clipnorm, optimizer.use_ema, optimizer.amsgrad
    assert shown == (0.004, 0.8, 2.0, False, False)
    ftrl, muon = optimizers.Ftrl(beta=0.5), optimizers.Muon(ns_steps=3)
    assert (ftrl.beta, ftrl.initial_accumulator_value, muon.ns_steps, muon.rms_rate) == (0.5, 0.1, 3, 0.2)
    plain, changed, w, v = optimizers.SGD(0.1), optimizers.SGD(0.1), hf.Variable([1.0]), hf.Variable([1.0])
    changed.weight_decay = 0.5
    plain.apply_gradients([(hf.asarray([1.0]), w)])
    changed.apply_gradients([(hf.asarray([1.0]), v)])
    np.testing.assert_allclose([w.numpy(), v.numpy()], [[0.9], [0.85]], rtol=1e-6)
    with pytest.raises(hf.errors.ArgumentError, match="weight_decay comes before the first update; it stays 0\\.5"):
        changed.weight_decay = 0.1
    changed.learning_rate = 0.0
    changed.apply_gradients([(hf.asarray([1.0]), v)])
    np.testing.assert_allclose(v.numpy(), [0.85], rtol=1e-6)
    wrapped = hf.mixed_precision.LossScaleOptimizer(plain)  # which has trained
    assert wrapped.inner_optimizer is plain


def test_all_state_of_nadam_is_kept(tmp_path: Any) -> None:
    gradients = [hf.asarray([g]) for g in (1.0, -0.5, 2.0, 0.25)]

    def run(optimizer: Any, w: Any, some: list[Any]) -> None:
        for gradient in some:
            optimizer.apply_gradients([(gradient, w)])

    whole, w = optimizers.Nadam(0.1), hf.Variable([1.0])
    run(whole, w, gradients)
    for wrap in (lambda one: one, hf.mixed_precision.LossScaleOptimizer):
        first, v = wrap(optimizers.Nadam(0.1)), hf.Variable([1.0])
        run(first, v, gradients[:2] if first.__class__ is optimizers.Nadam else [g * 2.0**15 for g in gradients[:2]])
        hf.checkpoint.Checkpoint(optimizer=first, w=v).write(tmp_path / "half.safetensors")
        again, u = wrap(optimizers.Nadam(0.1)), hf.Variable([0.0])
        hf.checkpoint.Checkpoint(optimizer=again, w=u).restore(tmp_path / "half.safetensors")
        run(again, u, gradients[2:] if again.__class__ is optimizers.Nadam else [g * 2.0**15 for g in gradients[2:]])
        np.testing.assert_array_equal(u, w)


def test_the_loss_is_scaled_by_both_factors() -> None:
    optimizer = hf.mixed_precision.LossScaleOptimizer(optimizers.SGD(1.0, loss_scale_factor=4.0), initial_scale=8.0)
    w = hf.Variable(1.0)
    with hf.GradientTape() as tape:
        loss = optimizer.scale_loss(w * 2.0)
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    assert loss.item() == 64.0 and w.item() == -1.0


def test_classes_of_users_go_with_their_optimizers() -> None:
    class Mine(optimizers.SGD):
        pass

    optimizer, variable = Mine(0.1), hf.Variable([1.0])
    optimizer.apply_gradients([(hf.asarray([1.0]), variable)])
    with pytest.raises(hf.errors.ArgumentError, match="momentum comes before"):
        optimizer.momentum = 0.5
    optimizer.unlike = 0.5
    kind = weakref.ref(Mine)
    del Mine, optimizer
    collect_all()
    assert kind() is None
