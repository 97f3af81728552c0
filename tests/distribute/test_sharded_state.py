"""State of optimizers that processes share out, as one of them sees it; runs of several are in test_processes.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.ops.batching_rules import Share
from hybridflow.optimizers.sharded_state import SMALLEST, ShardedSlot, share_out


def share_of(rank: int, size: int, others: Callable[[np.ndarray], np.ndarray] = lambda mine: mine) -> Share:
    """Of process ``rank``; what others have comes from ``others``."""

    def gathers(name: str, shape: tuple[int, ...], replicas: int, where: Any) -> Callable[..., Any]:
        return lambda mine: (others(mine), 0)

    return Share(
        0, 1, gathers, gathers, lambda *args: None, lambda count: (count * rank // size, count * (rank + 1) // size)
    )


@pytest.mark.parametrize("rank", (0, 1, 2))
def test_a_slot_is_read_and_set_as_a_whole(rank: int) -> None:
    values = np.random.default_rng(0).normal(size=(71, 59)).astype(np.float32)
    variable = hf.Variable(values, name="w")
    optimizer = hf.optimizers.Adam()
    optimizer.build([variable])
    slots = optimizer._state.slots[id(variable)]
    parts: dict[str, np.ndarray] = {"whole": np.zeros(values.size, np.float32)}
    share_out(variable, slots, share_of(rank, 3, lambda mine: parts["whole"]))
    slot = slots["momentum"]
    assert isinstance(slot, ShardedSlot) and slot.shape == values.shape and slot.dtype == values.dtype
    slot.assign(values)
    begin, end = slot.run[:2]
    assert np.array_equal(slot.part.numpy(), values.reshape(-1)[begin:end]) and end - begin <= -(-values.size // 3)
    parts["whole"] = values.reshape(-1)
    assert np.array_equal(slot.numpy(), values) and np.array_equal(slot._current().numpy(), values)
    share_out(variable, slots, share_of(rank, 3))
    assert slots["momentum"] is slot, "it is shared out once"
    with pytest.raises(errors.TraceError, match="'w/momentum' is shared out"):
        hf.function(lambda: slot + 1)()


def test_what_stays_whole() -> None:
    """Small variables, those with a constraint, and averages of variables."""
    small, bound, large = (
        hf.Variable(np.zeros(SMALLEST - 1)),
        hf.Variable(np.zeros(SMALLEST)),
        hf.Variable(np.zeros(SMALLEST)),
    )
    bound._rule(None, hf.constraints.NonNeg())
    optimizer = hf.optimizers.SGD(momentum=0.9, use_ema=True)
    optimizer.build([small, bound, large])
    for variable in (small, bound, large):
        slots = optimizer._state.slots[id(variable)]
        share_out(variable, slots, share_of(0, 2))
        assert list(slots) == ["average", "momentum"] and not isinstance(slots["average"], ShardedSlot)
        assert isinstance(slots["momentum"], ShardedSlot) == (variable is large)


def test_optimizers_that_need_whole_variables() -> None:
    class Own(hf.optimizers.Adam):
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None: ...

    variable = hf.Variable(np.zeros(SMALLEST, np.float32))
    gradient = hf.zeros((SMALLEST,))
    kinds = hf.optimizers
    for optimizer in (kinds.Lamb(), kinds.Adafactor(), kinds.Muon(), kinds.LazyAdam(), Own()):
        optimizer.build([variable])
        with pytest.raises(errors.ArgumentError, match="leave shard_optimizer of the strategy off"):
            optimizer._share_out([(gradient, variable)], share_of(0, 2))
    for optimizer in (kinds.Adam(), kinds.AdamW(), kinds.Adamax(), kinds.Nadam(), kinds.Adagrad(), kinds.Adadelta()):
        optimizer.build([variable])
        optimizer._share_out([(gradient, variable)], share_of(0, 2))
        slots = optimizer._state.slots[id(variable)].values()
        assert slots and all(isinstance(slot, ShardedSlot) for slot in slots)


def test_bad_calls() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="shard_optimizer is 1"):
        hf.distribute.MirroredStrategy(replicas=2, shard_optimizer=1)  # type: ignore[arg-type]
