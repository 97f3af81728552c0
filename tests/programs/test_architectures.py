"""Networks and models of many kinds: compiled as eager to the bit, on any number of threads and written in place; right
beside the same program in float64, and beside differences of its loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops import schedule as schedules
from tests.support.architectures import ARCHITECTURES, Architecture, Weights
from tests.support.architectures_of_masks import CHOOSING
from tests.support.bits import same_bits
from tests.support.teams import threads

pytestmark = pytest.mark.code

RATE, MOMENTUM = 0.05, 0.9
EXAMPLES = 3


def drawn(name: str, examples: int = EXAMPLES, seed: int = 0) -> tuple[Architecture, dict[str, Any], list[Any]]:
    """An architecture, its weights, and a batch, in float64."""
    found = ARCHITECTURES.get(name) or CHOOSING[name]
    weights = Weights({}, np.random.default_rng(1))
    found.loss(weights, tuple(map(hf.asarray, found.batch(np.random.default_rng(seed), EXAMPLES))))
    return found, weights.values, [hf.asarray(x) for x in found.batch(np.random.default_rng(seed), examples)]


def narrowed(tree: Any) -> Any:
    """The same in float32."""
    return hf.tree.map(lambda x: x.astype(hf.float32) if dt.is_float(x.dtype) else x, tree)


def loss_and_gradients(found: Architecture) -> Any:
    def run(values: dict[str, Any], batch: list[Any]) -> tuple[Any, dict[str, Any]]:
        with hf.GradientTape() as tape:
            for value in values.values():
                tape.watch(value)
            loss = found.loss(Weights(values), tuple(batch))
        return loss, tape.gradient(loss, values)

    return run


def step_of(found: Architecture) -> Any:
    """Gradient descent with momentum: the new state and the loss."""
    run = loss_and_gradients(found)

    def step(state: tuple[dict[str, Any], dict[str, Any]], batch: list[Any]) -> Any:
        values, speeds = state
        loss, gradients = run(values, batch)
        speeds = {name: MOMENTUM * speed - RATE * gradients[name] for name, speed in speeds.items()}
        return ({name: value + speeds[name] for name, value in values.items()}, speeds), loss

    return step


def alike(found: Any, expected: Any) -> None:
    ours, theirs = hf.tree.leaves(found), hf.tree.leaves(expected)
    assert len(ours) == len(theirs)
    for k, (a, b) in enumerate(zip(ours, theirs)):
        assert same_bits(np.asarray(a), np.asarray(b)), f"result {k} has other bits"


def start(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A state that nobody else holds."""
    return {k: v * 1 for k, v in values.items()}, {k: hf.zeros_like(v) * 1 for k, v in values.items()}


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.sample(4, 16)
def test_compiled_is_eager_on_any_number_of_threads(name: str) -> None:
    """With batches of one size, and of sizes that are open from the second one on."""
    found, values, _ = drawn(name)
    values = narrowed(values)
    run = loss_and_gradients(found)
    compiled = hf.function(run)
    for examples in (EXAMPLES, 5, 4):
        batch = narrowed(drawn(name, examples)[2])
        expected = run(values, batch)
        for number in (1, 2, 3):
            with threads(number):
                alike(compiled(values, batch), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.sample(4, 16)
def test_steps_that_give_up_their_state(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is large enough to be cut is, results lie over operands, and variables are written in place."""
    monkeypatch.setattr(schedules, "SPLIT_REDUCTION", 1)
    monkeypatch.setattr(schedules, "SMALL", 1)
    found, values, batch = drawn(name)
    values, batch = narrowed(values), narrowed(batch)
    step = step_of(found)
    expected, losses = start(values), []
    for _ in range(2):
        expected, loss = step(expected, batch)
        losses.append(loss)
    donating = hf.function(step, donate_argnums=0)
    variables = {name: hf.Variable(value) for name, value in values.items()}
    speeds = {name: hf.Variable(hf.zeros_like(value)) for name, value in values.items()}

    @hf.function
    def updating(batch: list[Any]) -> Any:
        (new, moved), loss = step(
            ({k: v.value() for k, v in variables.items()}, {k: v.value() for k, v in speeds.items()}), batch
        )
        for k, variable in variables.items():
            variable.assign(new[k])
            speeds[k].assign(moved[k])
        return loss

    for number in (1, 2, 3):
        with threads(number):
            state = start(values)
            for k, variable in variables.items():
                variable.assign(values[k])
                speeds[k].assign(hf.zeros_like(values[k]))
            for loss in losses:
                state, ours = donating(state, batch)
                alike([ours, updating(batch)], [loss, loss])
            alike(state, expected)
            alike(
                [{k: v.value() for k, v in variables.items()}, {k: v.value() for k, v in speeds.items()}],
                list(expected),
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.sample(4, 16)
def test_five_steps_beside_float64(name: str) -> None:
    found, values, batch = drawn(name)
    step = step_of(found)
    compiled = hf.function(step)
    with threads(2):
        wide, narrow = start(values), start(narrowed(values))
        for _ in range(5):
            wide, expected = step(wide, batch)
            narrow, loss = compiled(narrow, narrowed(batch))
            assert float(loss) == pytest.approx(float(expected), rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.sample(4, 16)
def test_gradients_are_differences_of_the_loss(name: str) -> None:
    """Along random directions, in float64."""
    found, values, batch = drawn(name)
    if name in ("generative_adversarial", "vector_quantised", "mixture_of_experts"):
        pytest.skip("parts of its loss are held fixed: its gradient is not that of the loss")
    _, gradients = hf.function(loss_and_gradients(found))(values, batch)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        way = {name: hf.asarray(rng.standard_normal(value.shape)) for name, value in values.items()}
        size = 1e-6
        ahead, behind = (
            float(found.loss(Weights({k: v + sign * size * way[k] for k, v in values.items()}), tuple(batch)))
            for sign in (1, -1)
        )
        expected = sum(float(hf.sum(gradients[k] * way[k])) for k in values)
        assert (ahead - behind) / (2 * size) == pytest.approx(expected, rel=2e-5, abs=1e-6)
