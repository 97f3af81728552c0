"""A pipeline: four layers on as many replicas, through which parts of a batch go one after another (GPipe's schedule).

    hybridflow run -n 1 examples/distributed/pipeline.py
    hybridflow run -n 2 examples/distributed/pipeline.py

In each tick every stage computes with what the one before has handed on by ``permute``, whose derivative hands
gradients back.  Both commands print the same digest.
"""

from __future__ import annotations

import argparse
import hashlib
from typing import Any

import numpy as np

import hybridflow as hf

P = hf.distribute.P
STAGES, PARTS = 4, 8
MESH = hf.distribute.make_mesh({"stage": STAGES})


def through_all(x: Any, weights: Any) -> Any:
    """What comes out of the last stage for all parts, the same for each replica.  ``x``: (parts, rows, width)."""
    stage = hf.distribute.axis_index("stage")
    handed = hf.zeros(x.shape[1:])
    out = []
    for tick in range(PARTS + STAGES - 1):
        given = x[min(tick, PARTS - 1)]  # a part that comes after the last one is not looked at
        value = hf.tanh(hf.where(stage == 0, given, handed) @ weights)
        if tick >= STAGES - 1:
            out.append(hf.where(stage == STAGES - 1, value, 0.0))
        handed = hf.distribute.permute(value, [(k, k + 1) for k in range(STAGES - 1)], axis="stage")
    return hf.distribute.all_reduce(hf.stack(out), "sum", axis="stage")


def loss_and_gradient(x: Any, y: Any, weights: Any) -> Any:
    """The loss, and the gradient of this stage's weights."""
    weights = weights[0]
    with hf.GradientTape() as tape:
        tape.watch(weights)
        # A gradient is that of the sum over replicas, of which each has the whole loss.
        loss = hf.mean((through_all(x, weights) - y) ** 2) / STAGES
    return hf.distribute.all_reduce(loss, "sum", axis="stage"), tape.gradient(loss, weights)[None]


def main() -> None:
    """Train, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    x = rng.normal(size=(PARTS, 16, 8)).astype(np.float32)
    y = np.tanh(np.roll(x, 1, axis=-1))
    weights = hf.Variable((np.eye(8) + rng.normal(size=(STAGES, 8, 8)) / 8).astype(np.float32))
    optimizer = hf.optimizers.Adam(0.01)
    sharded = hf.distribute.shard_map(
        loss_and_gradient, mesh=MESH, in_specs=(P(), P(), P("stage")), out_specs=(P(), P("stage"))
    )

    @hf.function
    def step(x: Any, y: Any) -> Any:
        loss, gradient = sharded(x, y, weights)
        optimizer.apply_gradients([(gradient, weights)])
        return loss

    for _ in range(options.steps):
        loss = step(x, y)
    digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:16]
    print(f"loss {loss.item():.3f}, weights {digest}")


if __name__ == "__main__":
    main()
