"""Configurations: the arguments of ``__init__``, read from its signature."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import hybridflow as hf
from hybridflow.core import serialization
from hybridflow.layers.layer import Layer
from hybridflow.losses import Loss
from hybridflow.metrics import Metric
from hybridflow.optimizers import Optimizer

pytestmark = pytest.mark.code

BASES = Layer, Loss, Metric, Optimizer


def kinds() -> list[tuple[type, type]]:
    """The public classes of each base that can be made without a graph, a function or another object."""
    rooms = hf.layers, hf.losses, hf.metrics, hf.optimizers
    found = []
    for room, base in zip(rooms, BASES):
        for name in room.__all__:
            kind = getattr(room, name)
            if isinstance(kind, type) and issubclass(kind, base) and kind is not base:
                found.append((kind, base))
    return list(dict.fromkeys(found))


VALUES: dict[str, Any] = {
    **dict.fromkeys(("units", "filters", "n", "height", "width", "num_heads", "key_dim", "num_classes", "k"), 2),
    **dict.fromkeys(("head_dim", "num_query_heads", "num_key_value_heads", "input_dim", "output_dim", "num_tokens"), 2),
    **dict.fromkeys(("rate", "stddev", "factor", "height_factor", "width_factor", "recall", "precision"), 0.25),
    **dict.fromkeys(("specificity", "sensitivity", "scale"), 0.25),
    **dict.fromkeys(("target_shape", "dims", "pool_size", "shape"), (1,)),
    "activation": "relu",
    "axes": 1,
    "equation": "ab,bc->ac",
    "kernel_size": 3,
    "num_bins": 4,
    "output_shape": (3,),
    "target_class_ids": [0],
}
ALSO: dict[Any, tuple[str, ...]] = {hf.layers.Discretization: ("num_bins",), hf.layers.InputLayer: ("shape",)}
WITH_OBJECTS = {"layer", "cell", "cells", "fn", "function", "inner_optimizer", "operation"}


@pytest.mark.parametrize("kind, base", kinds(), ids=lambda kind: kind.__name__)
def test_a_configuration_makes_another_one_with_it(kind: type, base: type) -> None:
    needed = [
        p.name
        for p in inspect.signature(kind).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if WITH_OBJECTS & {*needed}:
        pytest.skip("it takes another object")
    made = kind(**{name: VALUES[name] for name in (*needed, *ALSO.get(kind, ()))})
    config = made.get_config()
    assert {*needed} <= {*config}
    again = kind.from_config(config)
    assert repr(again.get_config()) == repr(config)


class Wide(hf.layers.Dense):
    """Of a user's who knows nothing of configurations."""

    def __init__(self, factor: int, _hidden: Any = None, **options: Any) -> None:
        super().__init__(4 * factor, **options)


def test_classes_of_users_say_their_arguments_themselves() -> None:
    """What is ours in them is said as before; no attribute is looked for that they need not have."""
    own, ours = Wide(2, name="a").get_config(), hf.layers.Dense(8, name="a").get_config()
    assert own == ours and own["units"] == 8 and "factor" not in own

    class Own(hf.metrics.Metric):
        def __init__(self, limit: float) -> None:
            super().__init__(name="own")

        def get_config(self) -> dict[str, Any]:
            return super().get_config() | {"limit": 1.0}

    assert Own(3.0).get_config() == {"name": "own", "dtype": "float32", "limit": 1.0}


def test_arguments_of_bases_are_passed_on_or_not() -> None:
    names = serialization._argument_names
    assert "beta" not in names(hf.metrics.F1Score, Metric) and "beta" in names(hf.metrics.FBetaScore, Metric)
    assert names(hf.optimizers.AdamW, Optimizer) == ("beta_1", "beta_2", "epsilon", "amsgrad")
    assert names(hf.layers.LSTM, Layer) == ()  # its get_config says what its cell says
    assert {"kernel_size", "filters", "data_format"} <= {*names(hf.layers.Conv2D, Layer)}
    assert not [name for name in names(hf.layers.Conv2D, Layer) if name.startswith("_") or name == "bias"]
