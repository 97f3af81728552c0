"""The examples of tensor parallelism and of a pipeline: their gradients are those of the whole network."""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support.paths import ROOT

pytestmark = pytest.mark.code
FOLDER = ROOT / "examples/distributed"
P = hf.distribute.P


def test_tensor_parallel() -> None:
    example, rng = runpy.run_path(str(FOLDER / "tensor_parallel.py")), np.random.default_rng(0)
    x, y = rng.normal(size=(12, 5)), rng.normal(size=(12, 2))
    first, second = hf.asarray(rng.normal(size=(5, 8))), hf.asarray(rng.normal(size=(8, 2)))
    sharded = hf.distribute.shard_map(
        example["loss_and_gradients"],
        mesh=example["MESH"],
        in_specs=(P(), P(), P(None, "model"), P("model")),
        out_specs=(P(), P(None, "model"), P("model")),
    )
    with hf.GradientTape() as tape:
        tape.watch(first)
        tape.watch(second)
        loss = hf.mean((hf.maximum(x @ first, 0.0) @ second - y) ** 2)
    check(sharded(x, y, first, second), [loss, *tape.gradient(loss, [first, second])])


def test_pipeline() -> None:
    example, rng = runpy.run_path(str(FOLDER / "pipeline.py")), np.random.default_rng(1)
    x, y = (rng.normal(size=(example["PARTS"], 3, 4)).astype(np.float32) for _ in range(2))
    weights = hf.asarray(rng.normal(size=(example["STAGES"], 4, 4)).astype(np.float32))
    sharded = hf.distribute.shard_map(
        example["loss_and_gradient"],
        mesh=example["MESH"],
        in_specs=(P(), P(), P("stage")),
        out_specs=(P(), P("stage")),
    )
    with hf.GradientTape() as tape:
        tape.watch(weights)
        value = hf.asarray(x)
        for k in range(example["STAGES"]):
            value = hf.tanh(value @ weights[k])
        loss = hf.mean((value - y) ** 2)
    check(sharded(x, y, weights), [loss, tape.gradient(loss, weights)])


def check(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        assert np.allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-6)
