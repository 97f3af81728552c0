"""Models that choose by masks: compiled as eager to the bit, whatever number they choose and on any number of threads;
their gradients are differences of the loss; steps that give up their state have it when a size is another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.programs.test_architectures import (
    EXAMPLES,
    alike,
    drawn,
    loss_and_gradients,
    narrowed,
    start,
    step_of,
)
from tests.support.architectures import ARCHITECTURES, Weights
from tests.support.architectures_of_masks import CHOOSING
from tests.support.teams import threads

pytestmark = pytest.mark.code


@pytest.mark.parametrize("name", CHOOSING)
@pytest.mark.sample(1, 8)
def test_compiled_is_eager_whatever_is_chosen(name: str) -> None:
    found, values, _ = drawn(name)
    values = narrowed(values)
    run = loss_and_gradients(found)
    compiled = hf.function(run)
    for examples, seed, numbers in ((EXAMPLES, 0, (1, 2, 3)), (EXAMPLES, 1, (2,)), (5, 2, (1, 3))):
        batch = narrowed([hf.asarray(x) for x in found.batch(np.random.default_rng(seed), examples)])
        expected = run(values, batch)
        for number in numbers:
            with threads(number):
                alike(compiled(values, batch), expected)


@pytest.mark.parametrize("name", CHOOSING)
def test_gradients_are_differences_of_the_loss(name: str) -> None:
    """Along random directions, in float64; compiled they are the same."""
    found, values, batch = drawn(name)
    _, gradients = loss_and_gradients(found)(values, batch)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        way = {name: hf.asarray(rng.standard_normal(value.shape)) for name, value in values.items()}
        size = 1e-6
        ahead, behind = (
            float(found.loss(Weights({k: v + sign * size * way[k] for k, v in values.items()}), tuple(batch)))
            for sign in (1, -1)
        )
        expected = sum(float(hf.sum(gradients[k] * way[k])) for k in values)
        assert (ahead - behind) / (2 * size) == pytest.approx(expected, rel=2e-5, abs=1e-6)


def test_steps_that_give_up_their_state_find_another_size() -> None:
    name = "experts_by_routing"
    found, values, _ = drawn(name)
    values = narrowed(values)
    step = step_of(found)
    donating = hf.function(step, donate_argnums=0)
    expected, state = start(values), start(values)
    for seed in range(3):
        batch: list[Any] = narrowed([hf.asarray(x) for x in found.batch(np.random.default_rng(seed), EXAMPLES)])
        expected, loss = step(expected, batch)
        with threads(1 + seed):
            state, ours = donating(state, batch)
        alike([state, ours], [expected, loss])


def test_all_are_named() -> None:
    assert len(CHOOSING) == 5 and not set(CHOOSING) & set(ARCHITECTURES)
